/* The memory methods: they translate parameters to the engine's terms, and its answers to ash's. */
#include <errno.h>

#include "base/clock.h"
#include "call/call.h"
#include "call/server.h"
#include "dialect/ash/ash.h"
#include "dialect/engine.h"
#include "dialect/memory_search.h"

static void write_common(struct json *j, const struct memory *m)
{
	json_member_text(j, "id", m->id);
	if (m->content.data)
		json_member_text(j, "content", m->content);
}

static void write_time(struct json *j, const char *key, int64_t ms)
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

static void write_members(struct json *j, const struct memory *m)
{
	write_common(j, m);
	/* Never null: real clients slice it. */
	json_member_text(j, "source", m->source);
	write_time(j, "created_at", m->created_ms);
	write_time(j, "expires_at", m->expires_ms);
}

static void write_entry(struct json *j, const struct memory *m)
{
	json_begin_object(j);
	write_members(j, m);
	json_end_object(j);
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
	buf_done(&names);
}

/* The client's metadata is an object; two members of ours are added to it. */
static void write_metadata(struct json *j, const struct memory *m)
{
	json_key(j, "metadata");
	json_begin_object(j);
	if (m->metadata.len > 2)
		json_raw(j, m->metadata.data + 1, m->metadata.len - 2);
	json_key(j, "subject_person_ids");
	json_null(j);
	write_subject_name(j, m);
	json_end_object(j);
}

static void write_hit(struct json *j, const struct memory *m)
{
	json_begin_object(j);
	write_common(j, m);
	json_key(j, "similarity");
	json_double(j, m->similarity);
	write_metadata(j, m);
	json_end_object(j);
}

/* Whether the answer so far can still be completed within the client's limit. */
static bool fits(const struct call *c, const struct json *j)
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

/* A client cannot read an answer over its limit, so the last rows are left out. A row that is
 * too large for any answer does not hide those behind it. */
static void write_rows(struct call *c, const struct memory *rows, unsigned n,
		       void (*write)(struct json *j, const struct memory *m))
{
	struct json *j = call_result(c);
	bool any = false;

	json_begin_array(j);
	for (unsigned i = 0; i < n; i++) {
		struct json before = *j;
		size_t len = j->out->len;

		write(j, &rows[i]);
		if (fits(c, j)) {
			any = true;
			continue;
		}
		undo(j, &before, len);
		if (any)
			break;
	}
	json_end_array(j);
}

static const char *const scope_names[] = {
	[MEMORY_PERSONAL] = "personal",
	[MEMORY_GROUP] = "group",
	[MEMORY_COMMON] = "common",
};

/* ash's clients know whose a memory is, and get the same members as from the original. */
static void write_new(struct call *c, struct json *j, const struct memory *m)
{
	json_begin_object(j);
	write_members(j, m);
	if (c->dialect != &ash_dialect)
		json_member_str(j, "scope", scope_names[memory_scope_of(m)]);
	json_end_object(j);
}

/* If even the one memory does not fit, its content is left out: the client has it. */
static void write_added(struct call *c, struct memory *m)
{
	struct json *j = call_result(c);
	struct json before = *j;
	size_t len = j->out->len;

	write_new(c, j, m);
	if (fits(c, j))
		return;
	undo(j, &before, len);
	m->content = (struct text) {0};
	write_new(c, j, m);
}

/* A call that will be refused must not cost a request to the model. */
static bool may_ask(struct call *c, const struct search_in *in)
{
	struct memory_asker by;

	return memories_embedding(call_memories(c)) && ash_asker(c, &in->who, &by) == 0;
}

void ash_before_search(struct call *c)
{
	const struct search_in *in = c->in;

	search_begin(c, may_ask(c, in) ? in->query : (struct text) {0});
}

struct done ash_search(struct call *c)
{
	const struct search_in *in = c->in;
	struct memory_query q = {.text = in->query, .limit = in->limit};
	struct memory *hits;
	unsigned n;
	int r = ash_asker(c, &in->who, &q.by) ?: search_continue(c, &q);

