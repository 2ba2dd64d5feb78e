/*
 * Search indexes that are kept in files beside the store, and what has changed since they were
 * written.
 *
 * A file counts only if its row is here: it is found by the row's token, which was drawn for that
 * file alone. So the store decides, also if it is replaced by another one, or by an older copy of
 * itself: its row then names another file, one that is gone, or one that was written before the
 * copy was made.
 *
 * New memories are found by their numbers, which grow. Those that have changed or are gone are
 * noted by triggers, whoever changes them; the last STORE_CHANGES_KEPT of these notes are kept.
 */
#pragma once

#include "store/memory.h"

enum { STORE_TOKEN_LEN = 32, STORE_CHANGES_KEPT = 65536 };

/* Up to where something follows the store. */
struct store_position {
	int64_t seq;    /* memories */
	int64_t change; /* notes */
};

/* Of everything that the connection sees. */
int store_memory_position(struct connection *c, struct store_position *ret_position);

struct store_kept {
	const char *kind; /* of scope */
	struct text name; /* of the user or chat; "": none */
	char token[STORE_TOKEN_LEN + 1];
	struct store_position position; /* what is in the file */
	int64_t memories;
	int64_t bytes;
};

/* Sets everything but kind and name. */
int store_kept_find(struct connection *c, const char *kind, struct text name,
		    struct store_kept *ret_kept, bool *ret_found);

/* In place of the scope's last one. */
int store_kept_put(struct connection *c, const struct store_kept *kept);

int store_kept_drop(struct connection *c, const char *token);

/* Those that a memory of this scope is in, and that of everything: their tokens, at most two. */
int store_kept_drop_scope(struct connection *c, const char *kind, struct text name,
			  char (*ret_tokens)[STORE_TOKEN_LEN + 1], unsigned *ret_n);

/* Where several hosts share the store there are no files: numbers do not come in order, and changes
 * are not noted. */
int store_kept_drop_all(struct connection *c);

/* Forgets those of users, chats and projects that have no memories any more. */
int store_kept_drop_gone(struct connection *c);

/* Each of them, the one written last first; kind and name are not set. */
typedef int (*kept_fn)(void *arg, const struct store_kept *kept);
int store_kept_each(struct connection *c, kept_fn fn, void *arg);

/* How many, and their bytes. */
int store_kept_count(struct connection *c, int64_t *ret_n, int64_t *ret_bytes);

/* ---- what has changed ---- */

/* The next `limit` memories that were changed or deleted after *after, which moves on. For each of
 * the scope its row as it is now; for any other, and those that are gone, only seq is set, and
 * the id is {NULL, 0}. *ret_end: there are no more. -ESTALE: some are not noted any
 * more. */
int store_memory_each_changed(struct connection *c, const struct store_scope *scope, int64_t *after,
			      unsigned limit, memory_fn fn, void *arg, bool *ret_end);

/* The scope's memories with from < seq <= to. */
int store_memory_each_numbered(struct connection *c, const struct store_scope *scope, int64_t from,
			       int64_t to, memory_fn fn, void *arg);
