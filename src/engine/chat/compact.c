/*
 * Compacting: a summary takes the place of all but the newest turns. It waits in line as a
 * question does, reads what shall go, has the agent write the summary, and keeps it.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "engine/chat/inner.h"
#include "store/store.h"

enum {
	QUOTE_MAX = 400, /* bytes of what the user said, where no agent can shorten it */
	TRANSCRIPT_MAX = 8 << 20,
};

static const char wish[] =
	"Summarise the conversation below for somebody who has to carry it on without having read "
	"it. Keep names, numbers, decisions, open questions and what the user prefers; leave out "
	"pleasantries. Answer with the summary alone.\n\n";

static int64_t total_tokens(const struct conversation *c)
{
	struct chat_counts counts;

	window_count(c, &counts);
	return counts.total;
}

/* ---- kept ---- */

static int keep_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);
	struct store *store = t->chat->store;

	return store_conversation_set_summary(store_lane(store, lane), t->job.conversation,
					      t->job.summary, t->job.tokens, t->job.summary_turn);
}

static void keep_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);
	struct conversation *c = t->conversation;

	t->job.under_way = false;
	if (result == 0) {
		window_drop_to(c, t->job.summary_turn);
		c->summary_turn = t->job.summary_turn;
		c->summary_tokens = t->job.tokens;
		t->counts.compacted = true;
		t->counts.tokens_after = total_tokens(c);
	}
	turn_done(t, result, NULL);
}

/* Tokens that the turns up to summary_turn cost now, with the summary before them. */
static int64_t tokens_to_go(const struct chat_turn *t)
{
	const struct conversation *c = t->conversation;
	int64_t n = c->summary_tokens;

	for (unsigned i = 0; i < c->n_turns; i++) {
		if (c->turns[c->first + i].turn <= t->job.summary_turn)
			n += c->turns[c->first + i].tokens;
	}
	return n;
}

static void keep(struct chat_turn *t)
{
	int r;

	t->job.tokens = message_tokens(t->job.summary);
	if (t->job.tokens >= tokens_to_go(t)) {
		turn_done(t, 0, NULL);
		return;
	}
	t->stage = STAGE_ENDS;
	r = turn_submit(t, keep_run, keep_finished, true);
	if (r != 0)
		turn_done(t, r, NULL);
}

void compact_agent_ended(struct chat_turn *t)
{
	struct why why = {0};

	if (t->outcome == AGENT_CANCELLED)
		turn_done(t, refuse(&why, REFUSE_CANCELLED, "cancelled"), &why);
	else if (t->outcome == AGENT_FAILED)
		turn_done(t, refuse(&why, REFUSE_INTERNAL, "%s: %s", t->error_type, t->error_text),
			  &why);
	else if (t->text.len == 0)
		turn_done(t, refuse(&why, REFUSE_INTERNAL, "the agent's summary is empty"), &why);
	else {
		t->job.summary = (struct text) {.data = t->text.data, .len = t->text.len};
		keep(t);
	}
}

/* ---- read ---- */

/* Cut between characters. */
static struct text shortened(struct text t)
{
	size_t n = t.len < QUOTE_MAX ? t.len : QUOTE_MAX;

	while (n > 0 && n < t.len && ((unsigned char)t.data[n] & 0xc0) == 0x80)
		n--;
	return (struct text) {.data = t.data, .len = n};
}

/* For an agent that writes nothing of its own: the user's own words, the newest that fit into
 * a quarter of the budget. */
static void quote(struct chat_turn *t, struct buf *out)
{
	const struct agent_ask *ask = &t->job.ask;
	int64_t room = t->agent->budget / 4;
	unsigned from = ask->n_messages;

	while (from > 0) {
		const struct agent_message *m = &ask->messages[from - 1];

		if (m->role == AGENT_USER) {
			room -= chat_estimate(shortened(m->text));
			if (room < 0)
				break;
		}
		from--;
	}
	for (unsigned i = from; i < ask->n_messages; i++) {
		struct text said = shortened(ask->messages[i].text);

		if (ask->messages[i].role != AGENT_USER)
			continue;
		buf_add(out, said.data, said.len);
		buf_add_char(out, '\n');
	}
}

