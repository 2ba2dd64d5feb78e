/*
 * One attempt of an agent at a task or a session: a supervised program, or a turn of a
 * conversation if there is no such program. Either one starts, prints, can be stopped, and
 * ends exactly once. It is embedded in the thing that is attempted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/error.h"

struct chat;
struct chat_answer;
struct chat_ask;
struct chat_turn;
struct loop;
struct supervised;
struct supervised_opts;

/* Why it was stopped. */
enum intent { INTENT_NONE, INTENT_CANCEL, INTENT_TIMEOUT, INTENT_STOP };

enum outcome {
	OUTCOME_DONE,
	OUTCOME_FAILED,
	OUTCOME_CANCELLED, /* on request */
	OUTCOME_KILLED,    /* somebody else ended the program, as a cancel would */
	OUTCOME_DROPPED,   /* somebody else cancelled the turn */
	N_OUTCOMES,
};

struct attempt_ops {
	/* The program runs; or it does not, with what attempt_run would have returned. Comes before
	 * all others, after attempt_run has returned 0. NULL: attempt_run waits for that. */
	void (*on_started)(void *arg, int result, const struct error *error);
	/* What the program prints. */
	void (*on_output)(void *arg, bool is_stderr, const char *data, size_t n);
	/* What the turn says, in chat's form. May be NULL. */
	void (*on_text)(void *arg, struct text whole, size_t from);
	/* The program has ended: should everything that it left behind be ended, too? NULL: no. */
	bool (*sweeps)(void *arg);
	/* The result of the turn. May be NULL. */
	void (*on_answer)(void *arg, const struct chat_answer *answer);
	/* Called once, as the last call. */
	void (*on_end)(void *arg);
};

struct attempt {
	const struct attempt_ops *ops;
	void *arg;
	struct supervised *program; /* or */
	struct chat_turn *turn;
	enum intent intent;
	bool ended;
	bool failed;  /* it never started, or the turn did not end well */
	bool dropped; /* the turn was cancelled */
	int status;   /* the program's exit code, or -1 if a signal ended it */
	int signal;
	struct error error; /* why it failed */
	size_t err_max;
	struct buf err; /* the end of its stderr; see attempt_said */
};

/* err_max: how many of the last bytes of its stderr are kept. */
void attempt_init(struct attempt *a, const struct attempt_ops *ops, void *arg, size_t err_max);
void attempt_done(struct attempt *a); /* stops what is running, without telling anyone */

/* Starts a program. This fills in the callbacks and their argument. What opts points at is copied. */
int attempt_run(struct attempt *a, struct loop *loop, struct supervised_opts *opts,
		struct error *error);

/* Starts a turn. */
int attempt_ask(struct attempt *a, struct chat *chat, const struct chat_ask *ask,
		struct error *error);

/* It never started, or cannot continue. */
void attempt_fail(struct attempt *a, const char *text);

/* Stops it: by SIGINT first if there is an interrupt_ms, then by SIGTERM, and by SIGKILL after
 * another terminate_ms. Only the first request counts; false: it has ended or was already
 * stopped. */
bool attempt_end(struct attempt *a, enum intent intent, unsigned interrupt_ms,
		 unsigned terminate_ms);

/* The end of what it wrote to stderr. */
struct text attempt_said(const struct attempt *a);

enum outcome attempt_outcome(const struct attempt *a);

/* Keeps the end of what is added: at most twice max bytes are held. */
void tail_add(struct buf *b, size_t max, const char *data, size_t n);
struct text tail_of(const struct buf *b, size_t max);
