/*
 * Inside engine/task: the tasks at hand, and those that run. All of it belongs to the loop's thread.
 *
 * At hand are all tasks that have not ended, and the newest of each project. Long texts are in the
 * store alone: a task that has some is at hand without them.
 */
#pragma once

#include "agent/agent.h"
#include "base/buf.h"
#include "base/list.h"
#include "engine/attempt/attempt.h"
#include "engine/keep/keeper.h"
#include "io/process/tree.h"
#include "engine/task/task.h"

struct output_file;
struct task_change;

enum {
	TASK_BUCKETS = 1024,
	TASK_RECENT_MAX = 200,      /* of one project that have ended and stay at hand */
	TASK_LIGHT_MAX = 16 << 10,  /* bytes of text that a task at hand may have */
	TASK_STDERR_MAX = 64 << 10, /* its last bytes are kept */
	TASK_ARENA_MAX = 32 << 20,
};

struct group {
	struct list link;
	char name[TASK_NAME_MAX + 1];
	unsigned parallel; /* 0: no limit of its own */
	unsigned n_running;
	unsigned n_tasks; /* at hand */
};

struct project {
	struct list link;
	struct tasks *tasks;
	char *folder;
	struct text name; /* the same */
	unsigned parallel;
	int64_t timeout_ms;
	unsigned queue;    /* of its own tasks; 0: no limit of its own */
	unsigned n_coming; /* submits on their way to the store */
	char **program;    /* argv before "-p"; NULL: claude, or the default agent */
	unsigned n_running;
	int64_t n[N_TASK_STATES];
	struct list ready;  /* queued tasks, the next one first */
	struct list aside;  /* queued tasks that wait for a time, for others or to be released */
	struct list recent; /* all at hand, the newest first */
	unsigned n_recent;  /* of those, how many are at their end */
	int64_t whole_from; /* seq: there may be older ones that only the store has */
	bool served;        /* its tasks run; else they wait for a daemon that serves it */
};

/* The error of a running task that shall be cancelled, for the next start to see. */
#define TASK_CANCEL_REQUESTED "cancel requested"

/* Whoever waits until a run has begun. fn is called once, with the state that the task has then;
 * gone: tasks are being freed, and fn must tell nobody. */
struct run_waiter {
	void (*fn)(void *arg, bool gone, enum task_state state);
	void *arg;
};

/* A task while it runs. */
struct run {
	struct tasks *tasks;
	struct live *live;
	struct attempt attempt;
	struct output_file *output;
	struct timer *timer; /* its time limit */
	/* Not NULL until the store knows that it runs; nothing begins before. */
	struct task_change *begins;
	char mark[TREE_MARK_MAX];
	struct buf out;           /* the end of what it printed */
	struct run_waiter waiter; /* fn NULL: none */
	bool output_failed;       /* the log has said so */
};

struct live {
	struct list link;        /* in project->ready or aside, or tasks->running */
	struct list recent_link; /* in project->recent */
	struct list bucket_link;
	struct project *project;
	struct group *group; /* NULL: none */
	struct arena arena;  /* for texts that do not fit into `own` */
	struct task task;    /* its texts are in `own` or in the arena */
	bool light;          /* all of its texts are here; else the long ones are missing */
	unsigned n_after_open;
	uint64_t ready_ms;      /* steady; 0: at once */
	struct run *run;        /* NULL unless it runs */
	struct changes changes; /* on their way to the store */
	uint64_t version;       /* a new one whenever the task changes; no two tasks share one */
	size_t n_left;          /* bytes of `own` that are free, at its end */
	size_t n_own;
	char own[]; /* room for the texts that it was made with: most need no other */
};

