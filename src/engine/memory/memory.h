/*
 * Memory: what agents learn, kept and found again.
 *
 * A memory is personal (it has an owner), a group's (no owner, but a chat), or
 * common (neither: seen by all). Who names a user or a chat sees their own, the
 * chat's and the common ones; who names nobody sees everything. Who asks from a group sees
 * of their own only what was learnt in this chat, or in another that was not private.
 *
 * Functions that take a lane read on that worker's connection; the others
 * change things and belong to the writer's thread. Texts that are returned live
 * in the arena that was given.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/memory.h"
#include "base/text.h"
#include "base/why.h"

struct embedding;
struct embedding_opts;
struct events;
struct memories;
struct store;

struct memories_opts {
	struct store *store;
	struct events *events;              /* NULL: nobody is told of changes */
	unsigned n_readers;                 /* as many as there are reader threads */
	size_t index_bytes;                 /* for all search indexes together */
	bool off;                           /* nothing is remembered, and nothing found */
	const struct embedding_opts *model; /* that makes vectors; NULL: there is none */
};

/* Before the first call. Refuses a model whose URL or key cannot be. */
int memories_start(const struct memories_opts *opts, struct memories **ret_memories,
		   struct why *why);
void memories_stop(struct memories *m); /* asks the model nothing new; accepts NULL */
void memories_free(struct memories *m); /* accepts NULL; after the last work has finished */

bool memories_off(const struct memories *m);

/* What asks the model; NULL: there is none. Accepts NULL. */
struct embedding *memories_embedding(const struct memories *m);

/* ---- for engine.c, on the writer's thread; all accept NULL ---- */
void memories_mark(struct memories *m);      /* a call begins */
void memories_undo(struct memories *m);      /* ... and is undone */
void memories_committed(struct memories *m); /* the batch is kept: searches see it from now on */
void memories_dropped(struct memories *m);   /* ... or not */

enum { MEMORY_LIMIT_MAX = 1000, MEMORY_SUBJECTS_MAX = 64 };

/* Who asks. Both {NULL, 0}: nobody in particular, who sees everybody's. */
struct memory_asker {
	struct text user;
	struct text chat;
	struct text chat_type; /* "group" and "supergroup" are groups; {NULL, 0}: unknown */
	bool this_chat;        /* sees only what was learnt in the chat */
};

enum memory_scope { MEMORY_PERSONAL, MEMORY_GROUP, MEMORY_COMMON };

enum memory_scope memory_scope_of(const struct memory *m);

struct memory_new {
	struct text content;
	struct text source;
	struct text category; /* {NULL, 0}: other */
	double importance;    /* -1: the default, 0.5 */
	const struct text *subjects;
	unsigned n_subjects; /* at most MEMORY_SUBJECTS_MAX */
	struct memory_asker by;
	bool shared; /* with the chat that `by` names; so is what has a chat and no user */
	bool expires;
	int64_t expires_days;
	int64_t expires_ms; /* instead of days; 0: none */
	int64_t created_ms; /* 0: now; an import of old ones has its own */
	struct text metadata;
};

/*
 * Keeps one. The same content, user, chat, `shared`, source, subjects and expiry within ten
 * seconds gives the first one again, as `repeated`: clients repeat a call whose answer they did
 * not get. With another created_ms it is another one.
 */
int memory_add(struct memories *m, struct arena *a, const struct memory_new *in,
	       struct memory *ret_memory, struct why *why);

struct memory_query {
	struct text text;
	struct memory_asker by;
	int64_t limit;        /* as given: 0 and less is the default, 10 */
	struct text category; /* {NULL, 0}: any */
	struct text vector;   /* what embedding_ask gave for the text; {NULL, 0}: words alone */
	double least;         /* 0: none; see below */
	bool least_of_words;  /* it counts for what is judged by its words, too */
};

/*
 * Best first. With a vector, what is near in meaning is found beside what shares words. With
 * `least` as well, the cosine of the two vectors is the similarity, in whatever order that is, and
 * what has less is left out; a memory that has no vector yet is judged by its words, and stays
 * unless least_of_words is set. So are all without a vector.
 *
 * Of the hits only the members of MEMORY_FOUND are set, and the similarity.
 */
int memory_search(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		  struct memory **ret_hits, unsigned *ret_n, struct why *why);

struct memory_filter {
	struct memory_asker by;
	int64_t limit; /* as given: 0 and less is the default, 20 */
	bool include_expired;
};

/* Newest first; only the members of MEMBER_LISTED are set. */
int memory_list(struct memories *m, int lane, struct arena *a, const struct memory_filter *f,
		struct memory **ret_rows, unsigned *ret_n, struct why *why);

/* By id, or by a prefix that fits exactly one that `by` sees. */
int memory_get(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
	       struct text id, struct memory *ret_memory, struct why *why);

/* False when there is none, or two fit, or it is not theirs to delete. */
int memory_delete(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, bool *ret_deleted, struct why *why);

/* What is {NULL, 0} or -1 stays. */
struct memory_change_in {
	struct text content;
	struct text category;
	double importance;
	struct text metadata;
};

int memory_update(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, const struct memory_change_in *change, struct memory *ret_memory,
		  struct why *why);

struct memory_counts {
	struct memory_totals memories;
	size_t index_bytes;
	unsigned n_indexes;
	struct text model; /* that makes vectors; {NULL, 0}: none */
	bool model_fails;
	int64_t vectors;
	int64_t pending; /* memories that will have one */
};

/* Of what `by` sees. */
int memory_stats(struct memories *m, int lane, const struct memory_asker *by,
		 struct memory_counts *ret_counts);

/* Where a page begins in the order of time; zeroes: at the newest. */
struct memory_page {
	int64_t before_ms;
	int64_t before_seq;
	int64_t limit; /* as given: 0 and less is the most, 1000 */
};

/* The next ones, newest first, expired ones too: `limit` or, where they are long, less. No
 * rows: that was all. */
int memory_export(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  const struct memory_page *page, struct memory **ret_rows, unsigned *ret_n,
		  struct memory_page *ret_next);

/* Whether there is anything that expires, so that sweeping is worth a thread. */
bool memory_expires(const struct memories *m);

/* Deletes some of what has expired; *ret_more: there may be more of it. */
int memory_sweep(struct memories *m, bool *ret_more);
