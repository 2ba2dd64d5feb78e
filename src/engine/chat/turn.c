/*
 * The life of a turn:
 *
 *	waits     for the conversation to be loaded, and for the errands before it
 *	begins    writer: stores the question
 *	prepares  reader: reads what the agent is sent
 *	runs      the agent; its text is stored from time to time
 *	ends      writer: stores the rest, the counts and the outcome; then answers
 *
 * The last two are in end.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

void turn_free(struct chat_turn *t)
{
	if (t->flushing)
		free((char *)t->record.piece.data);
	timer_free(t->timer);
	list_remove(&t->telling);
	errand_done(&t->errand);
	free(t);
}

static void free_errand(struct errand *e)
{
	turn_free(turn_of(e));
}

/* ---- reporting ---- */

static void chat_turn_finish(struct errand *e, int result, const struct error *error)
{
	struct chat_turn *t = turn_of(e);
	const struct chat_answer answer = {
		.result = result,
		.error = error,
		.conversation = t->ask.conversation,
		.request_id = t->ask.request_id,
		.content = {.data = e->text.data ? e->text.data : "", .len = e->text.len},
		.outcome = e->end.outcome,
		.cause = e->end.cause,
		.calls = e->calls,
		.n_calls = e->n_calls,
		.usage = e->end.usage,
		.error_type = e->error_type[0] ? e->error_type : NULL,
		.error_text = e->error_text,
	};

	if (t->sink.on_done)
		t->sink.on_done(t->sink.arg, &answer);
	turn_free(t);
}

static void on_cancelled(struct errand *e)
{
	e->end.outcome = AGENT_CANCELLED;
	errand_finish(e, 0, NULL);
}

static void tell_text(struct chat_turn *t)
{
	const struct buf *text = &t->errand.text;
	size_t from = t->told;

	list_remove(&t->telling);
	t->told = text->len;
	if (t->sink.on_text && t->told > from)
		t->sink.on_text(t->sink.arg, (struct text) {.data = text->data, .len = text->len},
				from);
}

void turn_tell_all(struct chat *chat)
{
	struct list *first;

	while ((first = list_first(&chat->telling)))
		tell_text(list_entry(first, struct chat_turn, telling));
}

/* ---- running ---- */

static void on_text(struct errand *e, size_t from)
{
	struct chat_turn *t = turn_of(e);

	turn_flush_soon(t, from);
	if (t->sink.on_text && list_empty(&t->telling)) {
		list_append(&e->chat->telling, &t->telling);
		timer_start(e->chat->teller, 0);
	}
}

static void chat_turn_on_end(struct errand *e)
{
	struct chat_turn *t = turn_of(e);

	tell_text(t);
	turn_end(t);
}

/* ---- preparing ---- */

static int prepare_run(struct work *w, int lane)
{
	return context_prepare(turn_of_work(w), lane);
}

static void prepare_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);

	if (result != 0)
		turn_end_with_fault(t, result);
	else if (t->errand.cancelled)
		turn_end_cancelled(t);
	else
		errand_start_agent(&t->errand);
}

/* ---- starting ---- */

static int find_conversation(struct chat_turn *t, struct connection *db)
{
	struct turn_record *rec = &t->record;
	struct text id = t->ask.conversation;
	int r = store_conversation_find(db, id, &t->errand.arena, &rec->row, &rec->found);

	if (r != 0)
		return r;
	if (!rec->found && t->ask.must_exist)
		return refuse(&rec->error, REFUSE_NOT_FOUND, "conversation not found: '%.*s'",
			      TEXT_ARGS(id));
	if (!rec->found) {
		rec->row = (struct conversation) {
			.id = id, .created_ms = rec->started_ms, .updated_ms = rec->started_ms};
		r = store_conversation_add(db, &rec->row, &rec->row.seq);
		if (r == -EEXIST)
			r = -EAGAIN; /* another host makes it just now */
		if (r == 0)
			r = chat_publish(t->errand.chat, "chat.created", id);
	}
	rec->lease.conversation = rec->row.seq;
	return r;
}

static int store_question(struct chat_turn *t, struct connection *db)
{
	struct turn_record *rec = &t->record;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < t->ask.n_results; i++) {
		const struct chat_result *result = &t->ask.results[i];
		const struct message row = {
			.turn = rec->seq,
			.role = MESSAGE_TOOL,
			.text = result->text,
			.call_id = result->call_id,
			.failed = result->failed,
			.tokens = message_tokens(result->text),
			.created_ms = rec->started_ms,
		};

		r = store_message_add(db, &row, &rec->last_message);
	}
	if (r == 0 && t->ask.content.data) {
		const struct message row = {
			.turn = rec->seq,
			.role = MESSAGE_USER,
			.text = t->ask.content,
			.tokens = message_tokens(t->ask.content),
			.created_ms = rec->started_ms,
		};

		r = store_message_add(db, &row, &rec->last_message);
	}
	return r;
}

static int begin_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);
	struct turn_record *rec = &t->record;
	struct connection *db = store_lane(t->errand.chat->opts.store, lane);
	struct turn row = {
		.request_id = t->ask.request_id,
		.agent = text_of(t->errand.agent->name),
		.state = TURN_RUNNING,
		.started_ms = rec->started_ms,
		.input_tokens = -1,
		.output_tokens = -1,
		.cache_read_tokens = -1,
		.cache_written_tokens = -1,
		.asker_user = t->ask.by.user,
		.asker_chat = t->ask.by.chat,
		.asker_chat_type = t->ask.by.chat_type,
	};
	int64_t n;
	int r;

	rec->lease.conversation = rec->known;
	r = rec->known == 0 ? find_conversation(t, db) : 0;
	/* There is one turn at a time: if another one is running in the store, its end could not
	 * be stored. */
	if (r == 0)
		r = lease_take(&t->errand, &rec->lease, db, &rec->error)
			    ?: store_turn_interrupt(db, rec->lease.conversation, rec->started_ms,
						    &n);
	if (r != 0)
		return r;
	row.conversation = rec->lease.conversation;
	r = store_turn_add(db, &row, &rec->seq) ?: store_question(t, db);
	return r != 0 ? r : chat_publish_turn(t, NULL);
}

