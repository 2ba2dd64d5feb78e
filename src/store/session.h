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
#include "base/text.h"

struct connection;

enum session_status {
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_WAITING,    /* for a human's decision */
	SESSION_COMPLETING, /* it was told to end */
	SESSION_COMPLETED,
	SESSION_FAILED,
	SESSION_INTERRUPTED,
	N_SESSION_STATUSES,
};

struct session_row {
	int64_t seq; /* orders all of them; given by store_session_add */
	struct text id;
	struct text run;           /* its run id; unique */
	struct text parent;        /* {NULL, 0}: none */
	struct text agent_session; /* the agent's own id; {NULL, 0}: not known yet */
	struct text query;
	struct text summary;
	struct text title; /* given by people; {NULL, 0}: none */
	struct text model; /* {NULL, 0}: the agent's own */
	struct text working_dir;
	struct text runner; /* "claude", or an agent of the settings */
	struct text config; /* packed; not looked into; {NULL, 0}: none */
	struct text mark;   /* what its processes carry; {NULL, 0} */
	enum session_status status;
	bool archived;
	int64_t created_ms;
	int64_t active_ms;    /* when anything last happened */
	int64_t ended_ms;     /* 0: not yet */
	struct text result;   /* {NULL, 0}: none */
	struct text error;    /* {NULL, 0}: none */
	double cost_usd;      /* < 0: not known */
	int64_t input_tokens; /* -1: not known; so are these */
	int64_t output_tokens;
	int64_t duration_ms;
	int64_t turns;
};

/* All of row but seq. -EEXIST when the id or the run is taken. */
int store_session_add(struct connection *c, const struct session_row *row, int64_t *ret_seq);

/* Rewrites what its run changes of row->seq: agent_session, model, runner, mark, status, active_ms,
 * ended_ms, result, error, cost, tokens, duration, turns. -ENOENT. */
int store_session_update(struct connection *c, const struct session_row *row);

/* What people change, whoever has the rest at hand. *ret_found false: there is none. */
int store_session_set_archived(struct connection *c, struct text id, bool archived,
			       bool *ret_found);
int store_session_set_title(struct connection *c, struct text id, struct text title,
			    bool *ret_found);

int store_session_find(struct connection *c, struct text id, struct arena *arena,
		       struct session_row *ret_row, bool *ret_found);
int store_session_find_run(struct connection *c, struct text run, struct arena *arena,
			   struct session_row *ret_row, bool *ret_found);
/* The newest that has it. */
int store_session_find_agent(struct connection *c, struct text agent_session, struct arena *arena,
			     struct session_row *ret_row, bool *ret_found);

/* The ids that begin so, for people who type the first characters. *ret_n: how many, 2 for more;
 * "" begins none. */
int store_session_find_short(struct connection *c, struct text prefix, struct arena *arena,
			     struct text ret_ids[2], unsigned *ret_n);

enum session_archived { ARCHIVED_ANY, ARCHIVED_NO, ARCHIVED_ONLY };

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
		       struct arena *arena, struct session_row **ret_rows, unsigned *ret_n);

/* All that are not at their end, oldest first: what a crash has left. Without config, and of query
 * the first bytes. */
int store_session_open(struct connection *c, struct arena *arena, struct session_row **ret_rows,
		       unsigned *ret_n);

/* It, its parent, the parent's parent …: ids, the oldest first; at most max, the newest of them.
 * It ends where one is gone, or is there already. */
int store_session_chain(struct connection *c, struct text id, unsigned max, struct arena *arena,
			struct text **ret_ids, unsigned *ret_n);

struct session_path {
	struct text path;
	int64_t used_ms;
	int64_t n;
};

/* Working folders, the last used first. limit 0: any number. */
int store_session_paths(struct connection *c, unsigned limit, struct arena *arena,
			struct session_path **ret_paths, unsigned *ret_n);

/* Deletes up to `limit` sessions that ended before then, with their events; of these not too many
 * at once either. *ret_n below limit: nothing is left to do. */
int store_session_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n);

/* ---- what it said ---- */

enum session_event_type {
	SESSION_MESSAGE,
	SESSION_TOOL_CALL,
	SESSION_TOOL_RESULT,
	SESSION_SYSTEM,
	SESSION_RAW, /* a line that nobody understood */
	N_SESSION_EVENT_TYPES,
};

/* How a tool call stands with the humans. */
enum session_approval {
	SESSION_APPROVAL_NONE,
	SESSION_APPROVAL_PENDING,
	SESSION_APPROVAL_APPROVED,
	SESSION_APPROVAL_DENIED,
	SESSION_APPROVAL_RESOLVED, /* nobody decided in time, or it was withdrawn */
};

struct session_event_row {
	int64_t id; /* grows over all sessions; given by store_session_event_add */
	struct text session;
	struct text agent_session;
	int64_t sequence; /* from 1 within an agent's session; given */
	enum session_event_type type;
	int64_t created_ms;
	struct text role;    /* {NULL, 0}: none; so are those that follow */
	struct text content; /* of a message, a system event, a tool's result, a raw line */
	struct text tool_id; /* of a call, or the call that this is the result of */
	struct text tool_name;
	struct text tool_input;  /* packed; not looked into */
	struct text parent_tool; /* the call that an agent below spoke for */
	bool completed;          /* a call whose result has come */
	enum session_approval approval;
	struct text approval_id;
};

/* All of row but id and sequence, which are returned; without an agent_session, the sequence counts
 * within the session. A tool's result completes its call (the newest of that tool_id in the
 * session). -ENOENT without the session. */
int store_session_event_add(struct connection *c, const struct session_event_row *row,
			    int64_t *ret_id, int64_t *ret_sequence);

struct store_session_events_query {
	struct text session;       /* or */
	struct text agent_session; /* data NULL: by session */
	int64_t after_id;          /* those behind it; 0: from the first */
	unsigned limit;            /* 0: any number */
	size_t max_bytes;          /* of text in all rows, but never none of them; 0: any */
};

int store_session_events(struct connection *c, const struct store_session_events_query *q,
			 struct arena *arena, struct session_event_row **ret_rows, unsigned *ret_n);

/* The newest call of that tool in the session which is not completed, has no approval and came at
 * `since_ms` or later; with a tool_id only that one. */
int store_session_open_call(struct connection *c, struct text session, struct text tool_name,
			    struct text tool_id, int64_t since_ms, int64_t *ret_id,
			    bool *ret_found);

/* An approval id of {NULL, 0} leaves the one that is there. An event that is gone stays so. */
int store_session_event_approval(struct connection *c, int64_t id, enum session_approval approval,
				 struct text approval_id);
