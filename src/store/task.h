/*
 * Tasks in the store. A task has an id within its project ("task-0000", then the next number;
 * ids are never reused there), and a seq that orders all tasks.
 *
 * Functions that change something take the writer's connection, inside a batch. Rows that are
 * found are copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/task.h"
#include "base/text.h"

struct connection;

/* Stores all of it but seq. A missing id is made, and returned in the arena. -EEXIST when the id
 * is taken. */
int store_task_add(struct connection *c, struct arena *arena, const struct task *task,
		   int64_t *ret_seq, struct text *ret_id);

/* What a change expects of the row: others may have changed it, or taken it. */
enum task_guard {
	TASK_GUARD_VERSION, /* nobody has changed it since */
	TASK_GUARD_CLAIM, /* the same, it is queued, nobody else claims it just now, and our life goes on */
	TASK_GUARD_RUN, /* this attempt is running in this life of ours */
};

struct store_task_guard {
	enum task_guard by;
	int64_t version;
	int64_t attempts;
	int64_t epoch;
	/* TASK_GUARD_RUN: the host of that life, since a database that has lost commits may give the number
	 * of a life to another; {NULL, 0}: any. */
	struct text host;
};

/* The row after a change. */
struct store_task_kept {
	int64_t version; /* below 0: it is not as the guard expects, or gone */
	int64_t cancel;  /* not 0: somebody wants it cancelled */
};

/* Rewrites what may change (MEMBER_CHANGES) of the one with this seq. -ENOENT: it is not as the
 * guard expects, or gone. */
int store_task_update(struct connection *c, const struct task *task,
		      const struct store_task_guard *guard, struct store_task_kept *ret_kept);

/* The same where nobody waits for it: *kept is known when the batch is settled, or committed. */
int store_task_update_later(struct connection *c, const struct task *task,
			    const struct store_task_guard *guard, struct store_task_kept *kept);

/* Rewrites what its user may change (TASK_EDITED) of the one with this seq, as long as it has not
 * begun and has this version. -ENOENT: else, or it is gone. `after`: also what it comes after. */
int store_task_edit(struct connection *c, const struct task *task, bool after,
		    struct store_task_kept *ret_kept);

/* Tasks whose rows say that they run, but no host does: up to `limit`. Until the end of the
 * transaction they are nobody else's. */
int store_task_abandoned(struct connection *c, unsigned limit, struct arena *arena,
			 struct task **ret_tasks, unsigned *ret_n);

/* Somebody wants a running task cancelled. -ENOENT: it is not running. */
int store_task_wish(struct connection *c, int64_t seq, struct store_task_kept *ret_kept);

/* Until the end of the transaction, no other host does this, or adds a task to the project. */
int store_task_lock_project(struct connection *c, struct text project);

/* Whether a task comes after itself: then the tasks of that circle, each before the one that it
 * comes after, without the task at the end. *ret_n is 0 if it does not. */
int store_task_circle(struct connection *c, struct text project, struct text id,
		      struct arena *arena, struct text **ret_ids, unsigned *ret_n);

/* project {NULL, 0}: any. *ret_n: how many projects have it (0, 1, 2 for more); the row if it is 1. */
int store_task_find(struct connection *c, struct text project, struct text id, struct arena *arena,
		    struct task *ret_task, unsigned *ret_n);

/* A task by its names, and what is needed to make one in memory like it. */
struct task_named {
	struct text project; /* not NULL */
	struct text id;
	struct task row;
	bool found;
	enum task_state *after_states; /* of those that it comes after; NULL if there are none */
};

/* The names of all that are open. */
int store_task_open_names(struct connection *c, struct arena *arena, struct task_named **ret_tasks,
			  unsigned *ret_n);

/* By one query, and one more if any of them comes after others; in a file, by these for each. They are not read
 * in one state of the store: the dependencies may be newer than the row. */
int store_task_find_named(struct connection *c, struct arena *arena, struct task_named *tasks,
			  unsigned n);

struct store_task_query {
	int64_t seq;           /* of one task, for store_task_clean; 0: any */
	struct text project;   /* data NULL: all */
	int state;             /* enum task_state, or -1: any */
	enum task_skips skips; /* with state TASK_FAILED */
	struct text group;     /* data NULL: any */
	struct text label;     /* the same */
	bool open_first;       /* running tasks, then queued ones, then the others; state is -1 */
	int64_t before;        /* only those after this place; 0: from the first one */
	unsigned limit;
	size_t max_bytes; /* text bytes over all rows, but at least one row; 0: no limit */
	/* Without env, and with only so many characters of texts with MEMBER_CUT (bytes of the result); 0: whole rows. */
	unsigned cut;
	bool brief; /* with a cut: also without result and metadata */
};

/* The place of a task in such a list. */
int64_t store_task_place(const struct task *row, bool open_first);

/* Newest first, unless open_first is set. */
int store_task_list(struct connection *c, const struct store_task_query *q, struct arena *arena,
		    struct task **ret_tasks, unsigned *ret_n);

/* The state of a task; *ret_state is set only if it is found. */
int store_task_state(struct connection *c, struct text project, struct text id,
		     enum task_state *ret_state, bool *ret_found);

/* Tasks that were skipped and depend on this one, oldest first, from the one after `after_seq` on. Long
 * texts are left out as by store_task_open. */
int store_task_skipped(struct connection *c, struct text project, struct text id, int64_t after_seq,
		       unsigned limit, struct arena *arena, struct task **ret_tasks,
		       unsigned *ret_n);

/* All tasks that have not ended, oldest first: what a start continues with. Those with long
 * texts come without their prompt, env, metadata and result. */
int store_task_open(struct connection *c, struct arena *arena, struct task **ret_tasks,
		    unsigned *ret_n);

/* For every project that has tasks. */
int store_task_count(struct connection *c, struct arena *arena, struct task_tally **ret_counts,
		     unsigned *ret_n);

/* project {NULL, 0}: all projects. */
int store_task_groups(struct connection *c, struct text project, struct arena *arena,
		      struct task_tally **ret_groups, unsigned *ret_n);

/* Deletes up to q->limit tasks that have ended, of that project, group and state, or the one of q->seq, and that no open
 * task comes after; reports them as store_task_sweep does. */
int store_task_clean(struct connection *c, const struct store_task_query *q, struct arena *arena,
		     struct task **ret_tasks, unsigned *ret_n);

/* ---- pauses: {NULL, 0} stands for all tasks, else it is a group's name ---- */

/* *ret_changed: it was not so before. */
int store_task_pause(struct connection *c, struct text group, int64_t now_ms, bool *ret_changed);
int store_task_resume(struct connection *c, struct text group, bool *ret_changed);

/* The number of the newest task; 0 if there is none. */
int store_task_last(struct connection *c, int64_t *ret_seq);

/* What is paused: groups by name; "" stands for all tasks. */
int store_task_pauses(struct connection *c, struct arena *arena, struct text **ret_groups,
		      unsigned *ret_n);

/* Deletes up to `limit` tasks that ended before the given time; reports the state of each,
 * without its error. */
int store_task_sweep(struct connection *c, int64_t before_ms, unsigned limit, struct arena *arena,
		     struct task **ret_tasks, unsigned *ret_n);
