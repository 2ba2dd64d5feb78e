/*
 * What is stored of a turn: its text from time to time while it arrives, and at the end the
 * rest, the counts, and the outcome.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

enum {
	FIRST_FLUSH_MS = 50,
	FLUSH_MS = 100,
	FLUSH_MAX_MS = 2000,
};

/* ---- pieces of the answer ---- */

static bool has_answer(const struct chat_turn *t)
{
	return t->errand.text.len > 0 || t->errand.n_calls > 0;
}

static int64_t answer_tokens(const struct errand *e)
{
	int64_t n = message_tokens((struct text) {.data = e->text.data, .len = e->text.len});

	if (e->end.usage.output > n / 8)
		return e->end.usage.output;
	for (unsigned i = 0; i < e->n_calls; i++)
		n += chat_estimate(e->calls[i].name) + chat_estimate(e->calls[i].arguments);
	return n;
}

static int store_piece(struct chat_turn *t, struct connection *db)
{
	struct turn_record *rec = &t->record;
	const struct message row = {
		.turn = rec->seq,
		.role = MESSAGE_ASSISTANT,
		.text = rec->piece,
		.tokens = rec->answer_tokens,
		.created_ms = clock_utc_ms(),
	};

	/* A message that was made before, and was not kept, is undone. */
	if (t->stored > 0)
		return store_message_append(db, rec->answer, row.text, row.tokens);
	return store_message_add(db, &row, &rec->answer);
}

/* What is not stored yet. Valid until the agent writes more, which may move it. */
static struct text rest_of(const struct chat_turn *t)
{
	const struct buf *text = &t->errand.text;

	return (struct text) {.data = text->data ? text->data + t->stored : "",
			      .len = text->len - t->stored};
}

/* ---- the end ---- */

static int store_calls(const struct chat_turn *t, struct connection *db)
{
	const struct message row = {
		.seq = t->record.answer,
		.tokens = t->record.answer_tokens,
		.calls = t->errand.calls,
		.n_calls = t->errand.n_calls,
	};

	return store_message_finish(db, &row);
}

static int end_run(struct work *w, int lane)
{
	static const enum turn_state states[] = {
		[AGENT_DONE] = TURN_DONE,     [AGENT_CALLS] = TURN_DONE,
		[AGENT_LENGTH] = TURN_DONE,   [AGENT_CANCELLED] = TURN_CANCELLED,
		[AGENT_FAILED] = TURN_FAILED,
	};
	struct chat_turn *t = turn_of_work(w);
	const struct agent_end *end = &t->errand.end;
	struct connection *db = store_lane(t->errand.chat->opts.store, lane);
	const struct turn row = {
		.seq = t->record.seq,
		.state = states[end->outcome],
		.ended_ms = clock_utc_ms(),
		.input_tokens = end->usage.input,
		.output_tokens = end->usage.output,
		.cache_read_tokens = end->usage.cache_read,
		.cache_written_tokens = end->usage.cache_written,
		.error = text_of(t->errand.error_text[0] ? t->errand.error_text : NULL),
	};
	int r = has_answer(t) ? store_piece(t, db) : 0;

	if (r == 0 && t->errand.n_calls > 0)
		r = store_calls(t, db);
	if (r == 0)
		r = store_message_set_tokens(db, t->record.last_message, t->tokens.last) ?:
			store_turn_end(db, &row) ?:
			lease_release(&t->errand, &t->record.lease, db);
	return r != 0 ? r : chat_publish_turn(t, turn_state_names[row.state]);
}

/* How the outcome is reported: a failed agent is a refusal with its own message. */
static int end_result(const struct chat_turn *t, struct error *error)
{
	if (t->fault != 0)
		return t->fault;
	if (t->errand.end.outcome != AGENT_FAILED)
		return 0;
	return refuse(error, REFUSE_INTERNAL, "%s: %s", t->errand.error_type, t->errand.error_text);
}

static void not_kept(struct chat_turn *t, int r)
{
	struct error error = {0};

	t->errand.conversation->stale = true;
	if (r == -ESTALE)
		r = refuse_lost(&error);
	else
		lease_give_back(&t->errand, &t->record.lease);
	errand_finish(&t->errand, r, &error);
}

