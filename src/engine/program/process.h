/*
 * Programs that a client starts, looks at, writes to and ends: shells and servers of its own,
 * which outlive the call that started them but not the daemon.
 *
 * A command is run by /bin/sh under a supervisor (io/supervisor.h), on pipes or a terminal of its
 * own; when the command ends, so does what it has left behind. The last of what it printed is at
 * hand, by offsets that count all of it. Whoever approves is asked before a command is started and
 * before something is written to it, since what a shell reads it runs: agent "gateway", tool
 * "process", input {action, command, …}.
 *
 * All of it belongs to the loop. Nothing is in the store: processes that have ended are known for
 * as long as there are not too many. After a crash the kernel ends the program, and the next start what
 * carries its mark.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/peer.h"
#include "io/work.h"

struct approvals;
struct environment;
struct processes;
struct process_ask;
struct process_wait;

enum {
	PROCESS_RUNNING_MAX = 32,
	PROCESS_KEPT_MAX = 100, /* with those that have ended */
	PROCESS_ASKS_MAX = 64,  /* that wait for whoever approves */
	PROCESS_ID_MAX = 32,
	PROCESS_COMMAND_MAX = 64 << 10,
	PROCESS_ENV_MAX = 256,
	PROCESS_ENV_BYTES_MAX = 128 << 10,
	PROCESS_OUTPUT_MAX = 256 << 10, /* kept of one, the last; at least half of it */
	PROCESS_WRITE_MAX = 256 << 10,  /* at once */
};

struct processes_opts {
	struct loop *loop;
	const char *owner;           /* whose mark programs carry; see io/tree.h */
	struct approvals *approvals; /* NULL: nothing is allowed */
	/* To withdraw what a koined before us has asked; may be {0}. */
	struct background background;
	/* Where commands run; a workdir must be there or below it. NULL or "": in ours, or anywhere. */
	const char *folder;
	const struct environment *env; /* of commands; NULL: ours */
};

/* Refuses a folder that is none. The functions below take NULL for it, too, and refuse everything:
 * REFUSE_FORBIDDEN. */
int processes_new(const struct processes_opts *opts, struct processes **ret_processes,
		  struct why *why);

/* Begins nothing more and ends all that runs; fn comes when none is left, perhaps at once. When it is
 * called again, there is no grace. Accepts NULL. */
void processes_stop(struct processes *p, unsigned grace_ms, void (*fn)(void *arg), void *arg);
void processes_free(
	struct processes *p); /* accepts NULL; the loop must turn until all are reaped */

struct process_info {
	const char *id; /* "proc_" and a number; valid until it is forgotten */
	struct text command;
	struct text workdir;
	pid_t pid;
	bool terminal;
	bool running;
	bool killed; /* it was made to end */
	int status;  /* the exit code, or -1 with the signal */
	int signal;
	int64_t started_ms; /* UTC */
	int64_t ended_ms;   /* 0 while it runs */
	uint64_t output;    /* bytes that it has printed */
};

struct process_new {
	struct text command;
	struct text workdir;    /* {NULL, 0}: the folder */
	const struct text *env; /* "K=V", added to ours */
	unsigned n_env;
	bool terminal;
	struct peer peer; /* for whom; not known: for koined itself */
};

/* info is NULL unless result is 0. */
typedef void (*process_fn)(void *arg, int result, const struct process_info *info,
			   const struct why *why);

/*
 * For both of these, fn comes once, never before this has returned, when it was approved and done, or not:
 * REFUSE_FORBIDDEN (denied), REFUSE_TIMEOUT (nobody decided), REFUSE_LIMIT, REFUSE_PARAMS,
 * REFUSE_NOT_FOUND, REFUSE_CONFLICT (it reads nothing any more), REFUSE_STOPPING. What is
 * wrong with the ask itself is returned instead, and fn does not come. Texts are copied.
 */
int process_start(struct processes *all, const struct process_new *in, process_fn fn, void *arg,
		  struct process_ask **ret_ask, struct why *why);
int process_write(struct processes *all, struct text id, struct text data, bool eof,
		  const struct peer *peer, process_fn fn, void *arg, struct process_ask **ret_ask,
		  struct why *why);

/* fn does not come any more, and what was not approved yet is not done. Accepts NULL. */
void process_ask_leave(struct process_ask *a);

/* Newest first. */
int process_list(struct processes *all, struct process_info out[PROCESS_KEPT_MAX], unsigned *ret_n,
		 struct why *why);
int process_get(struct processes *all, struct text id, struct process_info *ret_info,
		struct why *why);

struct process_log {
	struct text bytes; /* valid until the loop turns */
	uint64_t offset;   /* of its first byte: later than asked if that is gone */
	uint64_t end;      /* of all that was printed so far */
};

/* At most limit bytes from offset on; negative: that many before the end. */
int process_log(struct processes *all, struct text id, int64_t offset, size_t limit,
		struct process_log *ret_log, struct why *why);

/* Ends it with all that it has started; fn comes when nobody is left, perhaps at once. */
int process_kill(struct processes *all, struct text id, process_fn fn, void *arg,
		 struct process_wait **ret_wait, struct why *why);
void process_wait_leave(struct process_wait *w); /* accepts NULL */
