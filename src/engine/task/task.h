/*
 * Tasks: prompts that agents work on, one after another or in parallel, while their users do something else.
 *
 * The loop decides which task may start: the highest priority first, and first come, first
 * served among equals, provided that the limits (global, of its project, of its group) leave
 * room, its predecessors are completed, and its time has come. Everything that happens to a
 * task is in the store before it is reported.
 *
 * A task runs as a program in a process group of its own, or as a conversation of one turn.
 * Its output goes to a file as it arrives. A task that is cancelled ends as cancelled, however
 * its program exits, and none of its processes is left.
 *
 * Functions that take a lane read on that worker's connection; all others belong to the loop's
 * thread. Texts that are passed in are copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "model/task.h"
#include "base/text.h"
#include "base/error.h"
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
	TASK_NAME_MAX = 128,     /* of a group, an agent */
	GROUP_LIMITS_MAX = 1000, /* groups that have limits */
	TASK_LABEL_MAX = 80,
	TASK_WORDS_MAX = 4096,      /* of a command */
	TASK_COMMAND_MAX = 1 << 20, /* bytes of all of them */
	TASK_PAUSES_MAX = 256,      /* groups that are paused at once */
	TASK_LIST_MAX = 1000,
	TASK_LIST_DEFAULT = 20,
	TASK_RESULT_MAX = 1 << 20, /* bytes of output that are kept as the result: the last ones */
	TASK_LIST_TEXT = 64 << 10, /* characters of a prompt, a result, an error in a list */
	TASK_BRIEF_TEXT = 200,     /* the same in a brief one */
};

/* In place of a host's name: any may run it. */
#define TASK_ANY_HOST "any"

struct task_group_limit {
	const char *name;
	unsigned parallel;
};

/* A folder that tasks belong to. */
struct task_project {
	const char *folder; /* absolute; "": no folder, and tasks run in the daemon's own */
	unsigned parallel;  /* 0: the default (tasks_opts) */
	int64_t timeout_ms; /* 0: the default */
	unsigned queue;     /* its waiting tasks; 0: only the global limit */
	/* The program that runs its tasks unless they name an agent of the settings: argv before
	 * "-p", NULL-terminated; NULL: CODING_AGENT if it is in PATH, else the default agent. */
	const char *const *program;
};

/* How the error of a task ends whose program could not be started. Its name comes before that, and the
 * exit status is that of a shell: 127, or 126 for a file that is there. */
#define TASK_NO_COMMAND ": command not found"
#define TASK_NO_FILE    ": no such file or directory"
#define TASK_FORBIDDEN  ": permission denied"

/* Messages for a task's error, supplied by the dialect whose clients show them. */
struct task_wording {
	const char *stopped; /* it was running when the daemon stopped */
	/* Its program ended badly and wrote nothing to stderr. */
	void (*exited)(char *out, size_t size, int status, int signal);
	void (*timed_out)(char *out, size_t size, int64_t timeout_ms);
};

struct tasks_opts {
	/* Its store_owner is the prefix of the marks of all processes that belong to it: tasks_start, and
	 * tasks_free, end every process that carries one, whether a task's or not. */
	struct store *store;
	struct events *events;
	struct chat *chat; /* its agents run tasks */
	struct node *node; /* this host among others; NULL: there are none */
	struct loop *loop;
	struct workers *workers;
	const char *output_folder; /* absolute; made 0700 */
	unsigned parallel;         /* globally; 0: 16 */
	unsigned project_parallel; /* in one project; 0: 3 */
	unsigned queue;            /* waiting tasks, globally; 0: 1000 */
	int64_t timeout_ms;        /* of one attempt; 0: 120 minutes */
	int64_t output_bytes;      /* in a task's file, and again in the previous one; 0: 16 MiB */
	int64_t keep_ms;           /* ended tasks; 0: for ever */
	unsigned interrupt_ms;     /* SIGTERM to SIGKILL; 0: 5 s */
	/* For tasks that name none: an agent, or CODING_AGENT; NULL or "": not set. */
	const char *runner;
	/* For the coding agent; NULL: ours. An agent of the settings has its own. */
	const struct environment *env;
	const struct task_wording *wording;
	const struct task_group_limit *groups;
	unsigned n_groups;
	const struct task_project *projects; /* those known at the start */
	unsigned n_projects;
};

