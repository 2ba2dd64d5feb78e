/*
 * Compacting: a summary replaces all but the newest turns. It is queued like a question, reads
 * what is to be replaced, has the agent write the summary, and stores it. Where there are other hosts, it
 * has the conversation to itself from before it reads until it is stored, as a turn has.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

enum {
	QUOTE_MAX = 400, /* bytes of what the user said, if no agent can shorten it */
	TRANSCRIPT_MAX = 8 << 20,
};

static const char wish[] =
	"Summarize the conversation below for a reader who will continue it without having read "
	"it. Keep names, numbers, decisions, open questions and the user's preferences; leave out "
	"pleasantries. Answer only with the summary.\n\n";

struct compaction {
	struct errand errand;
	bool must_exist;
	chat_compacted_fn fn;
	void *arg;
	struct chat_compacted counts;
	int64_t up_to; /* the newest turn that is replaced */
	struct text summary;
	int64_t summary_tokens;
	struct lease lease;
	bool leased; /* it must be released */
	struct error error;
};

static struct compaction *compaction_of(struct errand *e)
{
	return list_entry(e, struct compaction, errand);
}

static struct compaction *compaction_of_work(struct work *w)
{
	return list_entry(w, struct compaction, errand.work);
}

static void free_compaction(struct errand *e)
{
	errand_done(e);
	free(compaction_of(e));
}

static void chat_compact_finish(struct errand *e, int result, const struct error *error)
{
	struct compaction *k = compaction_of(e);

	k->fn(k->arg, result, &k->counts, error);
	free_compaction(e);
}

static void chat_compact_end(struct compaction *k, int result, const struct error *error)
{
	if (k->leased)
		lease_give_back(&k->errand, &k->lease);
	errand_finish(&k->errand, result, error);
}

static void on_cancelled(struct errand *e)
{
	struct error error = {0};

	chat_compact_end(compaction_of(e), refuse(&error, REFUSE_CANCELLED, "cancelled"), &error);
}

static int64_t total_tokens(const struct live_conversation *c)
{
	struct chat_counts counts;

	window_count(c, &counts);
	return counts.total;
}

/* ---- storing ---- */

static int keep_run(struct work *w, int lane)
{
	const struct compaction *k = compaction_of_work(w);
	const struct live_conversation *c = k->errand.conversation;
	struct connection *db = store_lane(k->errand.chat->opts.store, lane);

	return store_conversation_set_summary(db, c->seq, k->summary, k->summary_tokens, k->up_to)
		       ?: lease_release(&k->errand, &k->lease, db)
		       ?: chat_publish(k->errand.chat, "chat.compacted", c->name);
}

static void keep_finished(struct work *w, int result)
{
	struct compaction *k = compaction_of_work(w);
	struct live_conversation *c = k->errand.conversation;

	k->leased = result != 0 && result != -ESTALE;
	if (result == -ESTALE)
		result = refuse_lost(&k->error);
	if (result == 0) {
		window_drop_to(c, k->up_to);
		c->summary_turn = k->up_to;
		c->summary_tokens = k->summary_tokens;
		k->counts.compacted = true;
		k->counts.tokens_after = total_tokens(c);
	}
	chat_compact_end(k, result, &k->error);
	/* Its asker gets the result before the event. */
	errand_report(&k->errand);
}

/* The tokens that the turns up to there cost now, including the summary before them. */
static int64_t tokens_to_go(const struct live_conversation *c, int64_t up_to)
{
	int64_t n = c->summary_tokens;

	for (unsigned i = 0; i < c->n_turns; i++) {
		if (c->turns[c->first + i].turn <= up_to)
			n += c->turns[c->first + i].tokens;
	}
	return n;
}

/* A summary that saves nothing is discarded. */
static void chat_compact_keep(struct compaction *k, struct text summary)
{
	int r = 0;

	k->summary = summary;
	k->summary_tokens = message_tokens(summary);
	if (k->summary_tokens < tokens_to_go(k->errand.conversation, k->up_to)) {
		r = errand_submit(&k->errand, keep_run, keep_finished, true);
		if (r == 0)
			return;
	}
	chat_compact_end(k, r, NULL);
}

static void chat_compact_on_end(struct errand *e)
{
	struct error error = {0};
	int r = 0;

	if (e->end.outcome == AGENT_CANCELLED)
		r = refuse(&error, REFUSE_CANCELLED, "cancelled");
	else if (e->end.outcome == AGENT_FAILED)
		r = refuse(&error, REFUSE_INTERNAL, "%s: %s", e->error_type, e->error_text);
	else if (e->text.len == 0)
		r = refuse(&error, REFUSE_INTERNAL, "the agent's summary is empty");
	if (r != 0)
		chat_compact_end(compaction_of(e), r, &error);
	else
		chat_compact_keep(compaction_of(e),
				  (struct text) {.data = e->text.data, .len = e->text.len});
}

/* ---- reading ---- */

/* For an agent that writes nothing of its own: the user's own words, the newest that fit into a
 * quarter of the budget. */
static void quote(const struct errand *e, struct buf *out)
{
	const struct agent_ask *ask = &e->context.ask;
	int64_t room = e->agent->budget / 4;
	unsigned from = ask->n_messages;

	while (from > 0) {
		const struct message *m = &ask->messages[from - 1];

		if (m->role == MESSAGE_USER) {
			room -= chat_estimate(text_cut(m->text, QUOTE_MAX));
			if (room < 0)
				break;
		}
		from--;
	}
	for (unsigned i = from; i < ask->n_messages; i++) {
		struct text said = text_cut(ask->messages[i].text, QUOTE_MAX);

		if (ask->messages[i].role != MESSAGE_USER)
			continue;
		buf_add(out, said.data, said.len);
		buf_add_char(out, '\n');
	}
}

