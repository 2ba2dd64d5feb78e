/*
 * What of a turn goes to the store: its text now and then while it comes, and at the end the
 * rest, the counts, and how it ended.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/chat/inner.h"
#include "store/store.h"

enum {
	FIRST_FLUSH_MS = 50,
	FLUSH_MS = 100,
	FLUSH_MAX_MS = 2000,
};

/* ---- the end ---- */

static enum turn_state end_state(const struct chat_turn *t)
{
	switch (t->outcome) {
	case AGENT_DONE:
	case AGENT_CALLS:
	case AGENT_LENGTH:
		return TURN_DONE;
	case AGENT_CANCELLED:
		return TURN_CANCELLED;
	case AGENT_FAILED:
		return TURN_FAILED;
	}
	return TURN_FAILED;
}

static bool has_answer(const struct chat_turn *t)
{
	return t->text.len > 0 || t->n_calls > 0;
}

static int store_piece(struct chat_turn *t, struct connection *db)
{
	const struct message_row row = {
		.turn = t->job.turn,
		.role = MESSAGE_ASSISTANT,
		.text = {.data = t->job.piece ? t->job.piece : "", .len = t->job.piece_len},
		.tokens = t->job.tokens,
		.created_ms = clock_utc_ms(),
	};

	if (t->job.answer != 0)
		return store_message_append(db, t->job.answer, row.text, row.tokens);
	return store_message_add(db, &row, &t->job.answer);
}

static int store_calls(struct chat_turn *t, struct connection *db)
{
	struct message_call calls[AGENT_CALLS_MAX];
	const struct message_row row = {
		.seq = t->job.answer,
		.tokens = t->job.tokens,
		.calls = calls,
		.n_calls = t->n_calls,
	};

	for (unsigned i = 0; i < t->n_calls; i++)
		calls[i] = (struct message_call) {.id = t->calls[i].id,
						  .name = t->calls[i].name,
						  .arguments = t->calls[i].arguments};
	return store_message_finish(db, &row);
}

static int store_end(struct chat_turn *t, struct connection *db)
{
	const struct turn_row row = {
		.seq = t->job.turn,
		.state = end_state(t),
		.ended_ms = clock_utc_ms(),
		.input_tokens = t->usage.input,
		.output_tokens = t->usage.output,
		.cache_read_tokens = t->usage.cache_read,
		.cache_written_tokens = t->usage.cache_written,
		.error = text_of(t->error_text[0] ? t->error_text : NULL),
	};
	int r = 0;

	if (has_answer(t))
		r = store_piece(t, db);
	if (r == 0 && t->n_calls > 0)
		r = store_calls(t, db);
	if (r == 0)
		r = store_message_set_tokens(db, t->job.last_message, t->last_tokens);
	if (r == 0)
		r = store_turn_end(db, &row);
	if (r == 0)
		r = chat_publish_turn(t, turn_state_name(row.state));
	return r;
}

static int end_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);

	return store_end(t, turn_store(t, lane));
}

/* What the answer is told as: a failed agent is a refusal with its words. */
static int end_result(const struct chat_turn *t, struct why *why)
{
	if (t->fault != 0)
		return t->fault;
	if (t->outcome != AGENT_FAILED)
		return 0;
	return refuse(why, REFUSE_INTERNAL, "%s: %s", t->error_type, t->error_text);
}

static void end_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);
	struct conversation *c = t->conversation;
	struct why why = {0};

	t->job.under_way = false;
	if (result != 0) {
		c->stale = true;
		log_err("turn not kept", "conversation=%s error=%s", c->id, strerror(-result));
		turn_done(t, result, &why);
		return;
	}
	window_grow(c, (has_answer(t) ? t->job.tokens : 0) + t->question_correction, has_answer(t));
	c->answered = c->answered || has_answer(t);
	result = end_result(t, &why);
	turn_done(t, result, &why);
}

/* The provider counts what it was sent as a whole; what stood there before is known, so
 * the rest is the question. */