/*
 * Call it before the first call. It ends what a crash left behind: processes that carry our
 * marks, and tasks that were running ("daemon restarted", or queued again if they may be
 * retried). The process should have a tree_keeper.
 */
int tasks_start(const struct tasks_opts *opts, struct tasks **ret_tasks, struct error *error);

/* Adds a project; if it is already known, it gets these limits. folder NULL: `parallel` is that of projects without a
 * limit of their own. */
int tasks_add_project(struct tasks *t, const struct task_project *project);

/* Starts nothing new. What is running has grace_ms to end by itself; then it is stopped as a
 * cancel would: it is queued again if it may be retried, and that attempt is not counted, else it
 * fails with the wording's `stopped`. fn is called when nothing is running any
 * more. Queued tasks stay. With a grace of 0, even in a second call, what is running is killed
 * at once. */
void tasks_stop(struct tasks *t, unsigned grace_ms, void (*fn)(void *arg), void *arg);

/* Starts nothing new until it is called once more with false, except by a stop. Unlike a pause it is not
 * stored, and it is about this host alone. Accepts NULL. */
void tasks_drain(struct tasks *t, bool drain);

/* Accepts NULL; call it after the last work has finished. */
void tasks_free(struct tasks *t);

struct task_new {
	/* As the client gives it, with TASK_ANY_HOST for any host; of metadata and command, the value. A command needs no prompt:
	 * that is its line. 0 as timeout_ms or retry_ms means the
	 * default. What a client does not give is generated. */
	struct task task;
	const struct text *env; /* "K=V" */
	unsigned n_env;
	int64_t delay_ms;
	int64_t retries;  /* in addition to the first attempt */
	bool until_begun; /* if there is room, fn waits for its program: its pid is known */
	/* The agent's own id of the call that submits it, for the event; {NULL, 0}: none. */
	struct text tool_use_id;
};

struct task_submitted {
	struct text project;
	struct text id;
	enum task_state state; /* queued, or running if there was room */
};

typedef void (*task_submitted_fn)(void *arg, int result, const struct task_submitted *task,
				  const struct error *error);

/*
 * These functions, and those below that take a callback, return 0 if fn will be called, once and later, never
 * inside the call. Else they return a fault or a refusal, and fn is not called. What only the store knows, fn gets.
 */

/* Calls fn when it is on disk (until_begun: and has started, if it can start at once).
 * REFUSE_PARAMS, REFUSE_LIMIT (the queue is full), REFUSE_STOPPING, REFUSE_NOT_FOUND for an
 * unknown project or an unknown task in `after`. */
int task_submit(struct tasks *t, const struct task_new *in, task_submitted_fn fn, void *arg,
		struct error *error);

typedef void (*task_done_fn)(void *arg, int result, const struct error *error);

/* REFUSE_NOT_FOUND, REFUSE_CONFLICT for a task that has ended. project {NULL, 0}: any that has
 * it; if two have it: REFUSE_PARAMS. Calls fn for a queued task when it is cancelled for good,
 * for a running one when the request is on disk and its processes have been signalled. */
int task_cancel(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
		struct error *error);

enum task_hold {
	TASK_STASH,   /* keeps a queued task back until it is enqueued */
	TASK_ENQUEUE, /* the end of that: it starts no sooner than after delay_ms */
	TASK_RELEASE, /* the same for one that was held when it came */
};

/* REFUSE_CONFLICT if the task is not queued, or this changes nothing. fn may be NULL for TASK_RELEASE: the task is one of
 * many, and is released when its turn has come; if that cannot be stored, it stays as it is. */
int task_hold(struct tasks *t, struct text project, struct text id, enum task_hold hold,
	      int64_t delay_ms, task_done_fn fn, void *arg, struct error *error);