static void transcribe(const struct errand *e, struct buf *out)
{
	static const char *const who[] = {[MESSAGE_USER] = "User",
					  [MESSAGE_ASSISTANT] = "Assistant",
					  [MESSAGE_TOOL] = "Tool"};
	const struct agent_ask *ask = &e->context.ask;

	buf_add(out, wish, sizeof(wish) - 1);
	for (unsigned i = 0; i < ask->n_messages; i++) {
		const struct message *m = &ask->messages[i];

		buf_printf(out, "%s: ", who[m->role]);
		buf_add(out, m->text.data, m->text.len);
		buf_add_char(out, '\n');
	}
}

/* The summary itself, or the prompt that asks the agent for it. */
static int compose(struct errand *e, struct text *ret)
{
	struct buf out;
	int r;

	buf_init(&out, TRANSCRIPT_MAX);
	if (e->agent->ops->quotes_only)
		quote(e, &out);
	else
		transcribe(e, &out);
	r = out.err;
	if (r == 0)
		r = arena_copy_text(&e->arena, (struct text) {out.data ? out.data : "", out.len},
				    ret);
	buf_done(&out);
	return r;
}

static int read_run(struct work *w, int lane)
{
	struct compaction *k = compaction_of_work(w);
	struct errand *e = &k->errand;
	int r = context_read(e, store_lane(e->chat->opts.store, lane), e->conversation->seq,
			     k->up_to);

	return r != 0 ? r : compose(e, &k->summary);
}

static void ask_agent(struct compaction *k)
{
	const struct message wanted = {.role = MESSAGE_USER, .text = k->summary};

	k->errand.context.ask = (struct agent_ask) {
		.conversation = k->errand.conversation->name, .messages = &wanted, .n_messages = 1};
	errand_start_agent(&k->errand);
}

static void read_finished(struct work *w, int result)
{
	struct compaction *k = compaction_of_work(w);

	if (result != 0)
		chat_compact_end(k, result, NULL);
	else if (k->errand.cancelled)
		on_cancelled(&k->errand);
	else if (k->errand.agent->ops->quotes_only)
		chat_compact_keep(k, k->summary);
	else
		ask_agent(k);
}

/* ---- starting ---- */

static int start_reading(struct compaction *k)
{
	struct errand *e = &k->errand;
	const struct live_conversation *c = e->conversation;

	e->context.ask.conversation = c->name;
	e->context.from_turn = c->turns[c->first].turn;
	e->context.has_summary = c->summary_turn != 0;
	k->up_to = c->turns[c->first + c->n_turns - 1 - CHAT_KEEP_TURNS].turn;
	return errand_submit(e, read_run, read_finished, false);
}

static int take_run(struct work *w, int lane)
{
	struct compaction *k = compaction_of_work(w);

	return lease_take(&k->errand, &k->lease, store_lane(k->errand.chat->opts.store, lane),
			  &k->error);
}

static void take_finished(struct work *w, int result)
{
	struct compaction *k = compaction_of_work(w);

	if (result == -EAGAIN && !k->errand.cancelled) {
		errand_put_back(&k->errand);
		return;
	}
	k->leased = result == 0;
	if (k->errand.cancelled) {
		on_cancelled(&k->errand);
		return;
	}
	if (result == 0)
		result = start_reading(k);
	if (result != 0)
		chat_compact_end(k, result, &k->error);
}

static int chat_compact_take(struct compaction *k)
{
	k->lease = lease_of(k->errand.conversation);
	return errand_submit(&k->errand, take_run, take_finished, true);
}

static void chat_compact_begin(struct errand *e)
{
	struct compaction *k = compaction_of(e);
	const struct live_conversation *c = e->conversation;
	struct error error = {0};
	int r = 0;

	if (k->must_exist && c->seq == 0)
		r = refuse(&error, REFUSE_NOT_FOUND, "conversation not found: '%s'", c->id);
	if (r == 0)
		r = errand_choose_agent(e, &error);
	if (r == 0) {
		k->counts.tokens_before = total_tokens(c);
		k->counts.tokens_after = k->counts.tokens_before;
	}
	if (r == 0 && c->n_turns > CHAT_KEEP_TURNS) {
		r = chat_compact_take(k);
		if (r == 0)
			return;
	}
	chat_compact_end(k, r, &error);
}

static const struct errand_ops compaction_ops = {
	.begin = chat_compact_begin,
	.on_end = chat_compact_on_end,
	.on_cancelled = on_cancelled,
	.finish = chat_compact_finish,
	.free = free_compaction,
};

static int queue(struct chat *chat, struct text id, bool must_exist, chat_compacted_fn fn,
		 void *arg)
{
	struct compaction *k = calloc(1, sizeof(*k));
	struct live_conversation *c = k ? conversation_get(chat, id) : NULL;

	if (!c) {
		free(k);
		return -ENOMEM;
	}
	errand_init(&k->errand, chat, &compaction_ops);
	k->must_exist = must_exist;
	k->fn = fn;
	k->arg = arg;
	errand_queue(&k->errand, c);
	return 0;
}

int chat_compact(struct chat *chat, struct text conversation, bool must_exist, chat_compacted_fn fn,
		 void *arg, struct error *error)
{
	struct text id = conversation.data ? conversation : TEXT(CHAT_DEFAULT);

	return chat_check_id(id, "agent_id", error)
		       ?: chat_check_room(chat, id, error) ?: queue(chat, id, must_exist, fn, arg);
}
