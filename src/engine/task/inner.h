/*
 * Internal to engine/task: the tasks in memory, and those that are running. Everything belongs
 * to the loop's thread.
 *
 * All tasks that have not ended are in memory, and the newest of each project. Long texts are
 * only in the store: a task that has some is in memory without them.
 */
#pragma once

#include <errno.h>
#include <stdio.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/sets.h"
#include "engine/attempt/attempt.h"
#include "io/process/tree.h"
#include "engine/record/record.h"
#include "engine/task/task.h"

struct connection;
struct output_file;
struct task_change;
struct task_named;

enum {
	TASK_RECENT_MAX = 200,      /* ended tasks of one project that stay in memory */
	TASK_LIGHT_MAX = 16 << 10,  /* bytes of text that a task in memory may have */
	TASK_STDERR_MAX = 64 << 10, /* the last bytes are kept */
	TASK_ARENA_MAX = 32 << 20,
	RENDERED_SLOTS = 256,
	TASK_CHANGES_MAX = 200, /* on their way to the store: then the next ones wait */
};

struct group {
	struct list link;
	struct table_link by_name;
	char name[TASK_NAME_MAX + 1];
	unsigned parallel; /* 0: no limit of its own */
	unsigned n_running;
	struct list members; /* tasks in memory */
	bool paused;
};

/* The tasks of a project that may start as far as their group has room. */
struct line {
	struct list link;
	struct group *group;       /* NULL: tasks that no group limits */
	struct sorted ready;       /* in the order they will start */
	struct sorted_link *shown; /* for queue_list */
};

struct project {
	struct list link;
	struct table_link by_name;
	struct list eager_link; /* in tasks->eager, if it has ready tasks */
	struct tasks *tasks;
	char *folder;
	struct text name; /* the same */
	unsigned parallel;
	int64_t timeout_ms;
	unsigned queue;    /* for its own tasks; 0: no limit of its own */
	unsigned n_coming; /* submissions on their way to the store */
	char **program;    /* argv before "-p"; NULL: the coding agent, or the default one */
	unsigned n_running;
	int64_t n[N_TASK_STATES];
	struct line line; /* without a group's limit; the others are in `lines` */
	struct list lines;
	unsigned n_ready;  /* in all of its lines */
	struct list aside; /* queued tasks that wait for a time, for others or for their release */
	struct list held;  /* those of them that wait for their release */
	unsigned n_held;
	struct sorted recent; /* all in memory, newest first */
	struct sorted ended;  /* those of them that have ended, oldest first */
	unsigned n_recent;    /* how many have ended */
	int64_t whole_from;   /* a seq: older ones may be in the store only */
	bool served;          /* its tasks may run; else they wait for a daemon that serves it */
};

/* The error of a running task that is to be cancelled, for the next start to see. */
#define TASK_CANCEL_REQUESTED "cancellation requested"

/* Waits until a run has started: set right after run_start. fn is called once, with the task's state at that time,
 * unless tasks are freed before. */
struct run_waiter {
	void (*fn)(void *arg, enum task_state state);
	void *arg;
};

/* Output that the watches of the task do not have yet. */
struct fresh {
	struct buf bytes; /* the last of them; empty without watches */
	int64_t end;      /* the offset after them */
	struct timer *pause;
	bool paused; /* they received some just now */
	bool more;   /* there is something to send */
};

/* A running task. */
struct run {
	struct tasks *tasks;
	struct live *live;
	struct attempt attempt;
	struct output_file *output;
	int64_t printed;     /* its output goes on there, or later */
	struct timer *timer; /* its time limit */
	/* fn is not NULL until it is stored that the task is running; nothing starts before that. */
	struct record_waiter begins;
	/* Until its program has started: the program and the folder. */
	char *named;
	char *folder;
	char mark[TREE_MARK_MAX];
	struct buf out; /* the end of its output */
	struct fresh fresh;
	struct run_waiter waiter; /* fn NULL: none */
	int unstarted;         /* exit status of a program that could not be started; 0: it was */
	bool output_failed;    /* this has been logged */
	struct unsent *unsent; /* NULL: nothing for other hosts was printed yet */
	struct fetch *fetch;   /* NULL: its texts are not being read */
};

/* One task waits for another: the one in `after` with the same index. */
struct wait {
	struct list link; /* in `dependents` of the other, or of all tasks if that has ended */
	struct live *waiting;
};