/* What a task becomes. NULL, and a text of {NULL, 0}: it stays as it is. */
struct task_edit {
	struct text prompt;
	struct text label;    /* "": none any more */
	struct text runner;   /* "": the default one */
	struct text on_host;  /* TASK_ANY_HOST: none in particular */
	struct text on_label; /* "": none */
	const double *priority;
	const int64_t *timeout_ms; /* 0: the default */
	const struct texts *after; /* all of them, by the rules of a new task */
};

/* Changes a task that has not begun. Calls fn when it is on disk. REFUSE_CONFLICT for one that is
 * running or has ended; REFUSE_PARAMS as for a new one, and if it would come after itself. */
int task_edit(struct tasks *t, struct text project, struct text id, const struct task_edit *in,
	      task_done_fn fn, void *arg, struct error *error);

/* Nothing new starts, of all tasks (group {NULL, 0}) or of one group in all projects; what is
 * running goes on. This outlives a restart. Calls fn when it is on disk; to pause what is paused
 * changes nothing. paused false: the end of that. */
int task_pause(struct tasks *t, struct text group, bool paused, task_done_fn fn, void *arg,
	       struct error *error);
struct task_group_state {
	unsigned
		parallel; /* so many run side by side here, in all projects; 0: no limit of its own */
	bool paused;
};

/* Of a group, or of all tasks (group {NULL, 0}). Accepts NULL. */
struct task_group_state task_group_state(const struct tasks *t, struct text group);
/* Calls fn for every group that is paused. Accepts NULL. */
void tasks_each_paused(struct tasks *t, void (*fn)(void *arg, struct text group), void *arg);

/* How many tasks of a group run side by side here, in all projects (0: no limit of its own), or of all
 * (group {NULL, 0}; at least 1). Takes effect at once, and until the next start. Accepts NULL. */
int tasks_set_parallel(struct tasks *t, struct text group, unsigned parallel, struct error *error);
/* Calls fn (may be NULL) for every held task of a project. Returns how many there are. */
unsigned tasks_each_held(struct tasks *t, struct text project,
			 void (*fn)(void *arg, struct text id), void *arg);

/*
 * Queues a task again that failed or was cancelled; its attempts are counted from zero. It waits for its
 * dependencies as a new one does; REFUSE_CONFLICT names one that did not complete. The tasks that were
 * skipped because of this task alone, directly or through others, are queued again with it.
 */
typedef void (*task_retried_fn)(void *arg, int result, const struct text *ids, unsigned n,
				const struct error *error);
/* ids: the tasks that are queued again, each before those that come after it. */
int task_retry(struct tasks *t, struct text project, struct text id, task_retried_fn fn, void *arg,
	       struct error *error);

struct task_cleaning {
	struct text id;      /* of one task; {NULL, 0} for all that fit the others */
	struct text project; /* {NULL, 0}: all */
	struct text group;   /* the same */
	bool successful_only;
};

/* n: how many are gone, even after a fault. */
typedef void (*task_cleaned_fn)(void *arg, int result, int64_t n, const struct error *error);

/* Deletes tasks that have ended, with their output. Those that an open task depends on stay; one that was
 * named is refused then, and so is one that has not ended. */
int task_clean(struct tasks *t, const struct task_cleaning *which, task_cleaned_fn fn, void *arg);

/* A task with the end of its output. */
struct printed_task {
	struct task task;
	struct text output;
};

/* Tasks that another daemon has stored. */
struct task_import {
	const char *output_folder; /* as in tasks_opts, but not 0; the same for the next */
	int64_t output_bytes;
	const struct printed_task *tasks;
	unsigned n;
};

/* Call it before tasks_start and before the threads start. Imports all or none; tasks that are
 * already known stay unchanged. *ret_n: how many were new. */
int tasks_import(struct store *store, struct arena *a, const struct task_import *in,
		 unsigned *ret_n);

