/* What a conversation holds: its counts, its messages, and compacting it. */
#include <errno.h>

#include "dialect/chat_wire.h"
#include "dialect/nexus/nexus.h"
#include "dialect/engine.h"

/* ---- counts ---- */

static struct text conversation_of(const struct call *c)
{
	const struct nexus_in *in = c->in;

	return nexus_target(c, in->agent_id).conversation;
}

static void write_tokens(void *arg, int r, const struct chat_counts *n, const struct error *error)
{
	struct call *c = arg;

	if (r != 0)
		(void)nexus_fail(c, conversation_of(c), r, error);
	else
		(void)call_answer(c, 0, NULL,
				  PAIRS(JSON_INT("system", n->system), JSON_INT("tools", n->tools),
					JSON_INT("messages", n->messages),
					JSON_INT("total", n->total), JSON_INT("budget", n->budget),
					JSON_INT("available", n->available)));
}

static void write_context(void *arg, int r, const struct chat_counts *n, const struct error *error)
{
	struct call *c = arg;

	if (r != 0)
		(void)nexus_fail(c, conversation_of(c), r, error);
	else
		(void)call_answer(c, 0, NULL,
				  PAIRS(JSON_INT("message_count", n->n_messages),
					JSON_BOOL("system_prompt", n->has_system)));
}

/* If the conversation is in memory, this answers within the same turn of the loop. */
static struct done nexus_context_count(struct call *c, chat_counts_fn fn)
{
	const struct nexus_in *in = c->in;
	struct nexus_target at = nexus_target(c, in->agent_id);

	struct chat_counts counts;
	int r = chat_count(call_chat(c), at.conversation, at.must_exist, &counts, fn, c, &c->error);

	if (r == -EAGAIN)
		return call_later(c, NULL, NULL);
	fn(c, r, &counts, &c->error);
	return call_settled(c);
}

struct done nexus_get_tokens(struct call *c)
{
	return nexus_context_count(c, write_tokens);
}

struct done nexus_get_context(struct call *c)
{
	return nexus_context_count(c, write_context);
}

/* ---- messages ---- */

int nexus_check_page(struct call *c, int64_t offset, int64_t limit)
{
	if (offset < 0)
		return refuse_field(&c->error, "offset", "offset must be at least 0, not %lld",
				    (long long)offset);
	if (limit < 1 || limit > CHAT_PAGE_MAX)
		return refuse_field(&c->error, "limit", "limit must be between 1 and %d, not %lld",
				    CHAT_PAGE_MAX, (long long)limit);
	return 0;
}

struct done nexus_get_messages(struct call *c)
{
	const struct nexus_in *in = c->in;
	struct nexus_target at = nexus_target(c, in->agent_id);
	struct message_page page = {.offset = in->offset, .limit = in->limit};
	struct json *j;
	int r = nexus_check_page(c, in->offset, in->limit)
			?: chat_messages(call_chat(c), c->lane, &c->arena, at.conversation,
					 at.must_exist, &page, &c->error);

	if (r != 0)
		return nexus_fail(c, at.conversation, r, NULL);
	j = call_object(c);
	json_member_text(j, "agent_id", at.conversation);
	json_member_int(j, "total", page.total);
	json_member_int(j, "offset", in->offset);
	json_member_int(j, "limit", in->limit);
	chat_wire_messages(j, &page);
	return call_reply_object(c);
}

/* ---- compact ---- */

static void compact_done(void *arg, int r, const struct chat_compacted *done,
			 const struct error *error)
{
	struct call *c = arg;
	const struct nexus_in *in = c->in;
	struct json *j;

	if (r != 0) {
		(void)nexus_fail(c, nexus_target(c, in->agent_id).conversation, r, error);
		return;
	}
	j = call_object(c);
	json_member_bool(j, "compacted", done->compacted);
	if (!done->compacted)
		json_member_str(j, "reason", "nothing_to_compact");
	json_member_int(j, "tokens_before", done->tokens_before);
	json_member_int(j, "tokens_after", done->tokens_after);
	json_member_int(j, "tokens_saved", done->tokens_before - done->tokens_after);
	(void)call_reply_object(c);
}

struct done nexus_compact(struct call *c)
{
	const struct nexus_in *in = c->in;
	struct nexus_target at = nexus_target(c, in->agent_id);

	int r = chat_compact(call_chat(c), at.conversation, at.must_exist, compact_done, c,
			     &c->error);

	return r == 0 ? call_later(c, NULL, NULL) : nexus_fail(c, at.conversation, r, NULL);
}