/* Tools that the conversation does without are not offered to its agent. */
static int offer_tools(struct chat_turn *t)
{
	const char *disabled = t->errand.conversation->disabled_tools;
	struct agent_ask *ask = &t->errand.context.ask;
	struct agent_tool *offered =
		arena_alloc(&t->errand.arena, t->ask.n_tools * sizeof(offered[0]));
	unsigned n = 0;

	if (!offered)
		return -ENOMEM;
	for (unsigned i = 0; i < t->ask.n_tools; i++) {
		if (bounds_disable(text_of(disabled), t->ask.tools[i].name))
			continue;
		offered[n] = t->ask.tools[i];
		t->tokens.tools += tool_tokens(&offered[n++]);
	}
	ask->tools = offered;
	ask->n_tools = n;
	ask->shape = t->ask.shape;
	if (disabled && n == 0)
		ask->shape.tool_choice = (struct text) {0};
	return 0;
}

/* What the agent is sent of the conversation, or of what came with the question. */
static void choose_context(struct chat_turn *t)
{
	struct errand *e = &t->errand;
	const struct live_conversation *c = e->conversation;
	struct agent_ask *ask = &e->context.ask;
	int64_t available = available_tokens(e->agent);
	int64_t tokens;

	ask->conversation = t->ask.conversation;
	ask->first = !c->answered;
	ask->system = text_of(c->system ? c->system : e->chat->system);
	if (t->ask.own_history) {
		if (t->ask.system.data)
			ask->system = t->ask.system;
		window_cut_history(&t->ask,
				   available - t->tokens.tools - t->tokens.question -
					   message_tokens(ask->system),
				   &tokens);
		t->tokens.before = (ask->system.len > 0 ? message_tokens(ask->system) : 0) +
				   t->tokens.tools + tokens;
	} else {
		e->context.from_turn = window_from(c, e->agent, t->tokens.tools, &tokens);
		e->context.has_summary = c->summary_turn != 0;
		t->tokens.before = system_tokens(c) + c->summary_tokens + t->tokens.tools + tokens -
				   t->tokens.question;
	}
	e->context.excess = t->tokens.before + t->tokens.question - available;
}

/* The conversation as it is with the question in it. */
static int take_begun(struct chat_turn *t)
{
	const struct turn_weight weight = {
		.turn = t->record.seq,
		.tokens = t->tokens.question,
		.n_messages = t->ask.n_results + (t->ask.content.data != NULL),
		.continues = t->ask.n_results > 0,
	};
	struct live_conversation *c = t->errand.conversation;
	int r = 0;

	if (c->seq == 0) {
		r = conversation_set_row(c, &t->record.row);
		/* Somebody has created it in the meantime; it may contain more than we know. */
		c->stale = c->stale || t->record.found;
	}
	if (r == 0)
		r = offer_tools(t);
	c->tool_tokens = t->tokens.tools;
	if (r == 0)
		r = window_add(c, &weight);
	if (r == 0)
		choose_context(t);
	return r;
}

static void begin_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);
	struct errand *e = &t->errand;

	if (result == -EAGAIN && !e->cancelled) {
		errand_put_back(e);
		return;
	}
	if (result == -EAGAIN && e->cancelled) {
		on_cancelled(e);
		return;
	}
	if (result != 0) {
		errand_finish(e, result, &t->record.error);
		return;
	}
	result = take_begun(t);
	if (result == 0 && e->cancelled) {
		turn_end_cancelled(t);
		return;
	}
	/* What the agent is sent is held for a while, too. */
	errand_weigh(e, 4 * (size_t)(t->tokens.before + t->tokens.question));
	if (result == 0)
		result = errand_submit(e, prepare_run, prepare_finished, false);
	if (result != 0)
		turn_end_with_fault(t, result);
}

static void weigh_question(struct chat_turn *t)
{
	struct turn_tokens *n = &t->tokens;

	for (unsigned i = 0; i < t->ask.n_results; i++) {
		n->last = message_tokens(t->ask.results[i].text);
		n->question += n->last;
	}
	if (t->ask.content.data) {
		n->last = message_tokens(t->ask.content);
		n->question += n->last;
	}
}

static void chat_turn_begin(struct errand *e)
{
	struct chat_turn *t = turn_of(e);
	struct error error = {0};
	int r;

	t->tokens = (struct turn_tokens) {0};
	t->record = (struct turn_record) {
		.started_ms = clock_utc_ms(),
		.lease = lease_of(e->conversation),
		.known = e->conversation->seq,
	};
	weigh_question(t);
	r = errand_choose_agent(e, &error) ?: errand_submit(e, begin_run, begin_finished, true);
	if (r != 0)
		errand_finish(e, r, &error);
}

const struct errand_ops turn_ops = {
	.begin = chat_turn_begin,
	.on_text = on_text,
	.on_end = chat_turn_on_end,
	.on_cancelled = on_cancelled,
	.finish = chat_turn_finish,
	.free = free_errand,
};