/* What its last change made of it, on disk or on its way there: what the next one expects. */
struct former {
	enum task_state state;
	int64_t attempts;
	int64_t epoch;
};

/* Where a queued task is. */
enum queue_place { PLACE_NONE, PLACE_READY, PLACE_ASIDE, PLACE_TIMED };

struct live {
	struct list link;       /* in project->aside, or tasks->running */
	struct list held_link;  /* in project->held, or tasks->releases */
	struct list group_link; /* in group->members, if it has one */
	/* By its place: in its line's ready, or in tasks->timed. In project->ended if it has. */
	struct sorted_link order;
	struct sorted_link recent_link; /* in project->recent */
	struct table_link by_name;      /* project and id */
	struct table_link by_id;
	struct project *project;
	struct group *group;    /* NULL: none */
	struct line *line;      /* where it waits for its turn */
	struct line *stands_in; /* where it does so now, with PLACE_READY */
	enum queue_place place;
	struct list dependents; /* waits of others for this one */
	struct wait *waits;     /* its own: task.after.n */
	struct list watches;
	unsigned n_listening; /* those of them that want its output */
	char *texts;          /* of its row */
	struct arena *later;  /* for texts that were set since; NULL: none */
	struct task task; /* its texts are in `texts` and `later`; its version is the stored one */
	struct former former;
	bool light;       /* all of its texts are here; else the long ones are missing */
	unsigned n_edits; /* on their way to the store; it does not start meanwhile */
	unsigned n_after_open;
	uint64_t ready_ms; /* steady clock; 0: at once */
	struct run *run;   /* NULL unless it is running */
	/* For the end of a run, which must be stored even if memory has run out. */
	struct record_change *reserved;
	struct record record; /* its changes on their way to the store */
	uint64_t version;     /* changes whenever the task changes; no two tasks share one */
	char id[];
};

/* A request of a caller on its way to a thread and back. It begins a struct of its own. */
struct request {
	struct list link; /* in tasks->requests */
	struct work work;
	struct tasks *tasks;
	struct arena arena;
	struct text project, id;     /* of its task */
	struct record_waiter waiter; /* for one that waits for a change: calls fn, and frees it */
	struct error error;
	task_done_fn fn;
	void *arg;
};

/* How many have ended is not known exactly where other hosts end some: it is read now and then. */
struct recount {
	struct work work;
	struct arena arena;
	struct task_tally *tallies;
	unsigned n_tallies;
	uint64_t at_version;
	bool wanted;
	bool going;
	bool counted; /* at_version: the counts were right if nothing has changed since */
};

/* A dialect's rendering of a task. */
struct rendered {
	uint64_t version; /* of the task; 0: none */
	uint64_t list;    /* the last one that it was given to */
	const void *by;
	struct buf text;
};

