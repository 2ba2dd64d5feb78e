/*
 * Tasks: prompts that agents work on, one after another or side by side, without
 * anybody waiting.
 *
 * Which task may begin is decided on the loop: the highest priority first, first come first
 * served within one, as far as the limits (in all, of its project, of its group) have room,
 * what it comes after is completed, and its time has come. What happened to a task is in
 * the store before anybody is told.
 *
 * A task runs as a program in a process group of its own, or as a conversation of one turn.
 * Its output goes to a file as it comes. Cancelled, it ends cancelled, however its program
 * exits, and no process of it is left.
 *
 * Functions that take a lane read on that worker's connection; all others belong to the
 * loop's thread. Texts that are given are copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/noun/task.h"
#include "base/text.h"
#include "base/value.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/work.h"

struct environment;
struct chat;
struct events;
struct store;
struct tasks;

enum {
	TASK_PROMPT_MAX = 8 << 20,
	TASK_AFTER_MAX = 64,
	TASK_ENV_MAX = 256,
	TASK_NAME_MAX = 128,       /* of a group, an agent */
	TASK_LIST_MAX = 1000,      /* what a list may bring at most; by default 20 */
	TASK_RESULT_MAX = 1 << 20, /* bytes of output that are kept as result: the last */
	TASK_LIST_TEXT = 64 << 10, /* characters of a prompt, a result, an error in a list */
	TASK_BRIEF_TEXT = 200,     /* the same in a brief one */
};

struct task_group_limit {
	const char *name;
	unsigned parallel;
};

/* A folder that tasks belong to. */
struct task_project {
	const char *folder; /* absolute; "": of none, and tasks run in the daemon's own folder */
	unsigned parallel;  /* 0: the default */
	int64_t timeout_ms; /* 0: the default */
	unsigned queue;     /* its tasks that wait; 0: only the limit for all */
	/* The program that runs its tasks unless they name an agent of the settings: argv before "-p",
	 * NULL-ended; NULL: "claude" if it is in PATH, else the default agent. */
	const char *const *program;
};

/* Sentences for a task's error, by the dialect whose clients show them. */
struct task_wording {
	const char *stopped; /* it ran when the daemon stopped */
	/* REFUSE_NOT_FOUND: there is no such program. */
	int (*no_program)(struct why *why, const char *name);
	/* Its program ended badly and wrote nothing to stderr. */
	void (*exited)(char *out, size_t size, int status, int signal);
	void (*timed_out)(char *out, size_t size, int64_t timeout_ms);
};

struct tasks_opts {
	struct store *store;
	struct events *events;
	struct chat *chat; /* whose agents run tasks */
	struct loop *loop;
	struct background background;
	const char *output_folder; /* absolute; made 0700 */
	unsigned parallel;         /* in all; 0: 16 */
	unsigned project_parallel; /* in one project; 0: 3 */
	unsigned queue;            /* tasks that wait, in all; 0: 1000 */
	int64_t timeout_ms;        /* of one attempt; 0: 120 minutes */
	int64_t output_bytes; /* in one task's file, and as much again in the one before; 0: 16 MiB */
	int64_t keep_ms;      /* ended tasks; 0: for ever */
	unsigned interrupt_ms; /* SIGTERM to SIGKILL; 0: 5 s */
	/* Of tasks that name none: an agent, or "claude"; NULL or "": not said. */
	const char *runner;
	/* Of claude; NULL: ours. An agent of the settings has its own. */
	const struct environment *env;
	const struct task_wording *wording;
	const struct task_group_limit *groups;
	unsigned n_groups;
	const struct task_project *projects; /* those known at the start */
	unsigned n_projects;
};

/*
 * Before the first call. Ends what a crash left behind: processes that carry our marks, tasks that
 * were running ("daemon restarted", or queued again where they may be tried again). The process
 * should have a tree_keeper.
 */
int tasks_start(const struct tasks_opts *opts, struct tasks **ret_tasks, struct why *why);

/*
 * What the marks of all processes begin with that are this store's (see tree_mark): the next
 * tasks_start, and tasks_free, end whoever carries one, a task's or not. NULL for NULL.
 */
const char *tasks_owner(const struct tasks *t);

/* Adds a project; one that is known gets these limits. */
int tasks_add_project(struct tasks *t, const struct task_project *project);

/* Begins nothing new. What runs has grace_ms to end by itself; then it is stopped as a cancel would, but
 * fails with the wording's `stopped`. fn is called when nothing runs any more. Queued tasks stay. With a
 * grace of 0, also in a second call, what runs is killed at once. */
void tasks_stop(struct tasks *t, unsigned grace_ms, void (*fn)(void *arg), void *arg);

/* Accepts NULL; after the last work has finished. */
void tasks_free(struct tasks *t);

struct task_new {
	/* As the client gives it; of metadata the value. A timeout_ms and a retry_ms of 0 are the
	 * default. What a client does not give is made. */
	struct task task;
	const struct text *env; /* "K=V" */
	unsigned n_env;
	int64_t delay_ms;
	int64_t retries; /* beside the first attempt */
	bool until_begun; /* where there is room it is told when its program runs: its pid is known */
};

