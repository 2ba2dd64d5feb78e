/*
 * The recall agent: answer.c composes, this streams.
 *
 * One word per turn of the loop, so that a cancel can come between two and nobody else waits.
 * Without a delay a wake does that: a timer of 0 ms that restarts itself would run to its end
 * within one turn (libuv 1.44).
 */
#include "agent/recall/recall.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/list.h"

struct recall {
	struct agent agent;
	struct loop *loop;
	struct recall_opts opts; /* without its name */
	struct list turns;
	struct list probes;
};

struct agent_turn {
	struct list link;
	struct agent_sink sink;
	unsigned delay_ms;
	struct timer *timer; /* NULL without a delay */
	struct wake *wake;
	bool cancelled;
	char *text;
	size_t len;
	size_t told;
};

static const struct recall *recall_const(const struct agent *a)
{
	return (const struct recall *)a;
}

static struct recall *recall_of(struct agent *a)
{
	return (struct recall *)a;
}

/* ---- a turn ---- */

static void turn_free(struct agent_turn *t)
{
	if (!t)
		return;
	list_remove(&t->link);
	timer_free(t->timer);
	wake_free(t->wake);
	free(t->text);
	free(t);
}

CLEANUP_POINTER(agent_turn, turn_free)

static void turn_end(struct agent_turn *t, enum agent_outcome outcome)
{
	const struct agent_sink sink = t->sink;
	const struct agent_end end = {.outcome = outcome, .usage = AGENT_NO_USAGE};

	turn_free(t);
	sink.on_end(sink.arg, &end);
}

static bool recall_is_space(char c)
{
	return c == ' ' || c == '\n';
}

/* A word and the white space after it. */
static struct text next_piece(const struct agent_turn *t)
{
	size_t at = t->told;

	while (at < t->len && !recall_is_space(t->text[at]))
		at++;
	while (at < t->len && recall_is_space(t->text[at]))
		at++;
	return (struct text) {t->text + t->told, at - t->told};
}

static void step(void *arg)
{
	struct agent_turn *t = arg;
	struct text piece;

	if (t->cancelled || t->told == t->len) {
		turn_end(t, t->cancelled ? AGENT_CANCELLED : AGENT_DONE);
		return;
	}
	piece = next_piece(t);
	t->told += piece.len;
	/* Before the word: the sink may cancel, or free the agent with this turn. */
	if (t->timer && t->told < t->len)
		timer_start(t->timer, t->delay_ms);
	else
		wake_send(t->wake);
	t->sink.on_text(t->sink.arg, piece);
}

static void recall_cancel(struct agent_turn *t)
{
	if (t->cancelled)
		return;
	t->cancelled = true;
	if (t->timer)
		timer_stop(t->timer);
	wake_send(t->wake);
}

static int turn_new(struct recall *rc, struct text answer, const struct agent_sink *sink,
		    struct agent_turn **ret_turn)
{
	CLEANUP(turn_freep) struct agent_turn *t = calloc(1, sizeof(*t));
	int r = 0;

	if (!t)
		return -ENOMEM;
	list_init(&t->link);
	t->sink = *sink;
	t->delay_ms = rc->opts.word_delay_ms;
	t->len = answer.len;
	t->text = malloc(answer.len + 1);
	if (!t->text)
		return -ENOMEM;
	if (answer.len > 0)
		memcpy(t->text, answer.data, answer.len);
	if (t->delay_ms > 0)
		r = timer_new(rc->loop, step, t, &t->timer);
	if (r == 0)
		r = wake_new(rc->loop, step, t, &t->wake);
	if (r != 0)
		return r;
	list_append(&rc->turns, &t->link);
	wake_send(t->wake);
	*ret_turn = TAKE(t);
	return 0;
}

/* ---- the agent ---- */

static int recall_prepare(const struct agent *a, struct arena *arena, const struct agent_ask *ask,
			  struct text *ret_prepared)
{
	CLEANUP(buf_donep) struct buf out;
	char *copy;
	int r;

	buf_init(&out, RECALL_ANSWER_MAX);
	r = recall_answer(&recall_const(a)->opts, ask, &out);
	if (r != 0)
		return r;
	copy = arena_copy(arena, out.data, out.len);
	if (!copy)
		return -ENOMEM;
	*ret_prepared = (struct text) {copy, out.len};
	return 0;
}

static int recall_start(struct agent *a, const struct agent_ask *ask, const struct agent_sink *sink,
			struct agent_turn **ret_turn, struct error *error)
{
	struct recall *rc = recall_of(a);
	CLEANUP(buf_donep) struct buf out;

	buf_init(&out, RECALL_ANSWER_MAX);
	if (ask->prepared.data)
		return turn_new(rc, ask->prepared, sink, ret_turn);
	return recall_answer(&rc->opts, ask, &out) ?: turn_new(rc, buf_bytes(&out), sink, ret_turn);
}

static int recall_probe(struct agent *a, agent_health_fn fn, void *arg)
{
	struct recall *rc = recall_of(a);

	return health_later(rc->loop, &rc->probes, true, "built-in agent; uses no model", fn, arg);
}

static void recall_free(struct agent *a)
{
	struct recall *rc = recall_of(a);

	while (!list_empty(&rc->turns))
		turn_free(list_entry(list_first(&rc->turns), struct agent_turn, link));
	health_drop(&rc->probes);
	free(rc);
}

static const struct agent_ops recall_ops = {
	.kind = "recall",
	.wants_notes = true,
	.quotes_only = true,
	.prepare = recall_prepare,
	.start = recall_start,
	.cancel = recall_cancel,
	.probe = recall_probe,
	.free = recall_free,
};

int recall_new(struct loop *l, const struct recall_opts *opts, struct agent **ret_agent)
{
	struct recall *rc = calloc(1, sizeof(*rc));

	if (!rc)
		return -ENOMEM;
	rc->agent.ops = &recall_ops;
	snprintf(rc->agent.name, sizeof(rc->agent.name), "%s", opts->name);
	rc->agent.budget = opts->budget;
	rc->agent.reserve = opts->reserve;
	rc->loop = l;
	rc->opts = *opts;
	rc->opts.name = NULL;
	list_init(&rc->turns);
	list_init(&rc->probes);
	*ret_agent = &rc->agent;
	return 0;
}
