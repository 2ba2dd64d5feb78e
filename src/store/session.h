/*
 * Agent sessions in the store: a run of an agent program, and what it said, as events in order.
 *
 * What changes something takes the writer's connection, inside a batch. Rows that are found are
 * copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/session.h"

struct connection;

/* All of row but seq. -EEXIST when the id or the run is taken. */
int store_session_add(struct connection *c, const struct session *row, int64_t *ret_seq);

/* Rewrites what its run changes of row->seq: agent_session, model, runner, mark, status, active_ms,
 * ended_ms, result, error, cost, tokens, duration, turns. -ENOENT. */
int store_session_update(struct connection *c, const struct session *row);

/* What people change, whoever has the rest at hand. *ret_found false: there is none. */
int store_session_set_archived(struct connection *c, struct text id, bool archived,
			       bool *ret_found);
int store_session_set_title(struct connection *c, struct text id, struct text title,
			    bool *ret_found);

int store_session_find(struct connection *c, struct text id, struct arena *arena,
		       struct session *ret_row, bool *ret_found);
int store_session_find_run(struct connection *c, struct text run, struct arena *arena,
			   struct session *ret_row, bool *ret_found);
/* The newest that has it. */
int store_session_find_agent(struct connection *c, struct text agent_session, struct arena *arena,
			     struct session *ret_row, bool *ret_found);

/* The ids that begin so, for people who type the first characters. *ret_n: how many, 2 for more;
 * "" begins none. */
int store_session_find_short(struct connection *c, struct text prefix, struct arena *arena,
			     struct text ret_ids[2], unsigned *ret_n);

struct store_session_query {
	enum session_archived archived;
	int status;         /* enum session_status, or -1: any */
	bool leaves;        /* only those without children */
	struct text parent; /* data NULL: any */
	unsigned limit;     /* 0: any number */
	unsigned cut;       /* characters of query, result and error; 0: all */
	size_t max_bytes;   /* of text in all rows, but never none of them; 0: any */
};

/* The last active first. Without config. */
int store_session_list(struct connection *c, const struct store_session_query *q,
		       struct arena *arena, struct session **ret_rows, unsigned *ret_n);

/* All that are not at their end, oldest first: what a crash has left. Without config, and of query
 * the first bytes. */
int store_session_open(struct connection *c, struct arena *arena, struct session **ret_rows,
		       unsigned *ret_n);

/* It, its parent, the parent's parent …: ids, the oldest first; at most max, the newest of them.
 * It ends where one is gone, or is there already. */
int store_session_chain(struct connection *c, struct text id, unsigned max, struct arena *arena,
			struct text **ret_ids, unsigned *ret_n);

/* Working folders, the last used first. limit 0: any number. */
int store_session_paths(struct connection *c, unsigned limit, struct arena *arena,
			struct session_path **ret_paths, unsigned *ret_n);

/* Deletes up to `limit` sessions that ended before then, with their events; of these not too many
 * at once either. *ret_n below limit: nothing is left to do. */
int store_session_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n);

/* ---- what it said ---- */

/* All of row but id and sequence, which are returned; without an agent_session, the sequence counts
 * within the session. A tool's result completes its call (the newest of that tool_id in the
 * session). -ENOENT without the session. */
int store_session_event_add(struct connection *c, const struct session_event *row, int64_t *ret_id,
			    int64_t *ret_sequence);

struct store_session_events_query {
	struct text session;       /* or */
	struct text agent_session; /* data NULL: by session */
	int64_t after_id;          /* those behind it; 0: from the first */
	unsigned limit;            /* 0: any number */
	size_t max_bytes;          /* of text in all rows, but never none of them; 0: any */
};

int store_session_events(struct connection *c, const struct store_session_events_query *q,
			 struct arena *arena, struct session_event **ret_rows, unsigned *ret_n);

/* The newest call of that tool in the session which is not completed, has no approval and came at
 * `since_ms` or later; with a tool_id only that one. */
int store_session_open_call(struct connection *c, struct text session, struct text tool_name,
			    struct text tool_id, int64_t since_ms, int64_t *ret_id,
			    bool *ret_found);

/* An approval id of {NULL, 0} leaves the one that is there. An event that is gone stays so. */
int store_session_event_approval(struct connection *c, int64_t id, enum session_approval approval,
				 struct text approval_id);
