#include "dialect/memory_wire.h"

#include <errno.h>

#include "base/clock.h"

/* ---- parameters ---- */

static int read_subjects(struct call *c, const struct value *v, struct memory_new *new)
{
	struct text *subjects;
	unsigned n = 0;

	if (!v || v->len == 0)
		return 0;
	subjects = arena_alloc(&c->arena, v->len * sizeof(*subjects));
	if (!subjects)
		return -ENOMEM;
	value_each (item, v) {
		if (item->kind != VALUE_STRING)
			return refuse_field(&c->error, "subjects",
					    "subjects must be strings, not %s",
					    value_kind_name(item));
		subjects[n++] = value_text(item);
	}
	new->subjects = subjects;
	new->n_subjects = n;
	return 0;
}

static int read_expiry(struct call *c, const struct value *v, struct memory_new *new)
{
	if (!v || v->kind == VALUE_NULL)
		return 0;
	new->expires = true;
	return field_whole("expires_days", v, &new->expires_days, &c->error);
}

int memory_wire_time(struct call *c, const char *name, const struct value *v, int64_t *ret_ms)
{
	if (!v || v->kind == VALUE_NULL)
		return 0;
	if (v->kind != VALUE_STRING || !clock_parse_iso(value_text(v), ret_ms))
		return refuse_field(&c->error, name, "%s must be a time like 2026-11-15T07:47:17Z",
				    name);
	if (*ret_ms == 0)
		*ret_ms = 1; /* 0 would mean that no time is given */
	return 0;
}

int memory_wire_new(struct call *c, const struct memory_add_in *in, struct memory_new *ret_new)
{
	int r;

	*ret_new = (struct memory_new) {
		.content = in->content,
		.source = in->source,
		.shared = in->shared,
		.category = in->category,
		.importance = in->importance,
	};
	r = in->metadata ? json_compact(&c->arena, in->metadata, &ret_new->metadata) : 0;
	if (r == 0)
		r = read_subjects(c, in->subjects, ret_new);
	if (r == 0)
		r = read_expiry(c, in->expires_days, ret_new);
	if (r == 0)
		r = memory_wire_time(c, "created_at", in->created_at, &ret_new->created_ms);
	return r;
}

/* ---- answers ---- */

static void write_common(struct json *j, const struct memory *m)
{
	json_member_text(j, "id", m->id);
	if (m->content.data)
		json_member_text(j, "content", m->content);
}

static void memory_wire_write_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_OFFSET_LEN + 1];

	if (ms == 0 || ms == MEMORY_NEVER) {
		json_key(j, key);
		json_null(j);
		return;
	}
	clock_format_iso_offset(ms, text);
	json_member_str(j, key, text);
}

void memory_wire_entry(struct json *j, const struct memory *m)
{
	write_common(j, m);
	/* Never null: real clients slice it. */
	json_member_text(j, "source", m->source);
	memory_wire_write_time(j, "created_at", m->created_ms);
	memory_wire_write_time(j, "expires_at", m->expires_ms);
}

static void write_subject_name(struct json *j, const struct memory *m)
{
	struct text rest = m->subjects;
	const char *between = "";
	struct text subject;
	struct buf names;

	buf_init(&names, 1 << 20);
	while (member_next_line(&rest, &subject)) {
		buf_add_str(&names, between);
		buf_add(&names, subject.data, subject.len);
		between = ", ";
	}
	json_member_text(j, "subject_name", (struct text) {.data = names.data, .len = names.len});
	if (names.err != 0)
		j->out->err = names.err;
	buf_done(&names);
}

/* The client's metadata is an object; two members of ours are added to it. */
static void write_metadata(struct json *j, const struct memory *m)
{
	json_member_object(j, "metadata");
	if (m->metadata.len > 2)
		json_raw(j, m->metadata.data + 1, m->metadata.len - 2);
	json_key(j, "subject_person_ids");
	json_null(j);
	write_subject_name(j, m);
	json_end_object(j);
}

void memory_wire_hit(struct json *j, const struct memory *m)
{
	write_common(j, m);
	json_key(j, "similarity");
	json_double(j, m->similarity);
	write_metadata(j, m);
}

/* Whether the answer so far can still be completed within the client's limit. */
static bool memory_wire_fits(const struct call *c, const struct json *j)
{
	size_t max = c->dialect->message_max < j->out->max ? c->dialect->message_max : j->out->max;

	return j->out->err == 0 && j->out->len + c->request.id.len + 64 <= max;
}

/* Goes back to where a row began. Out of memory stays an error. */
static void undo(struct json *j, const struct json *before, size_t len)
{
	*j = *before;
	j->out->len = len;
	if (j->out->err == -EMSGSIZE)
		j->out->err = 0;
}

static void write_object(struct json *j, const struct memory *m, memory_write_fn write)
{
	json_begin_object(j);
	write(j, m);
	json_end_object(j);
}

/* A row that is too large for any answer does not hide those behind it. */
void memory_wire_rows(struct call *c, const struct memory *rows, unsigned n, memory_write_fn write)
{
	struct json *j = call_result(c);
	bool any = false;

	json_begin_array(j);
	for (unsigned i = 0; i < n; i++) {
		struct json before = *j;
		size_t len = j->out->len;

		write_object(j, &rows[i], write);
		if (memory_wire_fits(c, j)) {
			any = true;
			continue;
		}
		undo(j, &before, len);
		if (any)
			break;
	}
	json_end_array(j);
}

bool memory_wire_list_at_once(struct call *c, struct memories *m, const struct memory_filter *f)
{
	const struct memory *rows;
	unsigned n;
	struct recent_list *list = memory_list_at_hand(m, f, &rows, &n);

	if (!list)
		return false;
	memory_wire_rows(c, rows, n, memory_wire_entry);
	memory_list_release(m, list);
	(void)call_reply(c);
	return true;
}

void memory_wire_added(struct call *c, const struct memory *m, memory_write_fn write)
{
	struct json *j = call_result(c);
	struct json before = *j;
	size_t len = j->out->len;
	struct memory without = *m;

	write_object(j, m, write);
	if (memory_wire_fits(c, j))
		return;
	undo(j, &before, len);
	without.content = (struct text) {0};
	write_object(j, &without, write);
}
