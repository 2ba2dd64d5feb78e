/*
 * Programs that a client starts, reads, writes to and ends: shells and servers of its own,
 * which outlive the call that started them but not the daemon.
 *
 * A command is run by /bin/sh under a supervisor (io/process/supervisor.h), on pipes or a terminal
 * of its own; when the command ends, everything that it left behind is ended, too. The end of its
 * output is held in memory, addressed by offsets that count all of the output. The approver is
 * asked before a command is started and before something is written to it, since a shell runs
 * what it reads: agent "gateway", tool "process", input {action, command, …}.
 *
 * Everything belongs to the loop. Nothing is in the store: processes that have ended are
 * remembered until there are too many. After a crash the kernel ends the program, and the next
 * start ends whatever carries its mark.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/text.h"
#include "base/error.h"
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
	PROCESS_KEPT_MAX = 100, /* including those that have ended */
	PROCESS_ASKS_MAX = 64,  /* that wait for the approver */
	PROCESS_ID_MAX = 32,
	PROCESS_COMMAND_MAX = 64 << 10,
	PROCESS_ENV_MAX = 256,
	PROCESS_ENV_BYTES_MAX = 128 << 10,
	/* The last part of the output of one is kept: at least half of this. */
	PROCESS_OUTPUT_MAX = 256 << 10,
	PROCESS_WRITE_MAX = 256 << 10, /* at once */
};

struct processes_opts {
	struct loop *loop;
	const char *owner;           /* its mark is on the programs; see io/process/tree.h */
	struct approvals *approvals; /* NULL: nothing is allowed */
	/* Used to withdraw what an earlier koined has asked; may be {0}. */
	struct workers *workers;
	/* Where commands run; a workdir must be this folder or below it. NULL or "": in ours,
	 * and a workdir may be anywhere. */
	const char *folder;
	const struct environment *env; /* of commands; NULL: ours */
	const char *id_name; /* how its clients name a process, for the approver; NULL: "id" */
};

/* Refuses a path that is not a folder. The functions below also accept NULL, and then refuse
 * everything: REFUSE_FORBIDDEN. */
int processes_new(const struct processes_opts *opts, struct processes **ret_processes,
		  struct error *error);

/* Starts nothing more and ends everything that is running; calls fn when none is left, perhaps
 * at once. If it is called again, there is no grace period. Accepts NULL. */
void processes_stop(struct processes *p, unsigned grace_ms, void (*fn)(void *arg), void *arg);
void processes_free(struct processes *p); /* accepts NULL; run the loop until all are reaped */

struct process_info {
	const char *id; /* "proc_" and a number; valid until it is dropped */
	struct text command;
	struct text workdir;
	pid_t pid;
	bool terminal;
	bool running;
	bool killed; /* it was ended by us */
	int status;  /* the exit code, or -1 if a signal ended it */
	int signal;
	int64_t started_ms; /* UTC */
	int64_t ended_ms;   /* 0 while it is running */
	uint64_t output;    /* bytes that it has printed */
};

struct process_new {
	struct text command;
	struct text workdir;    /* {NULL, 0}: the folder */
	const struct text *env; /* "K=V", added to ours */
	unsigned n_env;
	bool terminal;
	struct peer peer; /* the client; if unknown, koined itself */
};

/* info is NULL unless result is 0. */
typedef void (*process_fn)(void *arg, int result, const struct process_info *info,
			   const struct error *error);

/*
 * Both call fn once, never before they return, when it was approved and done, or not:
 * REFUSE_FORBIDDEN (denied), REFUSE_TIMEOUT (nobody decided), REFUSE_LIMIT, REFUSE_PARAMS,
 * REFUSE_NOT_FOUND, REFUSE_CONFLICT (it no longer reads input), REFUSE_STOPPING. A fault in
 * the request itself is returned instead, and fn is not called. Texts are copied.
 */
int process_start(struct processes *all, const struct process_new *in, process_fn fn, void *arg,
		  struct process_ask **ret_ask, struct error *error);
int process_write(struct processes *all, struct text id, struct text data, bool eof,
		  const struct peer *peer, process_fn fn, void *arg, struct process_ask **ret_ask,
		  struct error *error);

/* fn is not called any more, and what is not approved yet is not done. Accepts NULL. */
void process_ask_leave(struct process_ask *a);

/* Newest first. */
int process_list(struct processes *all, struct process_info out[PROCESS_KEPT_MAX], unsigned *ret_n,
		 struct error *error);
int process_get(struct processes *all, struct text id, struct process_info *ret_info,
		struct error *error);

struct process_log {
	struct text bytes; /* valid until the next pass of the loop */
	uint64_t offset;   /* of its first byte: later than requested if that is gone */
	uint64_t end;      /* of everything that was printed so far */
};

/* At most limit bytes starting at offset; negative: that many before the end. */
int process_log(struct processes *all, struct text id, int64_t offset, size_t limit,
		struct process_log *ret_log, struct error *error);

/* Ends it with everything that it has started; calls fn, later, when nothing is left. *ret_wait NULL: it had ended
 * already, and fn is not called. */
int process_kill(struct processes *all, struct text id, process_fn fn, void *arg,
		 struct process_wait **ret_wait, struct process_info *ret_info,
		 struct error *error);
void process_wait_leave(struct process_wait *w); /* accepts NULL */
