/*
 * A program with everything that it starts: in a process group of its own, with a mark that
 * its descendants carry, in a cgroup where there can be one. The kernel kills it when we die.
 * Once it was told to end, nobody who carries its mark is left when its end is reported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/text.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/process/tree.h"

struct environment;
struct supervised;

struct supervised_opts {
	const char *const *argv;        /* NULL-ended */
	const struct environment *base; /* what its environment begins with; NULL: ours */
	const char *const *env; /* NULL-ended "K=V", added to that; the mark is added by itself */
	const char *cwd;        /* NULL: ours */
	struct text input;      /* what it reads; {NULL, 0}: nothing */
	const int *streams;     /* instead of an input and on_output: see io/process/child.h */
	bool terminal;
	const char *mark; /* of tree_mark; copied */
	const char *what; /* for the log: "task=task-0001"; copied */

	/* With this, it is started beside the loop: see io/process/child.h. NULL: supervised_start
	 * waits until it runs. */
	void (*on_started)(void *arg, int result, const struct error *error);
	void (*on_output)(void *arg, bool is_stderr, const char *data, size_t len);
	/*
 * It has ended. True: everything it has left behind is ended, too, which is then waited for;
 * that happens in any case after supervised_end or supervised_interrupt. NULL: false.
 */
	bool (*sweeps)(void *arg, int status, int signal);
	/* Once, as the last call: status is the exit code, or -1 with the signal. Free it
	 * afterwards. */
	void (*on_exit)(void *arg, int status, int signal);
	void *arg;
};

/* Refuses with REFUSE_NOT_FOUND when there is no such program or folder. */
int supervised_start(struct loop *l, const struct supervised_opts *opts,
		     struct supervised **ret_supervised, struct error *error);

/* Both 0 before it has started. */
pid_t supervised_pid(const struct supervised *s);
long long supervised_started(const struct supervised *s);

/* What follows may be called before it has started, and then has its effect once it has. */

/* SIGTERM to all of it, SIGKILL after kill_after_ms; at once with 0. If called again, also after
 * an interrupt, the sooner end counts. */
void supervised_end(struct supervised *s, unsigned kill_after_ms);

/* SIGINT to its group, SIGTERM to all of it after interrupt_ms, SIGKILL after another
 * terminate_ms. The first call counts; does nothing once it was told to end. */
void supervised_interrupt(struct supervised *s, unsigned interrupt_ms, unsigned terminate_ms);

/* Pauses or resumes reading what it prints. While paused, its end is not reported. */
void supervised_read(struct supervised *s, bool on);

/*
 * No more callbacks. Before its end was reported: kills all of it, without waiting. After
 * that, kills what is left in its group; other processes that nobody wanted swept go on. May
 * be called from on_output and on_exit. The loop must turn until the program was killed and
 * reaped. Accepts NULL.
 */
void supervised_free(struct supervised *s);
