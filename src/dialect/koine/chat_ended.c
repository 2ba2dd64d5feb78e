/* Conversations that were ended: listing them, reading what was said, and purging them. */
#include <errno.h>

#include "base/clock.h"
#include "call/call.h"
#include "dialect/chat_wire.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "wire/json.h"

struct ended_in {
	struct text conversation;
	int64_t offset;
	int64_t limit;
	int64_t number;
	struct text before;
	bool all;
};

static struct done handle_ended(struct call *c)
{
	const struct ended_in *in = c->in;
	struct conversation_page page = {.offset = in->offset, .limit = in->limit};
	struct json *j;
	int r = chat_list_ended(call_chat(c), c->lane, &c->arena, in->conversation, &page);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_nouns(j, "conversations", &conversation_schema, page.rows, page.n);
	json_member_int(j, "total", page.total);
	return call_reply_object(c);
}

static struct done handle_read(struct call *c)
{
	const struct ended_in *in = c->in;
	struct message_page page = {.offset = in->offset, .limit = in->limit};
	struct text id = {0};
	struct json *j;
	int r = chat_messages_ended(call_chat(c), c->lane, &c->arena, in->number, &id, &page,
				    &c->error);

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_member_int(j, "number", in->number);
	json_member_text(j, "conversation", id);
	json_member_int(j, "total", page.total);
	chat_wire_messages(j, &page);
	return call_reply_object(c);
}

/* ---- purging ---- */

struct purge {
	struct chat_purge step;
	int64_t n_purged; /* by all steps */
};

static int take_purge(struct call *c, struct chat_purge *p)
{
	const struct ended_in *in = c->in;

	if ((in->number != 0) + (in->before.data != NULL) + in->all != 1)
		return refuse_field(&c->error, "number",
				    "exactly one of 'number', 'before' and 'all' is required");
	p->number = in->number;
	p->before_ms = INT64_MAX;
	if (in->before.data && !clock_parse_iso(in->before, &p->before_ms))
		return refuse_field(
			&c->error, "before",
			"'before' must be a time such as 2026-11-01T00:00:00Z, not '%.*s'",
			TEXT_ARGS(in->before));
	return 0;
}

static int purge(struct call *c)
{
	struct purge *p = c->state;

	return chat_purge(call_chat(c), &p->step, &c->error);
}

/* One step is on disk; purging goes on while there is more. */
static struct done purged(struct call *c, int r)
{
	struct purge *p = c->state;

	if (r != 0)
		return call_fail(c, r);
	p->n_purged += p->step.n_purged;
	if (p->step.more)
		return call_work(c, WRITER, purge, purged);
	return call_answer(c, 0, NULL, PAIRS(JSON_INT("purged", p->n_purged)));
}

static struct done handle_purge(struct call *c)
{
	struct purge *p = arena_zalloc(&c->arena, sizeof(*p));
	int r = p ? take_purge(c, &p->step) : -ENOMEM;

	c->state = p;
	return r != 0 ? call_fail(c, r) : call_work(c, WRITER, purge, purged);
}

/* ---- the method table ---- */

#define PAGE(in)                                                                                   \
	FIELD(INT, in, offset, "Number of entries to skip", AT_LEAST(0)),                          \
		FIELD(INT, in, limit, "Maximum number of entries, 1 to 2000",                      \
		      .default_number = 200, RANGE(1, CHAT_PAGE_MAX))

static const struct field ended_fields[] = {
	FIELD(STRING, ended_in, conversation,
	      "Name of the conversation; default: all conversations"),
	PAGE(ended_in),
};

static const struct field read_fields[] = {
	FIELD(INT, ended_in, number, "Number of the conversation, from chat.past",
	      .required = true),
	PAGE(ended_in),
};

static const struct field purge_fields[] = {
	FIELD(INT, ended_in, number, "Number of the conversation to delete"),
	FIELD(STRING, ended_in, before, "Delete conversations that ended before this time"),
	FIELD(BOOL, ended_in, all, "Delete all ended conversations"),
};

static const struct method methods[] = {
	{"chat.past", "List ended conversations, most recently ended first", "object",
	 FIELDS(ended_fields, ended_in), .handle = handle_ended, .where = READER},
	{"chat.read", "List messages of an ended conversation, oldest first", "object",
	 FIELDS(read_fields, ended_in), .handle = handle_read, .where = READER},
	{"chat.purge", "Delete ended conversations permanently", "object",
	 FIELDS(purge_fields, ended_in), .handle = handle_purge, .flags = METHOD_LATER},
};

const struct method_table koine_chat_ended_methods = METHOD_TABLE(methods);