	q.by.this_chat = in->this_chat;
	if (r == 0)
		r = memory_search(call_memories(c), c->lane, &c->arena, &q, &hits, &n, &c->why);
	if (r != 0)
		return call_fail(c, r);
	write_rows(c, hits, n, write_hit);
	return call_reply(c);
}

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
			return refuse_field(&c->why, "subjects", "subjects must be strings, not %s",
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
	return field_whole("expires_days", v, &new->expires_days, &c->why);
}

static int read_created(struct call *c, const struct value *v, struct memory_new *new)
{
	if (!v || v->kind == VALUE_NULL)
		return 0;
	if (v->kind != VALUE_STRING || !clock_parse_iso(value_text(v), &new->created_ms))
		return refuse_field(&c->why, "created_at",
				    "created_at must be a time like 2026-11-15T07:47:17Z");
	if (new->created_ms == 0)
		new->created_ms = 1; /* 0 would mean that no time is given */
	return 0;
}

static int read_new(struct call *c, const struct add_in *in, struct memory_new *new)
{
	int r;

	*new = (struct memory_new) {
		.content = in->content,
		.source = in->source,
		.shared = in->shared,
		.category = in->category,
		.importance = in->importance,
	};
	r = in->metadata ? json_compact(&c->arena, in->metadata, &new->metadata) : 0;
	if (r == 0)
		r = read_subjects(c, in->subjects, new);
	if (r == 0)
		r = read_expiry(c, in->expires_days, new);
	if (r == 0)
		r = read_created(c, in->created_at, new);
	if (r == 0)
		r = ash_asker(c, &in->who, &new->by);
	return r;
}

struct done ash_add(struct call *c)
{
	struct memory_new new;
	struct memory memory;
	int r = read_new(c, c->in, &new);

	if (r == 0)
		r = memory_add(call_memories(c), &c->arena, &new, &memory, &c->why);
	if (r != 0)
		return call_fail(c, r);
	write_added(c, &memory);
	return call_reply(c);
}

struct done ash_list(struct call *c)
{
	const struct list_in *in = c->in;
	struct memory_filter f = {.limit = in->limit, .include_expired = in->include_expired};
	struct memory *rows;
	unsigned n;
	int r = ash_asker(c, &in->who, &f.by);

	f.by.this_chat = in->this_chat;
	if (r == 0)
		r = memory_list(call_memories(c), c->lane, &c->arena, &f, &rows, &n, &c->why);
	if (r != 0)
		return call_fail(c, r);
	write_rows(c, rows, n, write_entry);
	return call_reply(c);
}

struct done ash_delete(struct call *c)
{
	const struct delete_in *in = c->in;
	struct memory_asker by;
	struct json *j;
	bool deleted;
	int r = ash_asker(c, &in->who, &by);

	if (r == 0)
		r = memory_delete(call_memories(c), &c->arena, &by, in->memory_id, &deleted,
				  &c->why);
	if (r != 0)
		return call_fail(c, r);
	j = call_result(c);
	json_begin_object(j);
	json_member_bool(j, "deleted", deleted);
	json_end_object(j);
	return call_reply(c);
}

struct done ash_reload(struct call *c)
{
	const struct server_opts *opts = &c->server->opts;
	const struct reload_in *in = c->in;
	struct memory_asker by;
	struct json *j;
	struct why why;
	int r = ash_asker(c, &in->who, &by);

	if (r != 0)
		return call_fail(c, r);
	r = opts->on_reload_asked ? opts->on_reload_asked(opts->arg, c->endpoint->dialect, &why)
				  : refuse(&why, REFUSE_UNAVAILABLE, "nothing to read again");
	j = call_result(c);
	json_begin_object(j);
	json_member_bool(j, "success", r == 0);
	if (r != 0)
		json_member_str(j, "error", why.text);
	json_end_object(j);
	return call_reply(c);
}
