/* Sending a question, and cancelling one. */
#include <errno.h>

#include "call/server.h"
#include "dialect/chat_wire.h"
#include "dialect/nexus/nexus.h"
#include "dialect/engine.h"

bool nexus_is_main(const struct call *c, struct text id)
{
	return text_is(id, "main") && c->dialect == &nexus_dialect;
}

bool nexus_is_default(const struct call *c, struct text id)
{
	return text_is(id, CHAT_DEFAULT) || nexus_is_main(c, id);
}

struct nexus_target nexus_target(const struct call *c, struct text agent_id)
{
	struct text named = c->path_name.data ? c->path_name : agent_id;

	/* The conversation at "/" exists before anything is said in it, even when it is named. */
	if (named.data && !nexus_is_default(c, named))
		return (struct nexus_target) {.conversation = named, .must_exist = true};
	return (struct nexus_target) {.conversation = TEXT(CHAT_DEFAULT)};
}

struct done nexus_fail(struct call *c, struct text conversation, int r, const struct error *error)
{
	if (r > 0 && error)
		c->error = *error;
	/* No conversation can have an id this long, so there is none. */
	if (r == REFUSE_PARAMS && c->path_name.len > CHAT_ID_MAX)
		r = REFUSE_NOT_FOUND;
	if (r == REFUSE_NOT_FOUND)
		refuse(&c->error, REFUSE_NOT_FOUND, "Agent not found: %.*s",
		       TEXT_ARGS(conversation));
	return call_fail(c, r);
}

/* Any program can reach a port without a token, even a page in a browser. It may hear common
 * memories, but nobody's own. */
struct memory_asker nexus_asker(const struct call *c)
{
	if (c->endpoint->tcp && !c->endpoint->token[0])
		return (struct memory_asker) {.user = TEXT("nexus")};
	return (struct memory_asker) {0};
}

void nexus_write_answer(struct json *j, const struct chat_answer *a)
{
	json_begin_object(j);
	json_member_text(j, "content", a->content.data ? a->content : TEXT(""));
	json_key(j, "request_id");
	json_raw(j, a->request_id.data, a->request_id.len);
	if (a->outcome == AGENT_CANCELLED)
		json_member_bool(j, "cancelled", true);
	json_end_object(j);
}

bool nexus_answered(const struct chat_answer *a)
{
	return a->result == 0 || a->outcome == AGENT_CANCELLED;
}

static void send_done(void *arg, const struct chat_answer *a)
{
	struct call *c = arg;

	if (nexus_answered(a)) {
		nexus_write_answer(call_result(c), a);
		(void)call_reply(c);
	} else if (!chat_wire_fail_agent(c, a)) {
		(void)nexus_fail(c, a->conversation, a->result, a->error);
	}
}

/* Cancelling stops the turn but does not drop it: the call is answered with what came. */
static void send_cancelled(struct call *c, void *arg)
{
	if (c->state)
		chat_turn_cancel(c->state);
}

struct done nexus_send(struct call *c)
{
	const struct nexus_in *in = c->in;
	const struct chat_sink sink = {.on_done = send_done, .arg = c};
	struct nexus_target at = nexus_target(c, in->agent_id);
	struct chat_ask ask = {
		.conversation = at.conversation,
		.must_exist = at.must_exist,
		.content = in->content,
		.by = nexus_asker(c),
	};
	struct chat_turn *turn = NULL;
	int r = nexus_ask_id(c, in->request_id, &ask);

	if (r == 0 && in->agent_id.data)
		r = chat_check_id(in->agent_id, "agent_id", &c->error);
	if (r != 0)
		return call_fail(c, r);
	(void)call_later(c, send_cancelled, NULL);
	r = chat_send(call_chat(c), &ask, &sink, &turn, &c->error);
	if (r != 0)
		return nexus_fail(c, at.conversation, r, NULL);
	c->state = turn;
	return call_settled(c);
}

/* ---- cancel ---- */

static void write_cancelled(struct call *c, struct text id, bool cancelled)
{
	struct json *j = call_object(c);

	json_member_bool(j, "cancelled", cancelled);
	json_key(j, "request_id");
	json_raw(j, id.data, id.len);
	if (!cancelled)
		json_member_str(j, "reason", "not_found_or_completed");
	(void)call_reply_object(c);
}

/* Nothing was cancelled; this checks whether the conversation exists at all. */
static void cancel_counted(void *arg, int r, const struct chat_counts *counts,
			   const struct error *error)
{
	struct call *c = arg;
	const struct nexus_in *in = c->in;
	const struct text *id = c->state;

	if (r != 0)
		(void)nexus_fail(c, nexus_target(c, in->agent_id).conversation, r, error);
	else
		write_cancelled(c, *id, false);
}

struct done nexus_cancel(struct call *c)
{
	const struct nexus_in *in = c->in;
	struct nexus_target at = nexus_target(c, in->agent_id);
	struct chat_counts counts;
	struct text *id = arena_zalloc(&c->arena, sizeof(*id));
	int r = id ? nexus_request_id(c, in->request_id, id) : -ENOMEM;

	if (r == 0 && !id->data)
		r = refuse_field(&c->error, "request_id", "Missing required parameter: request_id");
	if (r != 0)
		return call_fail(c, r);
	c->state = id;
	/* On koine's own socket no path names a conversation, so the id is looked for in all of
	 * them. */
	if (!in->agent_id.data && c->dialect != &nexus_dialect)
		at.conversation = (struct text) {0};
	if (chat_cancel(call_chat(c), at.conversation, *id)) {
		write_cancelled(c, *id, true);
		return call_settled(c);
	}
	r = at.must_exist ? chat_count(call_chat(c), at.conversation, true, &counts, cancel_counted,
				       c, &c->error)
			  : 0;
	if (r == -EAGAIN)
		return call_later(c, NULL, NULL);
	cancel_counted(c, r, &counts, &c->error);
	return call_settled(c);
}