static void count_question(struct chat_turn *t)
{
	int64_t question = t->usage.input - t->sent_before;
	int64_t others = t->question_tokens - t->last_tokens;

	/* What was shortened for the agent is kept whole, and weighs what we took it for. */
	if (t->usage.input < 0 || t->job.excess > 0)
		return;
	/* Nor is a provider believed that counts next to nothing: the budget would mean nothing. */
	if (question < others + 1 + t->last_tokens / 8)
		question = others + 1 + t->last_tokens / 8;
	t->question_correction = question - t->question_tokens;
	t->last_tokens = question - others;
}

static int64_t answer_tokens(const struct chat_turn *t)
{
	int64_t n = message_tokens((struct text) {.data = t->text.data, .len = t->text.len});

	if (t->usage.output > n / 8)
		return t->usage.output;
	for (unsigned i = 0; i < t->n_calls; i++)
		n += chat_estimate(t->calls[i].name) + chat_estimate(t->calls[i].arguments);
	return n;
}

static int take_piece(struct chat_turn *t)
{
	size_t n = t->text.len - t->stored;

	t->job.piece = malloc(n > 0 ? n : 1);
	if (!t->job.piece)
		return -ENOMEM;
	if (n > 0)
		memcpy(t->job.piece, t->text.data + t->stored, n);
	t->job.piece_len = n;
	return 0;
}

void turn_end(struct chat_turn *t)
{
	struct why why = {0};
	int r;

	t->stage = STAGE_ENDS;
	if (t->timer)
		timer_stop(t->timer);
	arena_done(&t->job.context);
	count_question(t);
	t->job.tokens = answer_tokens(t);
	if (t->outcome == AGENT_FAILED)
		log_info("turn failed", "conversation=%s agent=%s type=%s", t->conversation->id,
			 t->agent->name, t->error_type);
	r = take_piece(t);
	if (r == 0)
		r = turn_submit(t, end_run, end_finished, true);
	if (r != 0) {
		t->conversation->stale = true;
		turn_done(t, r, &why);
	}
}

void turn_end_with_fault(struct chat_turn *t, int r)
{
	t->fault = r;
	t->outcome = AGENT_FAILED;
	snprintf(t->error_type, sizeof(t->error_type), "%s", "Fault");
	snprintf(t->error_text, sizeof(t->error_text), "%s", strerror(-r));
	turn_end(t);
}

/* ---- now and then ---- */

static int flush_run(struct work *w, int lane)
{
	struct chat_turn *t = turn_of_work(w);

	return store_piece(t, turn_store(t, lane));
}

void turn_flush_soon(struct chat_turn *t)
{
	uint64_t ms = FLUSH_MS + t->text.len / 1024;

	if (t->stored == 0)
		ms = FIRST_FLUSH_MS;
	if (ms > FLUSH_MAX_MS || t->flush_failed)
		ms = FLUSH_MAX_MS;
	/* A little earlier, with others: one commit then keeps the text of all that stream. */
	ms -= (loop_now_ms(t->chat->loop) + ms) % FIRST_FLUSH_MS;
	timer_start(t->timer, ms);
}

static void flush_finished(struct work *w, int result)
{
	struct chat_turn *t = turn_of_work(w);
	int64_t answer = t->job.answer;

	t->job.under_way = false;
	if (result == 0) {
		t->stored += t->job.piece_len;
	} else {
		/* The whole is tried again; a message that was only just made is undone. */
		if (!t->flush_failed)
			log_err("text not kept yet", "conversation=%s error=%s",
				t->conversation->id, strerror(-result));
		t->flush_failed = true;
		t->job.answer = t->stored > 0 ? answer : 0;
	}
	free(t->job.piece);
	t->job.piece = NULL;
	if (t->stage == STAGE_ENDS)
		turn_end(t);
	else if (t->text.len > t->stored)
		turn_flush_soon(t);
}

void turn_flush(void *arg)
{
	struct chat_turn *t = arg;

	if (t->job.under_way || t->text.len == t->stored)
		return;
	t->job.tokens = answer_tokens(t);
	if (take_piece(t) != 0 || turn_submit(t, flush_run, flush_finished, true) != 0) {
		free(t->job.piece);
		t->job.piece = NULL;
		turn_flush_soon(t);
	}
}