static void end_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);
	struct live_conversation *c = t->errand.conversation;
	struct error error = {0};

	if (result != 0) {
		log_err("could not store turn", "conversation=%s error=%s", c->id,
			fault_words(result));
		not_kept(t, result);
		return;
	}
	window_grow(c, (has_answer(t) ? t->record.answer_tokens : 0) + t->tokens.correction,
		    has_answer(t));
	c->answered = c->answered || has_answer(t);
	result = end_result(t, &error);
	errand_finish(&t->errand, result, &error);
	/* Its asker gets the answer before the events of the end. */
	errand_report(&t->errand);
}

/* The provider counts everything it was sent; what came before the question is known, so the
 * rest is the question. */
static void count_question(struct chat_turn *t)
{
	struct turn_tokens *n = &t->tokens;
	int64_t question = t->errand.end.usage.input - n->before;
	int64_t others = n->question - n->last;

	/* What was shortened for the agent is stored whole, and counts as our own estimate. */
	if (t->errand.end.usage.input < 0 || t->errand.context.excess > 0)
		return;
	/* Do not believe a provider that counts next to nothing either: the budget would lose
	 * its meaning. */
	if (question < others + 1 + n->last / 8)
		question = others + 1 + n->last / 8;
	n->correction = question - n->question;
	n->last = question - others;
}

void turn_end(struct chat_turn *t)
{
	struct errand *e = &t->errand;
	int r;

	t->ending = true;
	/* It then ends when the piece on its way is stored. */
	if (t->flushing)
		return;
	if (t->timer)
		timer_stop(t->timer);
	arena_done(&e->context.arena);
	count_question(t);
	t->record.answer_tokens = answer_tokens(e);
	t->record.piece = rest_of(t);
	if (e->end.outcome == AGENT_FAILED)
		log_info("turn failed", "conversation=%s agent=%s type=%s", e->conversation->id,
			 e->agent->name, e->error_type);
	r = errand_submit(e, end_run, end_finished, true);
	if (r != 0)
		not_kept(t, r);
}

void turn_end_cancelled(struct chat_turn *t)
{
	t->errand.end.outcome = AGENT_CANCELLED;
	turn_end(t);
}

void turn_end_with_fault(struct chat_turn *t, int r)
{
	t->fault = r;
	errand_fail(&t->errand, "Fault", fault_words(r));
	turn_end(t);
}

/* ---- storing text from time to time ---- */

static int flush_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);
	struct connection *db = store_lane(t->errand.chat->opts.store, lane);

	return lease_check(&t->errand, &t->record.lease, db) ?: store_piece(t, db);
}

static void start_timer(struct chat_turn *t)
{
	uint64_t ms = FLUSH_MS + t->errand.text.len / 1024;

	if (t->stored == 0)
		ms = FIRST_FLUSH_MS;
	if (ms > FLUSH_MAX_MS || t->flush_failed)
		ms = FLUSH_MAX_MS;
	/* Write a little earlier, along with the others: one commit then stores the text of all
	 * turns that stream. */
	ms -= (loop_now_ms(t->errand.chat->opts.loop) + ms) % FIRST_FLUSH_MS;
	timer_start(t->timer, ms);
}

static void drop_piece(struct chat_turn *t)
{
	free((char *)t->record.piece.data);
	t->record.piece = (struct text) {0};
	t->flushing = false;
}

static void flush_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);

	if (result == 0) {
		t->stored += t->record.piece.len;
	} else {
		if (!t->flush_failed)
			log_err("could not store text, retrying", "conversation=%s error=%s",
				t->errand.conversation->id, fault_words(result));
		t->flush_failed = true;
	}
	drop_piece(t);
	if (t->ending)
		turn_end(t);
	else if (t->errand.text.len > t->stored)
		start_timer(t);
}

static void flush(void *arg)
{
	struct chat_turn *t = arg;
	struct text rest = rest_of(t);
	char *copy;

	if (t->flushing || rest.len == 0)
		return;
	copy = malloc(rest.len);
	if (!copy) {
		start_timer(t);
		return;
	}
	t->record.piece =
		(struct text) {.data = memcpy(copy, rest.data, rest.len), .len = rest.len};
	t->record.answer_tokens = answer_tokens(&t->errand);
	t->flushing = true;
	if (errand_submit(&t->errand, flush_run, flush_finished, true) != 0) {
		drop_piece(t);
		start_timer(t);
	}
}

void turn_flush_soon(struct chat_turn *t, size_t from)
{
	if (!t->timer && timer_new(t->errand.chat->opts.loop, flush, t, &t->timer) != 0)
		t->timer = NULL;
	if (t->timer && from == t->stored && !t->flushing)
		start_timer(t);
}
