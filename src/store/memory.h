/*
 * Memories in the store: rows in, rows out. A scope says who may see which, and whoever makes
 * it decides that; here it becomes part of every query.
 *
 * Functions that change something take the writer's connection, inside a batch.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/memory.h"

struct connection;

/* Where a user's own memories must have been learnt. In `chat` is always good enough. */
enum store_learnt {
	LEARNT_ANYWHERE,
	LEARNT_OPENLY, /* in a chat that is known, and known not to be private */
	LEARNT_HERE,
};

/*
 * What somebody sees: what `user` owns, what nobody owns in `chat`, what has neither in
 * `project`, and the common ones, which have none of them. data NULL means no user, chat or
 * project, so an empty scope sees only the common ones.
 */
struct store_scope {
	struct text user;
	struct text chat;
	struct text project;
	enum store_learnt learnt;
	bool without_common;
	bool everything; /* sees all, and the other members are ignored */
};

/* Called per row, whose text is valid only during the call. Any result but 0 ends the walk,
 * which returns it. The connection may be used for other queries. */
typedef int (*memory_fn)(void *arg, const struct memory *row);

/* Stores all of `row` but seq, which is returned. -EEXIST when the id is taken. */
int store_memory_add(struct connection *c, const struct memory *row, int64_t *ret_seq);

/*
 * Rewrites what may change of the memory with row->id: content, source, category,
 * importance, subjects, updated_ms, expires_ms, metadata and valid_from_ms.
 */
int store_memory_update(struct connection *c, const struct memory *row, bool *ret_found);

int store_memory_delete(struct connection *c, const struct store_scope *scope, struct text id,
			bool *ret_found);

/* Rows that are found, here and below, are copied into the arena. */
int store_memory_find(struct connection *c, const struct store_scope *scope, struct text id,
		      struct arena *arena, struct memory *ret_row, bool *ret_found);
/* The same for who changes it in this batch: nobody else does until its end. Of two hosts that change one
 * memory, the second sees what the first has made of it. */
int store_memory_lock(struct connection *c, const struct store_scope *scope, struct text id,
		      struct arena *arena, struct memory *ret_row, bool *ret_found);
int store_memory_find_seq(struct connection *c, const struct store_scope *scope, int64_t seq,
			  struct arena *arena, struct memory *ret_row, bool *ret_found);

/* Those of the scope that exist, in the order of `seqs`, from one state of the store; it stops
 * once their text exceeds max_bytes. Only the members of MEMORY_FOUND are read. ret_found has
 * room for n. */
int store_memory_find_seqs(struct connection *c, const struct store_scope *scope,
			   const int64_t *seqs, unsigned n, size_t max_bytes, struct arena *arena,
			   struct memory *ret_found, unsigned *ret_n);

/* How many of the scope have an id with this prefix: 0, 1, or 2 for more. The row is set when it
 * is 1. An empty prefix matches none. */
int store_memory_find_prefix(struct connection *c, const struct store_scope *scope,
			     struct text prefix, struct arena *arena, struct memory *ret_row,
			     unsigned *ret_n);

/* The number of a content: equal contents have the same. */
int64_t store_memory_hash(struct text content);

/* The first memory stored since `since_ms` with the content, owner, chat, project, `shared`, source
 * and subjects of `like`, and that expires at the same time or equally long after it was stored;
 * also with its created_ms unless that is 0. One that had expired when `like` came does not
 * count. */
int store_memory_find_same(struct connection *c, const struct memory *like, int64_t since_ms,
			   struct arena *arena, struct memory *ret_row, bool *ret_found);

struct store_memory_list_opts {
	struct store_scope scope;
	unsigned limit;
	size_t max_bytes; /* text bytes over all rows, but at least the first row; 0: no limit */
	bool brief;       /* only the members of MEMBER_LISTED are read */
	bool include_expired;
	bool include_replaced;
	int64_t now_ms;
	int64_t at_ms;        /* those that existed then, and were not replaced yet; 0: now */
	struct text category; /* data NULL: any */
	int64_t before_ms;    /* with before_seq, the last row of the previous page; */
	int64_t before_seq;   /* both 0: from the newest */
};

/* Newest first. The rows are one array. */
int store_memory_list(struct connection *c, const struct store_memory_list_opts *opts,
		      struct arena *arena, struct memory **ret_rows, unsigned *ret_n);

/* Those that somebody has to look at, the last stored first. */
int store_memory_list_review(struct connection *c, const struct store_scope *scope, unsigned limit,
			     size_t max_bytes, struct arena *arena, struct memory **ret_rows,
			     unsigned *ret_n);

/* A walk in slices. All zero but for limit and max_bytes: at the oldest. */
struct store_walk {
	unsigned limit;   /* of rows in a slice */
	size_t max_bytes; /* of their text: the row that exceeds it is the last; 0: no limit */
	bool begun;
	int64_t after_ms; /* the last row's place in time */
	int64_t after_seq;
	bool end; /* there are no more */
};

/* The next slice of the scope's rows, including expired ones, oldest first. Rows are read as the
 * slice proceeds, from the store as it was at its start. */
int store_memory_each(struct connection *c, const struct store_scope *scope,
		      struct store_walk *walk, memory_fn fn, void *arg);

/* Whether any memory has expired or will expire. */
int store_memory_any_expires(struct connection *c, bool *ret_any);

/* Deletes up to `limit` expired memories, and reports each after all are gone: only the members
 * of MEMORY_TRACE are set. */
int store_memory_sweep(struct connection *c, int64_t now_ms, unsigned limit, memory_fn fn,
		       void *arg);

int store_memory_count(struct connection *c, const struct store_scope *scope, int64_t now_ms,
		       struct memory_totals *ret_totals);
