/*
 * Agent sessions in the store: a run of an agent program, and what it said, as events in
 * order.
 *
 * Functions that change something take the writer's connection, inside a batch. Rows that are
 * found are copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/session.h"

struct connection;

/* Stores all of row but seq. -EEXIST when the id or the run is taken. */
int store_session_add(struct connection *c, const struct session *row, int64_t *ret_seq);

/* Rewrites what a run changes in row->seq: agent_session, model, runner, mark, status,
 * active_ms, ended_ms, result, error, cost, tokens, duration, turns. -ENOENT: there is none, or it is
 * not row->epoch that runs it. */
int store_session_update(struct connection *c, const struct session *row);

/* The same for one whose host's life is over: nobody runs it from here on. *ret_done is false if
 * somebody else was quicker. */
int store_session_settle(struct connection *c, const struct session *row, bool *ret_done);

/* Somebody wishes that a session ends that runs on another host. *ret_done is false if it does not
 * run any more. */
int store_session_wish(struct connection *c, int64_t seq, bool *ret_done);

/* The ids of this host's sessions that somebody wishes to end. */
int store_session_wishes(struct connection *c, struct text host, struct arena *arena,
			 struct text **ret_ids, unsigned *ret_n);

/* What users change, independently of the rest of the row. *ret_found is false when there is no
 * such session. */
int store_session_set_archived(struct connection *c, struct text id, bool archived,
			       bool *ret_found);
int store_session_set_title(struct connection *c, struct text id, struct text title,
			    bool *ret_found);

int store_session_find(struct connection *c, struct text id, struct arena *arena,
		       struct session *ret_row, bool *ret_found);
int store_session_find_run(struct connection *c, struct text run, struct arena *arena,
			   struct session *ret_row, bool *ret_found);
/* The newest session that has it. */
int store_session_find_agent(struct connection *c, struct text agent_session, struct arena *arena,
			     struct session *ret_row, bool *ret_found);

/* Finds ids by prefix, for people who type the first characters. *ret_n is how many match, 2
 * meaning more than one; "" matches none. */
int store_session_find_short(struct connection *c, struct text prefix, struct arena *arena,
			     struct text ret_ids[2], unsigned *ret_n);

struct store_session_query {
	enum session_archived archived;
	int status;         /* enum session_status, or -1: any */
	bool leaves;        /* only those without children */
	struct text parent; /* data NULL: any */
	unsigned limit;     /* 0: no limit */
	unsigned cut;       /* characters of query, result and error; 0: all */
	size_t max_bytes;   /* text bytes over all rows, but at least one row; 0: no limit */
};

/* The last active first. config is not read. */
int store_session_list(struct connection *c, const struct store_session_query *q,
		       struct arena *arena, struct session **ret_rows, unsigned *ret_n);

/* All sessions that have not ended, and that no host runs any more, oldest first: what a crash has
 * left. config is not read, and
 * only the first bytes of query. */
int store_session_open(struct connection *c, struct arena *arena, struct session **ret_rows,
		       unsigned *ret_n);

/* A session, the one that it goes on from, and so on: {.id = …} is where it begins. */
struct session_chain {
	struct text id;
	struct session_link *links; /* found so far, the newest first */
	unsigned n;
	unsigned cap;
	int64_t oldest; /* the lowest seq among them */
};

struct session_link {
	int64_t seq;
	struct text id;
	struct text parent;
};

/* Adds the next link. The chain ends at a parent that is gone, or that is already in it. */
int store_session_chain_next(struct connection *c, struct session_chain *chain, struct arena *arena,
			     bool *ret_found);

/* Working directories, the last used first. limit 0: no limit. */
int store_session_paths(struct connection *c, unsigned limit, struct arena *arena,
			struct session_path **ret_paths, unsigned *ret_n);

/* Deletes up to `limit` sessions that ended before the given time, with their events; the number
 * of events is limited too. *ret_n below limit: nothing is left to do. */
int store_session_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n);

/* ---- what it said ---- */

/* Stores all of row but id and sequence, which are returned. Without an agent_session, the
 * sequence counts within the session. A tool's result completes its call (the newest of that
 * tool_id in the session). -ENOENT when there is no such session. */
int store_session_event_add(struct connection *c, const struct session_event *row, int64_t *ret_id,
			    int64_t *ret_sequence);

struct store_session_events_query {
	struct text session;       /* or */
	struct text agent_session; /* data NULL: by session */
	int64_t after_id;          /* only those after it; 0: from the first */
	int64_t before_id;         /* only those before it; 0: to the last */
	bool newest;               /* begins with the last of them, and goes back */
	bool raw;                  /* includes lines that were not understood */
	unsigned limit;            /* 0: no limit */
	size_t max_bytes;          /* text bytes over all rows, but at least one row; 0: no limit */
};

int store_session_events(struct connection *c, const struct store_session_events_query *q,
			 struct arena *arena, struct session_event **ret_rows, unsigned *ret_n);

/* The newest call of that tool in the session that is not completed, has no approval and came at
 * `since_ms` or later; with a tool_id, only that one. */
int store_session_open_call(struct connection *c, struct text session, struct text tool_name,
			    struct text tool_id, int64_t since_ms, int64_t *ret_id,
			    bool *ret_found);

/* An approval id of {NULL, 0} leaves the current one. An event that is gone is ignored. */
int store_session_event_approval(struct connection *c, int64_t id, enum session_approval approval,
				 struct text approval_id);