struct task_submitted {
	struct text project;
	struct text id;
	enum task_state state; /* queued, or running where there was room */
};

typedef void (*task_submitted_fn)(void *arg, int result, const struct task_submitted *task,
				  const struct why *why);

/* fn comes once, when it is on disk (until_begun: and has begun, where it can at once). REFUSE_PARAMS, REFUSE_LIMIT (the queue is full),
 * REFUSE_STOPPING, REFUSE_NOT_FOUND for an unknown project or a task in `after`. */
void task_submit(struct tasks *t, const struct task_new *in, task_submitted_fn fn, void *arg);

typedef void (*task_done_fn)(void *arg, int result, const struct why *why);

/* REFUSE_NOT_FOUND, REFUSE_CONFLICT for one that is at its end. project {NULL, 0}: whichever has it;
 * two have it: REFUSE_PARAMS. fn comes when a queued one is cancelled for good, for a running one
 * when that is wanted on disk and its processes have been told. */
void task_cancel(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg);

/* One that is held may begin. REFUSE_CONFLICT where it is not held. */
void task_release(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg);
/* Calls fn for every held task of a project. */
void tasks_each_held(struct tasks *t, struct text project, void (*fn)(void *arg, struct text id),
		     void *arg);

/* Queues one again that failed or was cancelled; its attempts are counted anew. */
void task_retry(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg);

/* One with the end of what it has printed. */
struct printed_task {
	struct task task;
	struct text output;
};

/* Tasks that another daemon has kept. */
struct task_import {
	const char *output_folder; /* these two as in tasks_opts, but not 0 */
	int64_t output_bytes;
	const struct printed_task *tasks;
	unsigned n;
};

/* Before tasks_start and the threads. All or none; those that are known stay as they are. *ret_n: how
 * many were not. */
int tasks_import(struct store *store, struct arena *a, const struct task_import *in,
		 unsigned *ret_n);

struct task_filter {
	struct text project; /* {NULL, 0}: all */
	int state;           /* -1: any */
	struct text group;
	int64_t limit; /* as given: 0 is 20; above TASK_LIST_MAX is that */
	bool brief;    /* of task_list */
};

/* On the loop, from what is at hand: false when it takes a reader (task_list). Rows are valid until
 * the loop turns. */
bool task_list_now(struct tasks *t, const struct task_filter *f,
		   const struct task *const **ret_tasks, unsigned *ret_n);

/*
 * On the loop, for one that task_list_now has given: room for what somebody (`by`) makes of it,
 * so that it is worded once for as long as it stays as it is. Empty when it is to be filled; what
 * does not fit (err) is not kept. NULL: no memory.
 */
struct buf *task_rendered(struct tasks *t, const struct task *task, const void *by);

/* Newest first, without env; texts are cut, at most in the middle of a result's last character.
 * Brief: without result and metadata. A list ends early only where the rows of it are more than 8 MiB. */
int task_list(struct tasks *t, int lane, struct arena *a, const struct task_filter *f,
	      struct task **ret_tasks, unsigned *ret_n, struct why *why);

/* REFUSE_NOT_FOUND. */
int task_get(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
	     struct task *ret_task, struct why *why);
/* With the last `max` bytes of its output. */
int task_get_printed(struct tasks *t, int lane, struct arena *a, struct text project,
		     struct text id, size_t max, struct printed_task *ret_task, struct why *why);

/* On the loop, after it was read: what has happened to it that the store does not have yet. */
void task_catch_up(struct tasks *t, struct task *task);
void task_catch_up_printed(struct tasks *t, struct printed_task *task);

struct task_output {
	struct text bytes;
	int64_t offset; /* of the first of them, in all that was ever printed */
	int64_t end;    /* of all that was printed so far */
	bool running;   /* there may be more */
};

/* From offset on, at most max bytes; what was rotated away is skipped. offset < 0: the last -offset. */
int task_output(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
		int64_t offset, size_t max, struct task_output *ret_output, struct why *why);

/* On the loop, from what is at hand: it is queued or runs. False where only the store knows. */
bool task_is_open(struct tasks *t, struct text project, struct text id);

/* Groups that have tasks, by name. project {NULL, 0}: of all. */
int task_groups(struct tasks *t, int lane, struct arena *a, struct text project,
		struct task_tally **ret_groups, unsigned *ret_n);

struct task_counts {
	int64_t total;
	int64_t n[N_TASK_STATES];
};

/* At hand. project {NULL, 0}: of all. */
void task_count(struct tasks *t, struct text project, struct task_counts *ret_counts);

struct task_load {
	unsigned n_running;
	unsigned n_queued;
	unsigned parallel;
};

/* What runs and waits in a project ({NULL, 0}: in all) now; the tasks themselves, running first. Valid
 * until the loop turns. */
void task_load(struct tasks *t, struct text project, struct task_load *ret_load,
	       const struct task *const **ret_tasks, unsigned *ret_n);
