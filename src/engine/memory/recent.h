/*
 * Short lists of memories that were asked for last, so that the next who asks for one need not go
 * to the store: clients ask for the newest few all the time.
 *
 * A list is as good as the store: each scope has a number that grows with every change which was
 * committed in it, before whoever made it is answered. A list is at hand only while the numbers of
 * all scopes that it is made of are what they were before it was read, and none of its memories has
 * expired. Scopes may share a number, which costs a list at most.
 *
 * Any thread may call these functions. None of them waits for the store.
 */
#pragma once

#include "model/memory.h"
#include "store/memory.h"

struct memory_recent;

/* What a list is of. */
struct recent_key {
	struct store_scope scope;
	unsigned limit;
	bool include_expired;
};

enum { RECENT_SCOPES_MAX = 4 };

/* The numbers of its scopes. */
struct recent_mark {
	uint64_t numbers[RECENT_SCOPES_MAX];
};

int memory_recent_new(struct memory_recent **ret_recent);
void memory_recent_free(struct memory_recent *r); /* accepts NULL */

/* Before the store is read. */
struct recent_mark memory_recent_mark(const struct memory_recent *r, const struct recent_key *key);

/* What was read then, newest first. A long list is not kept. */
void memory_recent_put(struct memory_recent *r, const struct recent_key *key,
		       const struct recent_mark *mark, const struct memory *rows, unsigned n);

/* A list that is at hand. Its rows, with the members of MEMBER_LISTED, stay until it is released. */
struct recent_list;

/* NULL: there is none. */
struct recent_list *memory_recent_hold(struct memory_recent *r, const struct recent_key *key,
				       int64_t now_ms);
const struct memory *recent_rows(const struct recent_list *l, unsigned *ret_n);
void memory_recent_release(struct memory_recent *r, struct recent_list *l);

/* The writer has committed a change to this memory. */
void memory_recent_changed(struct memory_recent *r, const struct memory *m);

/* No list that was read before this is at hand any more. */
void memory_recent_forget(struct memory_recent *r);

/* How many lists there are; for tests. */
size_t memory_recent_count(struct memory_recent *r);
