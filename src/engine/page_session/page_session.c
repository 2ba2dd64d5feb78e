#include "engine/page_session/page_session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct link {
	char digest[PAGE_SESSION_DIGEST_LEN + 1]; /* "": none */
	char other[PAGE_SESSION_DIGEST_LEN + 1];
	int64_t made_ms;
};

struct page_sessions {
	struct link links[PAGE_SESSION_LINKS_MAX];
	struct page_session rows[VISITORS_MAX];
	unsigned n;
};

/* ---- links ---- */

static struct link *oldest(struct page_sessions *v)
{
	struct link *found = &v->links[0];

	for (unsigned i = 1; i < PAGE_SESSION_LINKS_MAX; i++) {
		if (v->links[i].made_ms < found->made_ms)
			found = &v->links[i];
	}
	return found;
}

void page_session_invite(struct page_sessions *v, struct text digest, struct text other,
			 int64_t now_ms)
{
	struct link *l = oldest(v);

	if (digest.len != PAGE_SESSION_DIGEST_LEN)
		return;
	*l = (struct link) {.made_ms = now_ms};
	memcpy(l->digest, digest.data, digest.len);
	if (other.len == PAGE_SESSION_DIGEST_LEN)
		memcpy(l->other, other.data, other.len);
}

static bool is_link(const struct link *l, struct text digest)
{
	return (l->digest[0] && text_equal_secret(digest, text_of(l->digest))) ||
	       (l->other[0] && text_equal_secret(digest, text_of(l->other)));
}

bool page_session_take_link(struct page_sessions *v, struct text digest, int64_t now_ms)
{
	for (unsigned i = 0; i < PAGE_SESSION_LINKS_MAX; i++) {
		struct link *l = &v->links[i];
		int64_t age = now_ms - l->made_ms;

		if (!is_link(l, digest))
			continue;
		*l = (struct link) {.digest = ""};
		return age >= 0 && age <= PAGE_SESSION_LINK_MS;
	}
	return false;
}

/* ---- page sessions ---- */

static char *copy(struct text t)
{
	return t.data ? strndup(t.data, t.len) : strdup("");
}

static void page_session_done(struct page_session *row)
{
	free((char *)row->id.data);
	free((char *)row->digest.data);
	free((char *)row->program.data);
}

int page_session_add(struct page_sessions *v, const struct page_session *fresh)
{
	struct page_session row = *fresh;

	if (v->n == VISITORS_MAX)
		return -ENOSPC;
	row.id = text_of(copy(fresh->id));
	row.digest = text_of(copy(fresh->digest));
	row.program = text_of(copy(fresh->program));
	if (!row.id.data || !row.digest.data || !row.program.data) {
		page_session_done(&row);
		return -ENOMEM;
	}
	v->rows[v->n++] = row;
	return 0;
}

static struct page_session *find(struct page_sessions *v, struct text id)
{
	for (unsigned i = 0; i < v->n; i++) {
		if (text_equal(v->rows[i].id, id))
			return &v->rows[i];
	}
	return NULL;
}

void page_session_remove(struct page_sessions *v, struct text id)
{
	struct page_session *row = find(v, id);

	if (!row)
		return;
	page_session_done(row);
	v->n--;
	memmove(row, row + 1, (size_t)(&v->rows[v->n] - row) * sizeof(*row));
}

const struct page_session *page_session_find(struct page_sessions *v, struct text digest,
					     int64_t uid, int64_t now_ms, int64_t keep_ms)
{
	for (unsigned i = 0; v && i < v->n; i++) {
		struct page_session *row = &v->rows[i];

		if (!text_equal_secret(digest, row->digest))
			continue;
		if (row->uid != uid || now_ms - row->entered_ms > keep_ms)
			return NULL;
		row->seen_ms = now_ms;
		return row;
	}
	return NULL;
}

unsigned page_sessions_list(const struct page_sessions *v, const struct page_session **ret_rows)
{
	*ret_rows = v ? v->rows : NULL;
	return v ? v->n : 0;
}

int page_session_get(const struct page_sessions *v, struct text id,
		     const struct page_session **ret_page_session, struct error *error)
{
	const struct page_session *found = NULL;
	unsigned n = 0;

	for (unsigned i = 0; v && i < v->n && id.len > 0; i++) {
		const struct page_session *row = &v->rows[i];

		if (row->id.len < id.len || memcmp(row->id.data, id.data, id.len) != 0)
			continue;
		found = row;
		n++;
	}
	if (n == 0)
		return refuse(error, REFUSE_NOT_FOUND, "browser not found: %.*s",
			      TEXT_ARGS(text_cut(id, 60)));
	if (n > 1)
		return refuse_field(error, "id", "ambiguous browser id: %u ids begin with %.*s", n,
				    TEXT_ARGS(text_cut(id, 60)));
	*ret_page_session = found;
	return 0;
}

const struct page_session *page_session_in_the_way(const struct page_sessions *v)
{
	return v->n == VISITORS_MAX ? &v->rows[0] : NULL;
}

/* ---- all of them ---- */

int page_sessions_new(struct page_sessions **ret_page_sessions)
{
	struct page_sessions *v = calloc(1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	*ret_page_sessions = v;
	return 0;
}

void page_sessions_free(struct page_sessions *v)
{
	if (!v)
		return;
	for (unsigned i = 0; i < v->n; i++)
		page_session_done(&v->rows[i]);
	free(v);
}
