/*
 * The life of a turn:
 *
 *	waits     for the conversation to be loaded, and for the turns before it
 *	begins    writer: the question is in the store
 *	prepares  reader: what the agent is to see
 *	runs      the agent; now and then what came goes to the store
 *	ends      writer: the rest, the counts, how it ended; then the answer
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "engine/chat/inner.h"
#include "store/store.h"

/* ---- told ---- */

static void tell(struct chat_turn *t, int result, const struct why *why)
{
	const struct chat_answer answer = {
		.result = result,
		.why = why,
		.conversation = t->name,
		.request_id = t->request_id,
		.content = {.data = t->text.data ? t->text.data : "", .len = t->text.len},
		.outcome = t->outcome,
		.cause = t->cause,
		.calls = t->calls,
		.n_calls = t->n_calls,
		.usage = t->usage,
		.error_type = t->error_type[0] ? t->error_type : NULL,
		.error_text = t->error_text,
	};

	if (t->compacts)
		t->compacted(t->sink.arg, result, &t->counts, why);
	else if (t->sink.on_done)
		t->sink.on_done(t->sink.arg, &answer);
}

void turn_done(struct chat_turn *t, int result, const struct why *why)
{
	struct conversation *c = t->conversation;
	struct chat *chat = c->chat;
	struct why copy = why ? *why : (struct why) {0};

	if (c->running == t)
		c->running = NULL;
	/* The conversation goes on first: whoever is told may ask again, or may end it. */
	conversation_go_on(c);
	tell(t, result, &copy);
	if (t->in_send)
		t->ended = true;
	else
		turn_free(chat, t);
}

/* ---- work on threads ---- */

int turn_submit(struct chat_turn *t, int (*run)(struct work *w, int lane),
		void (*finished)(struct work *w, int result), bool writes)
{
	const struct background *b = &t->chat->background;
	int r;

	t->job.work = (struct work) {.run = run, .finished = finished};
	t->job.under_way = true;
	t->job.why = (struct why) {0};
	r = b->submit(b->arg, &t->job.work, writes);
	if (r != 0)
		t->job.under_way = false;
	return r;
}

struct connection *turn_store(struct chat_turn *t, int lane)
{
	return store_lane(t->chat->store, lane);
}

/* ---- runs ---- */

static void tell_text(struct chat_turn *t)
{
	size_t from = t->told;

	list_remove(&t->telling);
	t->told = t->text.len;
	if (t->sink.on_text && t->told > from)
		t->sink.on_text(t->sink.arg,
				(struct text) {.data = t->text.data, .len = t->text.len}, from);
}

void turn_tell_all(void *arg)
{
	struct chat *chat = arg;
	struct list *first;

	while ((first = list_first(&chat->telling)))
		tell_text(list_entry(first, struct chat_turn, telling));
}

static void on_text(void *arg, struct text piece)
{
	struct chat_turn *t = arg;
	size_t from = t->text.len;

	if (t->too_long)
		return;
	buf_add(&t->text, piece.data, piece.len);
	turn_weigh(t, piece.len);
	if (t->text.err != 0 || t->chat->bytes > CHAT_BYTES_MAX) {
		t->too_long = true;
		t->agent->ops->cancel(t->under_way);
		return;
	}
	if (t->compacts)
		return;
	if (!t->timer && timer_new(t->chat->loop, turn_flush, t, &t->timer) != 0)
		t->timer = NULL;
	if (t->timer && from == t->stored && !t->job.under_way)
		turn_flush_soon(t);
	if (t->sink.on_text && list_empty(&t->telling)) {
		list_append(&t->chat->telling, &t->telling);
		timer_start(t->chat->teller, 0);
	}
}

static void on_call(void *arg, const struct agent_call *call)
{
	struct chat_turn *t = arg;
	struct agent_call *at;

	if (!t->calls)
		t->calls = arena_zalloc(&t->arena, AGENT_CALLS_MAX * sizeof(t->calls[0]));
	if (!t->calls || t->n_calls == AGENT_CALLS_MAX)
		return;
	at = &t->calls[t->n_calls];
	if (arena_copy_text(&t->arena, call->id, &at->id) == 0 &&
	    arena_copy_text(&t->arena, call->name, &at->name) == 0 &&
	    arena_copy_text(&t->arena, call->arguments, &at->arguments) == 0)
		t->n_calls++;
}

static void set_error(struct chat_turn *t, const char *type, const char *text)
{
	t->outcome = AGENT_FAILED;
	snprintf(t->error_type, sizeof(t->error_type), "%s", type);
	snprintf(t->error_text, sizeof(t->error_text), "%s", text);
	t->error_text[utf8_whole(t->error_text, strlen(t->error_text))] = '\0';
}

static void on_end(void *arg, const struct agent_end *end)
{
	struct chat_turn *t = arg;

	t->under_way = NULL;
	t->outcome = t->too_long ? AGENT_LENGTH : end->outcome;
	t->cause = end->cause;
	t->usage = end->usage;
	if (t->outcome == AGENT_FAILED)
		set_error(t, end->type ? end->type : "AgentError", end->text ? end->text : "");
	t->stage = STAGE_ENDS;
	if (t->compacts) {
		compact_agent_ended(t);
		return;
	}
	tell_text(t);
	if (!t->job.under_way)
		turn_end(t);
}

