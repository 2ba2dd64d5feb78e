/*
 * Approvals in the store, and the grants that answer some of them beforehand.
 *
 * Functions that change something take the writer's connection, inside a batch. Rows that are
 * found are copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/approval.h"

struct connection;

/* Stores all of row but seq. -EEXIST when the id is taken. */
int store_approval_add(struct connection *c, const struct approval *row, int64_t *ret_seq);

/* Decides row->id, which must be pending, as row says: status, comment, decided_*, decider_*.
 * *ret_done is false when somebody else was quicker or there is no such approval. */
int store_approval_decide(struct connection *c, const struct approval *row, bool *ret_done);

/* Rewrites who waits for a pending one: bond, waiter, asker and host. */
int store_approval_bind(struct connection *c, const struct approval *row);

/* A session of {NULL, 0} leaves the current one. An approval that is gone is ignored. */
int store_approval_tie(struct connection *c, int64_t seq, struct text session, int64_t event_id);

int store_approval_find(struct connection *c, struct text id, struct arena *arena,
			struct approval *ret_row, bool *ret_found);

/* The ids of all that are pending. */
int store_approval_pending(struct connection *c, struct arena *arena, struct text **ret_ids,
			   unsigned *ret_n);

/* Those with these ids, in any order. */
int store_approval_find_named(struct connection *c, const struct text *ids, unsigned n,
			      struct arena *arena, struct approval **ret_rows, unsigned *ret_n);

/* Finds ids by prefix, among all or only the pending ones, for people who type the first
 * characters. *ret_n is how many match, 2 meaning more than one; "" matches none. */
int store_approval_find_short(struct connection *c, struct text prefix, bool waiting,
			      struct arena *arena, struct text ret_ids[2], unsigned *ret_n);

struct store_approval_query {
	int status;          /* enum approval_status, or -1: any */
	struct text session; /* data NULL: any */
	struct text run;     /* data NULL: any */
	int64_t after_seq;   /* newest first: only those before it; 0: from the end */
	bool oldest_first;   /* otherwise: only those after it; 0: from the first */
	unsigned limit;      /* 0: no limit */
	size_t max_bytes;    /* text bytes over all rows, but at least one row; 0: no limit */
};

int store_approval_list(struct connection *c, const struct store_approval_query *q,
			struct arena *arena, struct approval **ret_rows, unsigned *ret_n);

/* The newest approval, decided or not, of the run (or session) and tool that is tied to no event
 * and was made at `since_ms` or later. If both sides have a tool_use_id, the two must be equal,
 * and such a match comes first. */
int store_approval_untied(struct connection *c, struct text run, struct text tool,
			  struct text tool_use_id, int64_t since_ms, struct arena *arena,
			  struct approval *ret_row, bool *ret_found);

/* Whether this process has ever asked for an approval that is still kept. Its pid is one of this
 * host's; {NULL, 0}: there is one host only. */
int store_approval_has_asked(struct connection *c, struct text host, int64_t pid, int64_t started,
			     bool *ret_has);

/* How many wait for a human. */
int store_approval_waiting(struct connection *c, int64_t *ret_n);

/* Deletes up to `limit` approvals that were decided before the given time. */
int store_approval_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n);

/* ---- grants ---- */

/* -EEXIST when the id is taken. */
int store_grant_add(struct connection *c, const struct grant *row);
/* Takes one use; the last one deletes the grant. *ret_found is false when it is gone. */
int store_grant_use(struct connection *c, struct text id, bool *ret_found);
int store_grant_remove(struct connection *c, struct text id, bool *ret_found);
/* Oldest first. Expired grants are not listed; only the sweep deletes them. */
int store_grant_list(struct connection *c, int64_t now_ms, struct arena *arena,
		     struct grant **ret_rows, unsigned *ret_n);
int store_grant_sweep(struct connection *c, int64_t now_ms);