static void transcribe(const struct chat_turn *t, struct buf *out)
{
	static const char *const who[] = {
		[AGENT_USER] = "User", [AGENT_ASSISTANT] = "Assistant", [AGENT_TOOL] = "Tool"};
	const struct agent_ask *ask = &t->job.ask;

	buf_add(out, wish, sizeof(wish) - 1);
	for (unsigned i = 0; i < ask->n_messages; i++) {
		const struct agent_message *m = &ask->messages[i];

		buf_printf(out, "%s: ", who[m->role]);
		buf_add(out, m->text.data, m->text.len);
		buf_add_char(out, '\n');
	}
}

static int compose(struct chat_turn *t)
{
	struct buf out;
	const char *text;
	int r;

	buf_init(&out, TRANSCRIPT_MAX);
	if (t->agent->ops->quotes_only)
		quote(t, &out);
	else
		transcribe(t, &out);
	text = arena_copy(&t->arena, out.data ? out.data : "", out.len);
	t->job.summary = (struct text) {.data = text, .len = out.len};
	r = out.err != 0 ? out.err : text ? 0 : -ENOMEM;
	buf_done(&out);
	return r;
}

static int read_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);
	int r;

	r = context_read(t, lane, t->job.summary_turn);
	if (r == 0)
		r = compose(t);
	return r;
}

static void ask_agent(struct chat_turn *t)
{
	const struct agent_message wanted = {.role = AGENT_USER, .text = t->job.summary};

	t->job.ask =
		(struct agent_ask) {.conversation = t->name, .messages = &wanted, .n_messages = 1};
	turn_start_agent(t);
}

static void read_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);
	struct why why = {0};

	t->job.under_way = false;
	if (result != 0)
		turn_done(t, result, NULL);
	else if (t->cancelled)
		turn_done(t, refuse(&why, REFUSE_CANCELLED, "cancelled"), &why);
	else if (t->agent->ops->quotes_only)
		keep(t);
	else
		ask_agent(t);
}

void compact_begin(struct chat_turn *t)
{
	const struct conversation *c = t->conversation;
	int r;

	t->counts.tokens_before = total_tokens(c);
	t->counts.tokens_after = t->counts.tokens_before;
	if (c->n_turns <= CHAT_KEEP_TURNS) {
		turn_done(t, 0, NULL);
		return;
	}
	t->stage = STAGE_PREPARES;
	t->job.conversation = c->seq;
	t->job.from_turn = c->turns[c->first].turn;
	t->job.summary_turn = c->turns[c->first + c->n_turns - 1 - CHAT_KEEP_TURNS].turn;
	t->job.has_summary = c->summary_turn != 0;
	r = turn_submit(t, read_run, read_finished, false);
	if (r != 0)
		turn_done(t, r, NULL);
}

void chat_compact(struct chat *chat, struct text conversation, bool must_exist,
		  chat_compacted_fn fn, void *arg)
{
	struct text id = conversation.data ? conversation : TEXT(CHAT_DEFAULT);
	struct why why = {0};
	struct conversation *c = NULL;
	struct chat_turn *t = NULL;
	int r = chat_check_id(id, "agent_id", &why);

	if (r == 0)
		r = chat_check_room(chat, id, &why);
	if (r == 0)
		t = turn_new(chat, id);
	if (t)
		c = conversation_get(chat, id);
	if (!c) {
		if (t)
			turn_free(chat, t);
		fn(arg, r == 0 ? -ENOMEM : r, NULL, &why);
		return;
	}
	t->compacts = true;
	t->compacted = fn;
	t->sink.arg = arg;
	t->must_exist = must_exist;
	conversation_hold(c);
	turn_queue(t, c);
	conversation_let_go(c);
}