struct tasks {
	struct store *store;
	struct events *events;
	struct chat *chat;
	struct loop *loop;
	struct background background;
	char *output_folder;
	const char *owner; /* what our marks begin with: the store's identity */
	unsigned parallel;
	unsigned project_parallel;
	unsigned queue;
	int64_t timeout_ms;
	int64_t output_bytes;
	int64_t keep_ms;
	unsigned interrupt_ms;
	const struct environment *env;
	const struct task_wording *wording;
	char runner[AGENT_NAME_MAX]; /* "": not said */
	struct list projects;
	struct list groups;
	struct list running;
	struct list buckets[TASK_BUCKETS];
	unsigned n_running;
	unsigned n_queued;
	unsigned n_coming;   /* submits on their way to the store */
	struct timer *timer; /* until one that waits for its time is ready */
	struct list ended;   /* tasks whose followers have not been looked at yet */
	bool ending;
	uint64_t last_version;
	struct rendered *rendered; /* NULL: nobody has asked for any */
	struct keeper keeper;
	struct ticker *sweeper;
	struct timer *first_sweep;
	bool sweeping;
	bool stopping;
	struct timer *stop_timer;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* ---- table.c: who is at hand ---- */

struct project *project_get(struct tasks *t, struct text name); /* makes it; NULL: no memory */
struct project *project_find(const struct tasks *t, struct text name);
struct group *group_get(struct tasks *t, struct text name);

/* Copies the task and puts it among the recent ones of its project. NULL: no memory. */
struct live *live_new(struct tasks *t, struct project *p, const struct task *task);
void live_free(struct live *l);

/* project {NULL, 0}: whichever has it; *ret_n: how many have. */
struct live *live_find(struct tasks *t, struct text project, struct text id, unsigned *ret_n);

/* Gives it a new version. For whoever changes a member without one of the functions below. */
void live_changed(struct live *l);

/* Keeps the project's counts right. */
void live_set_state(struct live *l, enum task_state state);

/* Copies a text into the task. One that is too long is left out, and the task is light no more. */
void live_set_text(struct live *l, struct text *at, struct text value);

/* Frees the oldest that have ended, down to TASK_RECENT_MAX. */
void project_trim(struct project *p);

/* ---- queue.c: who is next ---- */

void queue_add(struct tasks *t, struct live *l);
void queue_remove(struct tasks *t, struct live *l);

/* Starts what there is room for. */
void queue_run(struct tasks *t);

void queue_on_time(void *tasks);

/* One has ended: those that come after it may begin, or fail with it. */
void queue_ended(struct tasks *t, const struct live *l);

/* ---- run.c, program.c ---- */

void run_start(struct tasks *t, struct live *l);

/* To be called right after run_start. The waiter is told when the program runs or the turn has begun,
 * or when neither will. */
void run_when_begun(struct run *r, const struct run_waiter *w);
void run_end_with(struct run *r, enum intent intent);
void run_drop(struct run *r); /* tasks are being freed */

struct program {
	const char **argv; /* one piece of memory */
	struct text input; /* {NULL, 0}: none */
	struct text cwd;   /* {NULL, 0}: ours */
	struct arena arena;
	const struct environment *base; /* its environment; NULL: ours */
	const char **env;               /* beside that */
};

/* What runs it: a program (*ret_agent is NULL), or an agent of the chat. Refuses where there is
 * neither. */
struct agent;
int program_choose(struct tasks *t, const struct live *l, struct text prompt,
		   struct program *ret_program, struct agent **ret_agent, struct why *why);
void program_done(struct program *p);

/* ---- write.c: to the store ---- */

/* A change that somebody waits for. fn is called once: with 0 when it is on disk, or with the fault, its
 * own or that of a change before it, when that takes longer. NULL: no memory. */
struct task_change *task_change_new(task_done_fn fn, void *arg);

/* Whoever waited for it is not told any more. Accepts NULL. */
void task_change_forget(struct task_change *c);

/* Writes what may change of the task, as it is now, with an event that tells of it (NULL: none). The
 * change may be NULL: nobody waits. */
void task_write(struct tasks *t, struct live *l, const char *event, struct task_change *c);

/* The same of a row that has texts which the task at hand does not have. */
void task_write_row(struct tasks *t, struct live *l, const struct task *row, const char *event,
		    struct task_change *c);
int task_write_init(struct tasks *t);
void task_write_drop(struct live *l); /* tells nobody: whoever waited may be gone */

/* ---- event.c ---- */

/* queue_size: for "task.queued". */
int task_event_add(struct tasks *t, struct arena *a, const char *event, const struct task *row,
		   int64_t queue_size);

/* ---- sweep.c: those that ended long ago ---- */

int task_sweep_start(struct tasks *t);
void task_sweep(void *tasks);

/* ---- rendered.c ---- */

void task_rendered_free(struct tasks *t);

/* ---- recover.c ---- */

int tasks_recover(struct tasks *t, struct why *why);

/* Kills every process that carries a mark of ours, whether an earlier daemon left it or it outlived
 * its task, and waits until they are gone. */
void tasks_end_processes(const struct tasks *t);

/* ---- task.c ---- */

/* Ends it in memory, and writes that to the store. */
void task_ended(struct tasks *t, struct live *l, enum task_state state, struct text result,
		struct text error);

/* The same; whoever waits for it to be kept is told by the change (may be NULL). */
void task_end_then(struct tasks *t, struct live *l, enum task_state state, struct text result,
		   struct text error, struct task_change *change);

/* Tells whoever waits for the stop, if it is over. */
void tasks_check_stopped(struct tasks *t);

/* A run is over: starts what there is room for. */
void tasks_run_ended(struct tasks *t);

/* Where what it prints is kept. */
void task_path(const struct tasks *t, int64_t seq, char *out, size_t size);
void task_path_in(const char *folder, int64_t seq, char *out, size_t size);

/* ---- submit.c ---- */

/* Refuses where no more tasks may wait. */
int task_check_room(const struct tasks *t, struct why *why);
