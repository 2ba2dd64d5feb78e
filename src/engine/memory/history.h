/* Internal to memory/: what memories said before. */
#pragma once

#include "engine/memory/memory.h"
#include "search/index.h"
#include "search/query.h"

struct connection;
struct memory_forgetting;

/* Keeps what a memory says as a version, before it says something else from now_ms on. */
int history_keep(struct connection *c, const struct memory *was, int64_t now_ms);

/* A memory at that time: sets what it said then, or *ret_valid to false. 0: as it is now. */
int history_then(struct connection *c, struct arena *a, int64_t at_ms, struct memory *m,
		 bool *ret_valid);

/* `new` is stored, and replaces `old`. Also forgets the oldest of a long chain. */
int history_replace(struct memories *m, struct arena *a, const struct memory *old,
		    const struct memory *new);

/* A memory was deleted: so is what it replaced, and what that replaced. */
int history_forget(struct memories *m, struct arena *a, const struct memory *gone,
		   const struct memory_forgetting *how);

/*
 * The former texts that a search of the past sees, in an index of their own beside the scopes'.
 * Their keys have a bit that no memory's number has. All zero: there are none.
 */
struct former {
	int64_t at_ms; /* 0: whatever was ever valid */
	struct memory *rows;
	unsigned n;
	struct search_index *index; /* NULL: no rows */
	int64_t *changed;           /* memories that said something else then, in order */
	unsigned n_changed;
};

/* Reads them, on a reader's thread, if the query asks for the past. */
int former_read(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		struct former *ret_former);
void former_done(struct former *f);

/* The memories of today that the query may find are those that said the same then. */
void former_filter(const struct former *f, struct search_query *query);

/* The row of a hit that is a former text; NULL: it is a memory of today. */
const struct memory *former_row(const struct former *f, const struct search_hit *hit);

/* Whether a memory of today, as it is in the store, said the same then. */
bool former_is_same(const struct former *f, const struct memory *m);
