/*
 * One attempt of an agent at a task or a session: a supervised program, or a turn of a
 * conversation where there is no such program. Either begins, prints, may be made to end, and
 * ends once. It stands inside whatever is attempted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/why.h"

struct chat;
struct chat_answer;
struct chat_ask;
struct chat_turn;
struct loop;
struct supervised;
struct supervised_opts;

/* Why it was made to end. */
enum intent { INTENT_NONE, INTENT_CANCEL, INTENT_TIMEOUT, INTENT_STOP };

enum outcome {
	OUTCOME_DONE,
	OUTCOME_FAILED,
	OUTCOME_CANCELLED, /* as was wanted */
	OUTCOME_KILLED,    /* the program, as a cancel would, by somebody else */
	OUTCOME_DROPPED,   /* the turn, by somebody else */
	N_OUTCOMES,
};

struct attempt_ops {
	/* What the program prints. */
	void (*on_output)(void *arg, bool is_stderr, const char *data, size_t n);
	/* What the turn says; as chat's. May be NULL. */
	void (*on_text)(void *arg, struct text whole, size_t from);
	/* The program has ended: whether all that it has left behind shall end, too. NULL: no. */
	bool (*sweeps)(void *arg);
	/* What the turn ended with, also before attempt_ask returns. May be NULL. */
	void (*on_answer)(void *arg, const struct chat_answer *answer);
	/* Once, as the last call; not before attempt_ask has returned. */
	void (*on_end)(void *arg);
};

struct attempt {
	const struct attempt_ops *ops;
	void *arg;
	struct supervised *program; /* or */
	struct chat_turn *turn;
	enum intent intent;
	bool ended;
	bool starting; /* attempt_ask has not returned */
	bool failed;   /* it never began, or the turn did not end well */
	bool dropped;  /* the turn was cancelled */
	int status;    /* the program's exit code, or -1 with the signal */
	int signal;
	struct why why; /* where it failed */
	size_t err_max;
	struct buf err; /* the end of its stderr; see attempt_said */
};

/* err_max: bytes of its stderr that are kept, the last. */
void attempt_init(struct attempt *a, const struct attempt_ops *ops, void *arg, size_t err_max);
void attempt_done(struct attempt *a); /* ends what runs, and nobody is told */

/* Starts a program. The callbacks and their argument are filled in. */
int attempt_run(struct attempt *a, struct loop *loop, struct supervised_opts *opts,
		struct why *why);

/* Starts a turn. It may have ended when this returns 0: on_end does not come then. */
int attempt_ask(struct attempt *a, struct chat *chat, const struct chat_ask *ask, struct why *why);

/* It never began, or cannot go on. */
void attempt_fail(struct attempt *a, const char *text);

/* Makes it end: with an interrupt_ms by SIGINT first, then by SIGTERM, after terminate_ms more by
 * SIGKILL. The first wish counts; false: it has ended, or was made to before. */
bool attempt_end(struct attempt *a, enum intent intent, unsigned interrupt_ms,
		 unsigned terminate_ms);

/* The end of what it wrote to stderr. */
struct text attempt_said(const struct attempt *a);

enum outcome attempt_outcome(const struct attempt *a);

/* Keeps the end of what is added: at most twice as much as max is held. */
void tail_add(struct buf *b, size_t max, const char *data, size_t n);
struct text tail_of(const struct buf *b, size_t max);