void turn_start_agent(struct chat_turn *t)
{
	const struct agent_sink sink = {
		.on_text = on_text, .on_call = on_call, .on_end = on_end, .arg = t};
	const struct conversation *c = t->conversation;
	struct why why = {0};
	int r;

	t->stage = STAGE_RUNS;
	t->job.ask.shape = t->shape;
	t->job.ask.bounds = bounds_for_agent(text_of(c->cwd), text_of(c->write_paths),
					     text_of(c->disabled_tools));
	r = t->agent->ops->start(t->agent, &t->job.ask, &sink, &t->under_way, &why);
	arena_done(&t->job.context);
	if (r == 0)
		return;
	t->stage = STAGE_ENDS;
	set_error(t, "AgentError", r > 0 ? why.text : strerror(-r));
	if (t->compacts)
		compact_agent_ended(t);
	else
		turn_end(t);
}

/* ---- prepares ---- */

static int prepare_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);
	int r;

	r = context_read(t, lane, t->job.turn);
	if (r == 0)
		r = context_prepare(t, lane);
	return r;
}

static void prepare_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);

	t->job.under_way = false;
	if (result != 0) {
		turn_end_with_fault(t, result);
	} else if (t->cancelled) {
		t->outcome = AGENT_CANCELLED;
		turn_end(t);
	} else {
		turn_start_agent(t);
	}
}

/* ---- begins ---- */

static int find_conversation(struct chat_turn *t, struct connection *db)
{
	struct conversation_row *row = &t->job.row;
	int r = store_conversation_find(db, t->name, &t->arena, row, &t->job.found);

	if (r != 0)
		return r;
	if (!t->job.found && t->must_exist)
		return refuse(&t->job.why, REFUSE_NOT_FOUND, "there is no conversation '%.*s'",
			      TEXT_ARGS(t->name));
	if (!t->job.found) {
		*row = (struct conversation_row) {
			.id = t->name, .created_ms = t->started_ms, .updated_ms = t->started_ms};
		r = store_conversation_add(db, row, &row->seq);
		if (r == 0)
			r = chat_publish(t->chat, "chat.created", t->name);
	}
	t->job.conversation = row->seq;
	return r;
}

static int store_question(struct chat_turn *t, struct connection *db)
{
	struct message_row row = {.turn = t->job.turn, .created_ms = t->started_ms};
	int r = 0;

	for (unsigned i = 0; r == 0 && i < t->n_results; i++) {
		row.role = MESSAGE_TOOL;
		row.text = t->results[i].text;
		row.call_id = t->results[i].call_id;
		row.failed = t->results[i].failed;
		row.tokens = message_tokens(row.text);
		r = store_message_add(db, &row, &t->job.last_message);
	}
	if (r == 0 && t->content.data) {
		row = (struct message_row) {
			.turn = t->job.turn,
			.role = MESSAGE_USER,
			.text = t->content,
			.tokens = message_tokens(t->content),
			.created_ms = t->started_ms,
		};
		r = store_message_add(db, &row, &t->job.last_message);
	}
	return r;
}

static int store_begin_turn(struct chat_turn *t, struct connection *db)
{
	struct turn_row row = {
		.request_id = t->request_id,
		.agent = t->job.agent_name,
		.state = TURN_RUNNING,
		.started_ms = t->started_ms,
		.input_tokens = -1,
		.output_tokens = -1,
		.cache_read_tokens = -1,
		.cache_written_tokens = -1,
	};
	int64_t n;
	int r = t->job.conversation == 0 ? find_conversation(t, db) : 0;

	/* There is one turn at a time: if another runs in the store, its end could not be kept. */
	if (r == 0)
		r = store_turn_interrupt(db, t->job.conversation, t->started_ms, &n);
	if (r != 0)
		return r;
	row.conversation = t->job.conversation;
	r = store_turn_add(db, &row, &t->job.turn);
	if (r == 0)
		r = store_question(t, db);
	if (r == 0)
		r = chat_publish_turn(t, NULL);
	return r;
}

static int begin_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);

	return store_begin_turn(t, turn_store(t, lane));
}

static unsigned n_question_messages(const struct chat_turn *t)
{
	return t->n_results + (t->content.data != NULL);
}

static void take_history(struct chat_turn *t)
{
	const struct conversation *c = t->conversation;
	int64_t tokens;

	t->job.system =
		t->system.data ? t->system : text_of(c->system ? c->system : c->chat->system);
	t->history_from = window_of_history(t, &tokens);
	t->sent_before = (t->job.system.len > 0 ? message_tokens(t->job.system) : 0) +
			 t->tool_tokens + tokens;
}