struct task_filter {
	struct text project;   /* {NULL, 0}: all */
	int state;             /* -1: any */
	enum task_skips skips; /* with state TASK_FAILED */
	struct text group;
	struct text label;
	int64_t limit; /* as given: 0 means 20; above TASK_LIST_MAX means that */
	/* Of task_list: running tasks come first, then queued ones, then the others; only with `brief` and
	 * without a state. */
	bool open_first;
	int64_t before; /* of task_list: where the next page begins; 0: the first page */
	bool brief;     /* of task_list */
	/* Of task_list_now: open tasks alone, whatever else is set but the project: those that run, then those
	 * that wait, in the order they will start. */
	bool in_turn;
	const void *rendered_by; /* of task_list_now */
};

struct task_now {
	const struct task *task;
	/* For its rendering by filter.rendered_by, so that it is rendered once for as long as it does not change. If it
	 * is empty, fill it; what does not fit (err) is not kept. May be NULL. */
	struct buf *words;
};

/* Runs on the loop, from memory: false if it takes a reader (task_list). All is valid until
 * the next pass of the loop. */
bool task_list_now(struct tasks *t, const struct task_filter *f, const struct task_now **ret_tasks,
		   unsigned *ret_n);

/* Newest first, unless open_first is set, and without env; texts are cut, at most in the middle of a result's last character.
 * Brief: without result, metadata and cwd. *ret_next (may be NULL): where the next page begins; 0: this is the last. A list ends early only if its rows exceed 8 MiB, which
 * those of a brief one cannot. */
int task_list(struct tasks *t, int lane, struct arena *a, const struct task_filter *f,
	      struct task **ret_tasks, unsigned *ret_n, int64_t *ret_next);

struct task_output {
	size_t max; /* at most so many bytes are wanted */
	/* From here: of the first of the bytes, within everything that was ever printed; what was rotated away is
	 * skipped. Below 0: the last ones. */
	int64_t offset;
	struct text bytes;
	int64_t end;  /* of everything that was printed so far */
	bool running; /* there may be more */
};

/* output: NULL, or what is wanted of it, and then what there is. REFUSE_NOT_FOUND. */
int task_get(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
	     struct task *ret_task, struct task_output *output, struct error *error);

/* Runs on the loop, after it was read: applies what has happened to it that is not in the store
 * yet. False: the task has ended since its output (may be NULL) was read, which lacks the end; read it again. */
bool task_catch_up(struct tasks *t, struct task *task, const struct task_output *output);

/* What a task has just printed, for all who follow it. */
struct task_piece {
	struct text bytes;
	int64_t offset; /* of the first of them */
	/* The words for a client, made once for all who begin at the same byte; -1: not yet. */
	struct buf words;
	int64_t words_from;
};

struct live;

/* Waits for the output or the end of a task; embedded in the waiting object. All zero before it waits. */
struct task_watch {
	struct list link;
	struct live *live; /* NULL: it is not waiting */
	bool elsewhere; /* another host runs it: what it prints is not reported here; read it again */
	/* It has printed more. Takes the bytes; must not answer a call or change a task. NULL: only
	 * its end is awaited. */
	void (*printed)(struct task_watch *w, struct task_piece *piece);
	/* It has ended, its output is in the file, and the store knows of it; or another host runs it now: then
	 * task->state says so. No longer waiting. */
	void (*ended)(struct task_watch *w, const struct task *task);
};

/* Runs on the loop. *ret_end: of what it has printed so far. False: it has ended, or there is no
 * such task, or there are several; the store knows which. */
bool task_watch(struct tasks *t, struct text project, struct text id, struct task_watch *w,
		int64_t *ret_end);
void task_unwatch(struct task_watch *w); /* harmless if it is not waiting */

/* Groups that have tasks, by name. project {NULL, 0}: of all projects. */
int task_groups(struct tasks *t, int lane, struct arena *a, struct text project,
		struct task_tally **ret_groups, unsigned *ret_n);

struct task_counts {
	int64_t total;
	int64_t n[N_TASK_STATES];
	unsigned n_here;   /* run on this host */
	unsigned parallel; /* so many may */
	bool draining;
};

/* From memory. project {NULL, 0}: of all projects. All zero for NULL. */
void task_count(struct tasks *t, struct text project, struct task_counts *ret_counts);
