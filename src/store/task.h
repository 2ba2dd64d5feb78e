/*
 * Tasks in the store. A task has an id of its own within its project ("task-0000", then the
 * next number; an id never comes again there), and a seq that orders all of them.
 *
 * What changes something takes the writer's connection, inside a batch. Rows that are
 * found are copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

struct connection;

enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };

enum { N_TASK_STATES = 5, STORE_AFTER_MAX = 1 << 16 };

struct task_row {
	int64_t seq;
	struct text project; /* a folder; "": of none */
	struct text id;
	struct text prompt;
	struct text agent; /* as the client named it; {NULL, 0}: not at all */
	double priority;
	enum task_state state;
	int64_t created_ms;
	int64_t started_ms;   /* 0: not yet */
	int64_t completed_ms; /* 0: not yet */
	int64_t pid;          /* 0: none */
	int64_t pid_started;  /* when that process began, as the kernel counts; so that it is not
			       * taken for another */
	struct text mark;     /* what its processes carry in their environment; {NULL, 0} */
	struct text result;   /* {NULL, 0}: none */
	struct text error;    /* {NULL, 0}: none */
	int64_t exit_status;  /* -1: none */
	int64_t signal;       /* 0: none */
	int64_t output_bytes; /* in its file */
	struct text metadata; /* packed; not looked into; {NULL, 0}: none */
	struct text group;    /* {NULL, 0}: none */
	struct text runner;   /* the agent of the settings that runs it; {NULL, 0}: the default */
	struct text cwd;      /* {NULL, 0}: the project's */
	struct text env;      /* "K=V" each ended by a NUL; {NULL, 0}: none */
	int64_t timeout_ms;   /* of one attempt; 0: none */
	int64_t attempts;     /* that were begun */
	int64_t max_attempts;
	int64_t retry_ms;         /* before the second attempt; then twice as long each time */
	int64_t not_before_ms;    /* 0: at once */
	bool held;                /* queued by somebody else: begins once it is let go */
	const struct text *after; /* ids in the same project that must be completed first */
	unsigned n_after;
};

/* All of `row` but seq and, where row->id.data is NULL, id, which is made and returned in the
 * arena. -EEXIST when the id is taken. */
int store_task_add(struct connection *c, struct arena *arena, const struct task_row *row,
		   int64_t *ret_seq, struct text *ret_id);

/* Rewrites what may change of row->seq: state, times, pid, mark, result, error, exit status,
 * signal, output_bytes, runner, attempts, not_before_ms, held. -ENOENT. */
int store_task_update(struct connection *c, const struct task_row *row);

int store_task_find(struct connection *c, struct text project, struct text id, struct arena *arena,
		    struct task_row *ret_row, bool *ret_found);

/* By id alone: how many projects have it (0, 1, 2 for more); the row when it is 1. */
int store_task_find_any(struct connection *c, struct text id, struct arena *arena,
			struct task_row *ret_row, unsigned *ret_n);

struct store_task_query {
	struct text project; /* data NULL: all */
	int state;           /* enum task_state, or -1: any */
	struct text group;   /* data NULL: any */
	int64_t before_seq;  /* 0: from the newest */
	unsigned limit;
	size_t max_bytes; /* of text in all rows, but never none of them; 0: any */
};

/* Newest first. */
int store_task_list(struct connection *c, const struct store_task_query *q, struct arena *arena,
		    struct task_row **ret_rows, unsigned *ret_n);

/* The same without env, and of prompt, error and result only the first `cut` (at least 1)
 * characters (of the result, bytes); `brief`: without result and metadata as well. */
int store_task_list_short(struct connection *c, const struct store_task_query *q, unsigned cut,
			  bool brief, struct arena *arena, struct task_row **ret_rows,
			  unsigned *ret_n);

/* How one stands; *ret_state only if it is found. */
int store_task_state(struct connection *c, struct text project, struct text id,
		     enum task_state *ret_state, bool *ret_found);

/* All that are not at their end, oldest first: what a start goes on with. Without results, and
 * those with long texts without their prompt, env and metadata. */
int store_task_open(struct connection *c, struct arena *arena, struct task_row **ret_rows,
		    unsigned *ret_n);

struct store_task_counts {
	struct text project;
	int64_t n[N_TASK_STATES];
};

/* For every project that has tasks. */
int store_task_count(struct connection *c, struct arena *arena,
		     struct store_task_counts **ret_counts, unsigned *ret_n);

struct store_task_group {
	struct text name;
	int64_t n[N_TASK_STATES];
};

/* project {NULL, 0}: of all. */
int store_task_groups(struct connection *c, struct text project, struct arena *arena,
		      struct store_task_group **ret_groups, unsigned *ret_n);

/* Deletes up to `limit` that ended before then; tells their rows' project, id, seq and state. */
int store_task_sweep(struct connection *c, int64_t before_ms, unsigned limit, struct arena *arena,
		     struct task_row **ret_rows, unsigned *ret_n);