static void take_window(struct chat_turn *t)
{
	const struct conversation *c = t->conversation;
	int64_t tokens;

	t->job.from_turn = window_from(c, t->agent, t->tool_tokens, &tokens);
	t->sent_before =
		system_tokens(c) + c->summary_tokens + t->tool_tokens + tokens - t->question_tokens;
	t->job.has_summary = c->summary_turn != 0;
	t->job.system = text_of(c->system ? c->system : c->chat->system);
}

/* What the conversation goes without is not offered to its agent. */
static void drop_tools(struct chat_turn *t, struct text disabled)
{
	unsigned n = 0;

	t->tool_tokens = 0;
	for (unsigned i = 0; i < t->n_tools; i++) {
		if (bounds_disable(disabled, t->tools[i].name))
			continue;
		t->tools[n] = t->tools[i];
		t->tool_tokens += tool_tokens(&t->tools[n++]);
	}
	t->n_tools = n;
	if (n == 0)
		t->shape.tool_choice = (struct text) {0};
}

/* The conversation as it is with the question in it. */
static int take_begun(struct chat_turn *t)
{
	const struct turn_weight weight = {.turn = t->job.turn,
					   .tokens = t->question_tokens,
					   .n_messages = n_question_messages(t),
					   .continues = t->n_results > 0};
	struct conversation *c = t->conversation;
	int r = 0;

	if (c->seq == 0) {
		r = conversation_set_row(c, &t->job.row);
		/* Somebody made it meanwhile; there may be more than we know. */
		c->stale = c->stale || t->job.found;
	}
	if (c->disabled_tools)
		drop_tools(t, text_of(c->disabled_tools));
	c->tool_tokens = t->tool_tokens;
	if (r == 0)
		r = window_add(c, &weight);
	if (r != 0)
		return r;
	t->job.first = !c->answered;
	if (t->own_history)
		take_history(t);
	else
		take_window(t);
	t->job.excess = t->sent_before + t->question_tokens - available_tokens(t->agent);
	return 0;
}

static void begin_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);

	t->job.under_way = false;
	if (result != 0) {
		turn_done(t, result, &t->job.why);
		return;
	}
	result = take_begun(t);
	if (result == 0 && t->cancelled) {
		t->outcome = AGENT_CANCELLED;
		turn_end(t);
		return;
	}
	/* What the agent is sent is held for a while, too. */
	turn_weigh(t, 4 * (size_t)(t->sent_before + t->question_tokens));
	t->stage = STAGE_PREPARES;
	if (result == 0)
		result = turn_submit(t, prepare_run, prepare_finished, false);
	if (result != 0)
		turn_end_with_fault(t, result);
}

static void weigh_question(struct chat_turn *t)
{
	for (unsigned i = 0; i < t->n_results; i++) {
		t->last_tokens = message_tokens(t->results[i].text);
		t->question_tokens += t->last_tokens;
	}
	if (t->content.data) {
		t->last_tokens = message_tokens(t->content);
		t->question_tokens += t->last_tokens;
	}
}

static int choose_agent(struct chat_turn *t, struct why *why)
{
	const struct conversation *c = t->conversation;

	if (!t->agent)
		t->agent = conversation_agent(c);
	if (t->agent)
		return 0;
	if (c->agent_name)
		return refuse(why, REFUSE_UNAVAILABLE, "agent '%.60s' is not configured",
			      c->agent_name);
	return refuse(why, REFUSE_UNAVAILABLE, "no agent is configured");
}

void turn_begin(struct chat_turn *t)
{
	struct conversation *c = t->conversation;
	struct why why = {0};
	int r = 0;

	if (t->must_exist && t->compacts && c->seq == 0)
		r = refuse(&why, REFUSE_NOT_FOUND, "there is no conversation '%s'", c->id);
	if (r == 0)
		r = choose_agent(t, &why);
	if (r == 0 && t->compacts) {
		compact_begin(t);
		return;
	}
	t->stage = STAGE_BEGINS;
	t->started_ms = clock_utc_ms();
	weigh_question(t);
	t->job.conversation = c->seq;
	if (r == 0)
		t->job.agent_name = text_of(t->agent->name);
	if (r == 0)
		r = turn_submit(t, begin_run, begin_finished, true);
	if (r != 0)
		turn_done(t, r, &why);
}

/* ---- from outside ---- */

struct text chat_turn_request(const struct chat_turn *t)
{
	return t->request_id;
}

void chat_turn_forget(struct chat_turn *t)
{
	t->sink = (struct chat_sink) {0};
}

void turn_cancel_waiting(struct chat_turn *t)
{
	struct why why = {0};

	t->cancelled = true;
	t->outcome = AGENT_CANCELLED;
	turn_done(t, t->compacts ? refuse(&why, REFUSE_CANCELLED, "cancelled") : 0, &why);
}

void chat_turn_cancel(struct chat_turn *t)
{
	struct conversation *c = t->conversation;

	if (t->cancelled)
		return;
	t->cancelled = true;
	if (t->stage == STAGE_WAITS && c->running != t) {
		list_remove(&t->link);
		c->n_waiting--;
		turn_cancel_waiting(t);
	} else if (t->stage == STAGE_RUNS && t->under_way) {
		t->agent->ops->cancel(t->under_way);
	}
}
