/*
 * Approvals in the store, and the grants that answer some of them beforehand.
 *
 * What changes something takes the writer's connection, inside a batch. Rows that are found are
 * copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/approval.h"

struct connection;

/* All of row but seq. -EEXIST when the id is taken. */
int store_approval_add(struct connection *c, const struct approval *row, int64_t *ret_seq);

/* Takes row->id from pending to how row says: status, comment, decided_*, decider_*. *ret_done
 * false: somebody was quicker, or there is none. */
int store_approval_decide(struct connection *c, const struct approval *row, bool *ret_done);

/* A session of {NULL, 0} leaves the one that is there. An approval that is gone stays so. */
int store_approval_tie(struct connection *c, int64_t seq, struct text session, int64_t event_id);

int store_approval_find(struct connection *c, struct text id, struct arena *arena,
			struct approval *ret_row, bool *ret_found);

/* The ids that begin so, for people who type the first characters, of all or of those that wait.
 * *ret_n: how many, 2 for more; "" begins none. */
int store_approval_find_short(struct connection *c, struct text prefix, bool waiting,
			      struct arena *arena, struct text ret_ids[2], unsigned *ret_n);

struct store_approval_query {
	int status;          /* enum approval_status, or -1: any */
	struct text session; /* data NULL: any */
	struct text run;     /* data NULL: any */
	int64_t after_seq;   /* newest first: those before it; 0: from the end */
	bool oldest_first;   /* then: those behind it; 0: from the first */
	unsigned limit;      /* 0: any number */
	size_t max_bytes;    /* of text in all rows, but never none of them; 0: any */
};

int store_approval_list(struct connection *c, const struct store_approval_query *q,
			struct arena *arena, struct approval **ret_rows, unsigned *ret_n);

/* The newest, decided or not, of the run (or session) and tool that is tied to no event and was made at
 * `since_ms` or later; with a tool_use_id on both sides, they must be equal, and such a one
 * comes first. */
int store_approval_untied(struct connection *c, struct text run, struct text tool,
			  struct text tool_use_id, int64_t since_ms, struct arena *arena,
			  struct approval *ret_row, bool *ret_found);

/* Whether this process has ever asked for one that is still kept. */
int store_approval_has_asked(struct connection *c, int64_t pid, int64_t started, bool *ret_has);

/* Deletes up to `limit` that were decided before then. */
int store_approval_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n);

/* ---- grants ---- */

/* -EEXIST when the id is taken. */
int store_grant_add(struct connection *c, const struct grant *row);
/* One use less; the last deletes it. *ret_found false: it is gone. */
int store_grant_use(struct connection *c, struct text id, bool *ret_found);
int store_grant_remove(struct connection *c, struct text id, bool *ret_found);
/* Oldest first; what expired before now is deleted by the sweep alone, and not in the list. */
int store_grant_list(struct connection *c, int64_t now_ms, struct arena *arena,
		     struct grant **ret_rows, unsigned *ret_n);
int store_grant_sweep(struct connection *c, int64_t now_ms);
