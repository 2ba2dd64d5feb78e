#include "engine/visitor/visitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct link {
	char digest[VISITOR_DIGEST_LEN + 1]; /* "": none */
	char other[VISITOR_DIGEST_LEN + 1];
	int64_t made_ms;
};

struct visitors {
	struct link links[VISITOR_LINKS_MAX];
	struct visitor rows[VISITORS_MAX];
	unsigned n;
};

/* ---- links ---- */

static struct link *oldest(struct visitors *v)
{
	struct link *found = &v->links[0];

	for (unsigned i = 1; i < VISITOR_LINKS_MAX; i++) {
		if (v->links[i].made_ms < found->made_ms)
			found = &v->links[i];
	}
	return found;
}

void visitor_invite(struct visitors *v, struct text digest, struct text other, int64_t now_ms)
{
	struct link *l = oldest(v);

	if (digest.len != VISITOR_DIGEST_LEN)
		return;
	*l = (struct link) {.made_ms = now_ms};
	memcpy(l->digest, digest.data, digest.len);
	if (other.len == VISITOR_DIGEST_LEN)
		memcpy(l->other, other.data, other.len);
}

static bool is_link(const struct link *l, struct text digest)
{
	return (l->digest[0] && text_equal_secret(digest, text_of(l->digest))) ||
	       (l->other[0] && text_equal_secret(digest, text_of(l->other)));
}

bool visitor_take_link(struct visitors *v, struct text digest, int64_t now_ms)
{
	for (unsigned i = 0; i < VISITOR_LINKS_MAX; i++) {
		struct link *l = &v->links[i];
		int64_t age = now_ms - l->made_ms;

		if (!is_link(l, digest))
			continue;
		*l = (struct link) {.digest = ""};
		return age >= 0 && age <= VISITOR_LINK_MS;
	}
	return false;
}

/* ---- visitors ---- */

static char *copy(struct text t)
{
	return t.data ? strndup(t.data, t.len) : strdup("");
}

static void visitor_done(struct visitor *row)
{
	free((char *)row->id.data);
	free((char *)row->digest.data);
	free((char *)row->program.data);
}

int visitor_add(struct visitors *v, const struct visitor *fresh)
{
	struct visitor row = *fresh;

	if (v->n == VISITORS_MAX)
		return -ENOSPC;
	row.id = text_of(copy(fresh->id));
	row.digest = text_of(copy(fresh->digest));
	row.program = text_of(copy(fresh->program));
	if (!row.id.data || !row.digest.data || !row.program.data) {
		visitor_done(&row);
		return -ENOMEM;
	}
	v->rows[v->n++] = row;
	return 0;
}

static struct visitor *find(struct visitors *v, struct text id)
{
	for (unsigned i = 0; i < v->n; i++) {
		if (text_equal(v->rows[i].id, id))
			return &v->rows[i];
	}
	return NULL;
}

void visitor_remove(struct visitors *v, struct text id)
{
	struct visitor *row = find(v, id);

	if (!row)
		return;
	visitor_done(row);
	v->n--;
	memmove(row, row + 1, (size_t)(&v->rows[v->n] - row) * sizeof(*row));
}

const struct visitor *visitor_find(struct visitors *v, struct text digest, int64_t uid,
				   int64_t now_ms, int64_t keep_ms)
{
	for (unsigned i = 0; v && i < v->n; i++) {
		struct visitor *row = &v->rows[i];

		if (!text_equal_secret(digest, row->digest))
			continue;
		if (row->uid != uid || now_ms - row->entered_ms > keep_ms)
			return NULL;
		row->seen_ms = now_ms;
		return row;
	}
	return NULL;
}

unsigned visitors_list(const struct visitors *v, const struct visitor **ret_rows)
{
	*ret_rows = v ? v->rows : NULL;
	return v ? v->n : 0;
}

int visitor_get(const struct visitors *v, struct text id, const struct visitor **ret_visitor,
		struct why *why)
{
	const struct visitor *found = NULL;
	unsigned n = 0;

	for (unsigned i = 0; v && i < v->n && id.len > 0; i++) {
		const struct visitor *row = &v->rows[i];

		if (row->id.len < id.len || memcmp(row->id.data, id.data, id.len) != 0)
			continue;
		found = row;
		n++;
	}
	if (n == 0)
		return refuse(why, REFUSE_NOT_FOUND, "browser not found: %.*s",
			      TEXT_ARGS(text_cut(id, 60)));
	if (n > 1)
		return refuse_field(why, "id", "ambiguous browser id: %u ids begin with %.*s", n,
				    TEXT_ARGS(text_cut(id, 60)));
	*ret_visitor = found;
	return 0;
}

const struct visitor *visitor_in_the_way(const struct visitors *v)
{
	return v->n == VISITORS_MAX ? &v->rows[0] : NULL;
}

/* ---- all of them ---- */

int visitors_new(struct visitors **ret_visitors)
{
	struct visitors *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*ret_visitors = v;
	return 0;
}

void visitors_free(struct visitors *v)
{
	if (!v)
		return;
	for (unsigned i = 0; i < v->n; i++)
		visitor_done(&v->rows[i]);
	free(v);
}
