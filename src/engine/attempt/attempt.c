#include "engine/attempt/attempt.h"

#include <signal.h>

#include "agent/agent.h"
#include "base/error.h"
#include "engine/chat/chat.h"
#include "io/process/supervisor.h"

/* ---- tails ---- */

void tail_add(struct buf *b, size_t max, const char *data, size_t n)
{
	if (n > max) {
		data += n - max;
		n = max;
	}
	if (b->len + n > 2 * max)
		buf_consume(b, b->len + n - max);
	buf_add(b, data, n);
}

struct text tail_of(const struct buf *b, size_t max)
{
	size_t from = b->len > max ? b->len - max : 0;

	/* Do not cut in the middle of a character. */
	while (from > 0 && from < b->len && ((unsigned char)b->data[from] & 0xc0) == 0x80)
		from++;
	return (struct text) {.data = b->data ? b->data + from : "", .len = b->len - from};
}

struct text attempt_said(const struct attempt *a)
{
	return tail_of(&a->err, a->err_max);
}

/* ---- start and end ---- */

void attempt_init(struct attempt *a, const struct attempt_ops *ops, void *arg, size_t err_max)
{
	*a = (struct attempt) {.ops = ops, .arg = arg, .err_max = err_max};
	buf_init(&a->err, 2 * err_max);
}

void attempt_done(struct attempt *a)
{
	supervised_free(a->program);
	if (a->turn)
		chat_turn_forget(a->turn);
	a->program = NULL;
	a->turn = NULL;
	buf_done(&a->err);
}

void attempt_fail(struct attempt *a, const char *text)
{
	refuse(&a->error, REFUSE_UNAVAILABLE, "%s", text);
	a->failed = true;
	a->ended = true;
}

bool attempt_end(struct attempt *a, enum intent intent, unsigned interrupt_ms,
		 unsigned terminate_ms)
{
	if (a->ended || a->intent != INTENT_NONE)
		return false;
	a->intent = intent;
	if (a->program && interrupt_ms > 0)
		supervised_interrupt(a->program, interrupt_ms, terminate_ms);
	else if (a->program)
		supervised_end(a->program, terminate_ms);
	else if (a->turn)
		chat_turn_cancel(a->turn);
	return true;
}

enum outcome attempt_outcome(const struct attempt *a)
{
	if (a->intent == INTENT_CANCEL)
		return OUTCOME_CANCELLED;
	if (a->intent != INTENT_NONE || a->failed)
		return OUTCOME_FAILED;
	if (a->dropped)
		return OUTCOME_DROPPED;
	if (a->signal == SIGTERM || a->signal == SIGKILL)
		return OUTCOME_KILLED;
	return a->status == 0 && a->signal == 0 ? OUTCOME_DONE : OUTCOME_FAILED;
}

/* ---- as a program ---- */

static void on_started(void *arg, int result, const struct error *error)
{
	struct attempt *a = arg;

	if (result != 0) {
		supervised_free(a->program);
		a->program = NULL;
	}
	a->ops->on_started(a->arg, result, error);
}

static void attempt_on_output(void *arg, bool is_stderr, const char *data, size_t n)
{
	struct attempt *a = arg;

	if (is_stderr)
		tail_add(&a->err, a->err_max, data, n);
	a->ops->on_output(a->arg, is_stderr, data, n);
}

static void exited(struct attempt *a, int status, int signal)
{
	a->ended = true;
	a->status = status;
	a->signal = signal;
}

static bool sweeps(void *arg, int status, int signal)
{
	struct attempt *a = arg;

	exited(a, status, signal);
	return a->ops->sweeps && a->ops->sweeps(a->arg);
}

static void on_exit(void *arg, int status, int signal)
{
	struct attempt *a = arg;

	exited(a, status, signal);
	a->ops->on_end(a->arg);
}

int attempt_run(struct attempt *a, struct loop *loop, struct supervised_opts *opts,
		struct error *error)
{
	opts->on_started = a->ops->on_started ? on_started : NULL;
	opts->on_output = attempt_on_output;
	opts->sweeps = sweeps;
	opts->on_exit = on_exit;
	opts->arg = a;
	return supervised_start(loop, opts, &a->program, error);
}

/* ---- as a turn ---- */

static void on_text(void *arg, struct text whole, size_t from)
{
	struct attempt *a = arg;

	a->ops->on_text(a->arg, whole, from);
}

static void on_done(void *arg, const struct chat_answer *answer)
{
	struct attempt *a = arg;

	a->turn = NULL;
	if (answer->result != 0)
		attempt_fail(a, error_words(answer->result, answer->error));
	a->dropped = answer->outcome == AGENT_CANCELLED;
	a->ended = true;
	if (a->ops->on_answer)
		a->ops->on_answer(a->arg, answer);
	a->ops->on_end(a->arg);
}

int attempt_ask(struct attempt *a, struct chat *chat, const struct chat_ask *ask,
		struct error *error)
{
	const struct chat_sink sink = {
		.on_text = a->ops->on_text ? on_text : NULL, .on_done = on_done, .arg = a};

	return chat_send(chat, ask, &sink, &a->turn, error);
}