struct tasks {
	struct tasks_opts opts; /* its texts and arrays may be gone */
	struct store *store;
	struct events *events;
	struct chat *chat;
	struct loop *loop;
	struct workers *workers;
	char *output_folder;
	struct node *node; /* NULL: no other host shares the store */
	const char *owner; /* prefix of our marks: the store's identity */
	unsigned parallel;
	unsigned project_parallel;
	unsigned queue;
	unsigned interrupt_ms;
	char runner[AGENT_NAME_MAX]; /* "": not set */
	struct list projects;
	struct table projects_by_name;
	struct list eager; /* projects that have ready tasks */
	struct list groups;
	struct table groups_by_name;
	struct list running;
	struct list elsewhere; /* tasks that other hosts run */
	struct table by_name;  /* of tasks: project and id */
	struct table by_id;
	int64_t n[N_TASK_STATES]; /* of all projects */
	unsigned n_running;
	unsigned n_queued;
	unsigned n_coming;   /* submissions on their way to the store */
	struct sorted timed; /* tasks that wait for their time alone, the next one first */
	struct timer *timer; /* runs until it has come */
	/* Waits for tasks that have ended, by how they did. */
	struct list dependents[N_TASK_STATES];
	/* The same for those that ended elsewhere: the host that ended them fails what comes after them, and
	 * we do if that does not happen. */
	struct list orphans[N_TASK_STATES];
	struct list releases; /* held tasks that are to be released, by held_link */
	struct list requests;
	struct list reporting; /* changes: ends of which some watches do not know yet */
	struct wake *more;     /* goes on with what is too much for one turn of the loop */
	bool settling;         /* it is going on */
	bool writes_left;      /* more is to be written when the store has kept up */
	bool paused;           /* nothing new starts */
	unsigned n_drains;     /* nor while this host is being drained */
	unsigned n_paused;     /* groups */
	bool lining_up;        /* there is more to line up: nothing starts until all are compared */
	uint64_t n_looked;     /* tasks that were looked at to keep their order; tests count them */
	uint64_t last_version;
	struct rendered rendered[RENDERED_SLOTS];
	uint64_t n_lists; /* from memory */
	struct records records;
	struct recount recount;
	int64_t whole_from; /* of every project: older tasks may be in the store only */
	bool missed_events; /* whole_from is to be read */
	struct ticker *sweeper;
	struct timer *first_sweep;
	bool sweeping;
	unsigned n_retries; /* on their way to the store: until they are done, no dependent fails */
	struct timer *stop_timer;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* ---- table.c: the tasks in memory ---- */

/* make: if it is not known; then NULL means that there is no memory. */
struct project *project_find(struct tasks *t, struct text name, bool make);

/* Copies the task and adds it to the recent ones of its project. NULL: no memory. */
struct live *live_new(struct tasks *t, struct project *p, const struct task *task);
void live_free(struct live *l);

/* project {NULL, 0}: any that has it; *ret_n: how many have. */
struct live *live_find(struct tasks *t, struct text project, struct text id, unsigned *ret_n);

/* Copies a text into the task. A text that is too long is left out, and the task is no longer
 * light. */
void live_set_text(struct live *l, struct text *at, struct text value);

/* Takes over this task, but for its names. after: it comes after these from now on, and waits for none of them yet;
 * NULL: that stays. */
int live_set_row(struct live *l, const struct task *from, const struct texts *after);

/* Gives it a new version. Call it after changing a member without one of the functions above. */
static inline void live_changed(struct live *l)
{
	l->version = ++l->project->tasks->last_version;
}

/* The store has this, or will have it after the changes that are on their way. */
static inline void live_stored(struct live *l, const struct task *row)
{
	l->former = (struct former) {row->state, row->attempts, row->epoch};
}

/* The order in which tasks start. */
static inline bool live_goes_before(const struct live *a, const struct live *b)
{
	if (a->task.priority != b->task.priority)
		return a->task.priority > b->task.priority;
	return a->task.seq < b->task.seq;
}

/* Counts a task of the project in this state, or no longer. */
static inline void project_count(struct project *p, enum task_state state, int64_t by)
{
	p->n[state] += by;
	p->tasks->n[state] += by;
}

enum task_step {
	STEP_CLAIM,    /* it is to run here */
	STEP_PUT_BACK, /* it is to run again: nothing had begun, or the attempt has failed */
	STEP_END,
	STEP_SYNC, /* it is made like its row */
	N_TASK_STEPS
};

/* Keeps the counts and lists correct. One that is queued then is not in the queue yet; the dependents of one that has
 * ended learn of it in later turns of the loop. It may free other tasks that have ended. */
void live_step(struct live *l, enum task_step step, enum task_state state);

/* Whether its state, run, place and edits go together, for assertions after each change. */
bool task_is_legal(const struct live *l);

/* What is paused has changed: exactly these groups are; "": all tasks. */
int task_pauses_set(struct tasks *t, const struct text *groups, unsigned n);

/* ---- queue.c: which task is next ---- */

/* What it waits for has changed: puts it where it belongs, if it is queued. */
void queue_place(struct live *l);
/* It is in no queue any more, and waits for no other. */
void queue_remove(struct live *l);

/* Goes on with what is too much for one turn of the loop, and starts tasks as far as there is room. */
void queue_run(struct tasks *t);

/* Puts one that is queued in its place, as its row says; it waits for those in its `after` that are open. states: as
 * they are stored; NULL: what is not in memory is completed. elsewhere: another host fails it if one did not
 * complete. It may fail here at once. */
void queue_enter(struct tasks *t, struct live *l, const enum task_state *states, bool elsewhere);

/* Ends it in memory, and stores that. The change (may be NULL) has a waiter for when it is stored. */
void task_end(struct tasks *t, struct live *l, enum task_state state, struct text result,
	      struct text error, struct record_change *change);

/* It runs no more, and is queued again. event: NULL if others do not know that it ran. */
void task_put_back(struct tasks *t, struct live *l, uint64_t wait_ms, const char *event);

enum { SKIP_WORDS_MAX = TASK_NAME_MAX + 40 };

/* "dependency task-0007 failed" */
static inline void task_skip_words(struct text id, enum task_state state, char out[SKIP_WORDS_MAX])
{
	snprintf(out, SKIP_WORDS_MAX, "dependency %.*s %s", TEXT_ARGS(text_cut(id, TASK_NAME_MAX)),
		 state == TASK_CANCELLED ? "was cancelled" : "failed");
}

/* ---- control.c ---- */

/* All zero but for what it begins with. What `run` allocates in its arena is freed before it runs again. The texts
 * are copied. NULL: no memory. */
void *request_new(struct tasks *t, size_t size, struct text project, struct text id,
		  int (*run)(struct work *w, int lane),
		  void (*finished)(struct work *w, int result));
void request_free(void *request); /* accepts NULL */
/* Sends it to a thread, if the result so far is 0; frees it if that fails. */
int request_submit(void *request, int result, bool writes);

static inline void request_done(struct request *r, int result)
{
	/* Tasks are being freed: the call is gone. */
	if (result != -ECANCELED)
		r->fn(r->arg, result, &r->error);
	request_free(r);
}

/* So many tasks have this id: none, several, or one that another host has just changed. */
int task_refuse(unsigned n, struct text id, struct error *error);

/* The one open task of this id. NULL, and 0, if there is none: the store is asked, and fn gets the refusal that
 * it has ended or does not exist. */
int task_find_open(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
		   struct live **ret_live, struct error *error);

/* The row of a task that may be this host's to run has another host's request to cancel it. */
void task_cancel_requested(struct tasks *t, struct live *l, const struct task *row, bool cancel);

/* ---- run.c, program.c ---- */

void run_start(struct tasks *t, struct live *l);

void run_end_with(struct run *r, enum intent intent);
void run_free(struct run *r); /* tasks are being freed */
/* It is no longer ours: its program is killed, and nothing of it is stored. */
void run_lose(struct run *r);

/* Chooses what runs it, a program or an agent of the chat, and starts that. Refuses if there is neither. */
int program_start(struct run *r, struct text prompt, struct error *error);
/* Checks a new task, whose prompt becomes the line that a shell would read as its command, if it has one.
 * REFUSE_UNAVAILABLE or REFUSE_FORBIDDEN if nothing here could ever run it: the settings have no agent at all, or
 * forbid programs. */
int program_check(const struct tasks *t, struct arena *a, struct task *row,
		  const struct project *project, struct error *error);

/* ---- task.c: to the store ---- */

/* waiter: of the change; NULL: none. NULL: no memory. */
struct record_change *task_change_new(struct record_waiter *waiter);

/* Stores the current values of everything that may change in the task, with an event that
 * reports it (NULL: none). The change may be NULL: there is no waiter. The row may have texts that the task in
 * memory does not have. */
void task_write_row(struct tasks *t, struct live *l, const struct task *row, const char *event,
		    struct record_change *c);
static inline void task_write(struct tasks *t, struct live *l, const char *event,
			      struct record_change *c)
{
	task_write_row(t, l, &l->task, event, c);
}

/* It has ended on another host, or runs there: its watches wait no more. */
void task_report(struct tasks *t, struct live *l, const struct task *row);

/* queue_size: for "task.queued". tool_use_id: of the agent's call that submits it; {NULL, 0}: none. */
int task_event_add(struct tasks *t, const char *event, const struct task *row, int64_t queue_size,
		   struct text tool_use_id);

/* ---- read.c ---- */

/* The first sweep of old tasks runs on the next pass of the loop. */
int task_sweeps_start(struct tasks *t);

/* ---- follow.c: what other hosts do with tasks ---- */

/* Makes what is in memory like the row, unless it is newer already. */
void task_sync(struct tasks *t, const struct task_named *f);

extern const struct record_read_ops task_reads;

/* ---- recover.c: tasks of epochs that are over ---- */

extern const struct record_owner_ops task_owners;
int tasks_recover(struct tasks *t, struct error *error);

/* ---- task.c ---- */

/* The path of its output. */
static inline void task_path(const char *output_folder, int64_t seq, char *out, size_t size)
{
	snprintf(out, size, "%s/%lld", output_folder, (long long)seq);
}

/* ---- submit.c ---- */

/* Added to the current time it must fit into 64 bits; a hundred years are enough. */
static inline bool task_is_time(int64_t ms)
{
	return ms >= 0 && ms <= 100LL * 366 * 24 * 3600 * 1000;
}

/* Refuses if no more tasks may wait. */
int task_check_room(const struct tasks *t, struct error *error);
