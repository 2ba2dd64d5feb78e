/*
 * A child process in its own session and process group. Its output is delivered as it comes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"
#include "io/loop.h"

struct cgroup;
struct child;

struct child_opts {
	const char *const *argv; /* NULL-ended; argv[0] is looked up in PATH (of env) */
	const char *const *env;  /* NULL-ended "K=V"; NULL: ours */
	/* NULL-ended; added to env, or replaces what has the same name there. With TREE_VARIABLE
	 * in it the child is marked so that io/process/tree finds everything that it starts. */
	const char *const *more_env;
	const char *cwd;   /* NULL: ours; else also its PWD, unless more_env has one */
	const char *input; /* what it reads from its stdin; copied */
	size_t input_len;  /* with input NULL, stdin is /dev/null */
	/* Its 0, 1 and 2, which remain the caller's, instead of an input and outputs of its own
	 * (io/process/console); on_output is then not called. NULL: its own. */
	const int *streams;
	bool terminal; /* the first of them is a terminal */
	/*
 * Killed by the kernel when we end, even by SIGKILL; what it has started itself is not. For
 * the kernel "we" are the thread that starts it. Without on_started that is the caller's, which
 * must live as long as the process.
 */
	bool die_with_us;
	int confine; /* a ruleset of io/process/confine to put it under; 0: none */
	/* The cgroup that it begins in, which outlives its start; NULL: ours. Called by the thread
	 * that starts it, before that. May be NULL. */
	const struct cgroup *(*cgroup)(void *arg);

	/*
 * With this, it is started beside the loop: child_start copies what it needs, returns at once,
 * and this comes first of all callbacks. Not 0: as child_start would have returned it, and no
 * other call follows; the child must still be freed. NULL: child_start waits until it runs.
 */
	void (*on_started)(void *arg, int result, const struct error *error);
	/* Bytes of its stdout, or of its stderr. */
	void (*on_output)(void *arg, bool is_stderr, const char *data, size_t len);
	/*
 * It has ended (status is the exit code, or -1 with the signal; with 0 if somebody else has
 * waited for it) and both outputs are at their end, or grace_ms have passed since it ended:
 * grandchildren may hold them open for ever. Everything it wrote itself has been delivered by
 * then, even with a grace of 0; while reading is paused the time does not count. The last
 * call; the child must still be freed.
 */
	void (*on_exit)(void *arg, int status, int signal);
	unsigned grace_ms;
	void *arg;
};

/* From now on child_start refuses with REFUSE_FORBIDDEN, or no longer does. */
void child_forbid(bool forbid);
int child_check_allowed(struct error *error);

/* Whatever was asked to start before, and does not run yet, will not; what was being started just
 * then is killed at once. Any thread. */
void child_cancel_starts(void);

/* No program that is marked begins from then on (clock_boot_ms), however far its start has got; 0: at any
 * time. Who moves a time on that has passed cancels the starts before. Any thread. */
void child_begin_until(uint64_t boot_ms);

/* Refuses with REFUSE_NOT_FOUND when there is no such program or directory. */
int child_start(struct loop *l, const struct child_opts *opts, struct child **ret_child,
		struct error *error);

/* How many there are whose end was not seen yet, in all loops. Any thread. */
unsigned children_running(void);

/* 0 before it has started. */
pid_t child_pid(const struct child *c);

/* When it began, as tree_started counts. */
long long child_started(const struct child *c);

/* What follows may be called before it has started, and then has its effect once it has. */

/* Pauses or resumes reading its output: a child that prints faster than we can keep waits in its
 * own write. */
void child_read(struct child *c, bool on);

/* To its whole process group. */
void child_signal(struct child *c, int number);

/* SIGINT now, SIGTERM after interrupt_ms, SIGKILL after another terminate_ms, each to the whole
 * group, until nobody is left in it. on_exit comes as usual. */
void child_stop(struct child *c, unsigned interrupt_ms, unsigned terminate_ms);

/* The same, but SIGTERM now and SIGKILL after kill_after_ms. The first call of either counts. */
void child_terminate(struct child *c, unsigned kill_after_ms);

/* Kills what is left of its group; no callback comes any more. May be called from a callback.
 * The loop must turn until the child was reaped. Accepts NULL. */
void child_free(struct child *c);

/* For tests: nothing is started beside the loop meanwhile. */
void child_pause_starts(bool pause);

/*
 * The environment of a program that we start.
 *
 * Programs of our own house (an agent, a rule's command) get what we have. Programs that a
 * client or a model asked for get a short list of it. Neither gets the secrets of our
 * settings, nor our settings at all (KOINE_…), unless the settings give them to that program
 * by name.
 */

/* Whoever starts programs keeps a pointer to one, which may be filled in later. */
struct environment {
	const char *const *list; /* NULL-ended "NAME=VALUE"; NULL: all of ours */
};

struct environment_opts {
	const char *const *from;    /* our own; its texts are not copied */
	bool brief;                 /* the short list */
	const char *const *secrets; /* NULL-ended names of variables */
	const char *const *own; /* NULL-ended "NAME=VALUE" that every program gets: where we are */
	/* Words of the settings, NULL-ended: NAME, or NAME* which gives no secret, or
	 * NAME=VALUE. NULL: none. */
	const char *const *given;
};

/* Allocated from the arena, with the texts left where they were; 0 or -ENOMEM. */
int environment_make(struct arena *a, const struct environment_opts *o,
		     struct environment *ret_environment);

/* Whether this is such a word of the settings. */
bool environment_is_word(const char *word);

/* The value of a variable, or NULL. */
const char *environment_find(const struct environment *e, const char *name);

static inline const char *const *environment_list(const struct environment *e)
{
	return e ? e->list : NULL;
}
