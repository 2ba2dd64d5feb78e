/*
 * Memory: what agents learn, stored and found again.
 *
 * A memory is personal (it has an owner), a group's (no owner, but a chat), a project's (neither,
 * but a project), or common (none of these: everybody sees it). A chat or a project that is not
 * its owner only says where it was learnt.
 *
 * An asker that names a user, a chat or a project sees the user's own, the chat's, the project's
 * and the common ones, and nothing of those that are not named: a project's memories are not seen
 * by a user who does not name it. An asker that names nobody sees everything. An asker in a group
 * sees, of their own memories, only those learnt in this chat, or in another one that was not
 * private.
 *
 * Functions that take a lane read on that worker's connection; the others change things and
 * belong to the writer's thread. Texts that are returned live in the given arena.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/metric.h"
#include "model/memory.h"
#include "base/text.h"
#include "base/error.h"
#include "io/work.h"

struct embedding;
struct embedding_opts;
struct events;
struct loop;
struct memories;
struct memory_wait;
struct recent_list;
struct store;
struct word_file;

struct memories_opts {
	struct store *store;
	struct events *events;              /* NULL: changes are not logged */
	unsigned n_readers;                 /* the number of reader threads */
	struct workers *workers;            /* builds the indexes */
	struct loop *loop;                  /* for `shared` */
	bool shared;                        /* other hosts may change memories, too: no files */
	size_t index_bytes;                 /* for all search indexes together */
	const char *index_folder;           /* for files of large ones; NULL: there are none */
	uint64_t index_file_bytes;          /* for all these files together; 0: there are none */
	bool off;                           /* nothing is stored, and nothing is found */
	unsigned keep_deleted_days;         /* how long deleted ones can be restored; 0: never */
	const struct embedding_opts *model; /* the model that makes vectors; NULL: there is none */
	struct word_file *words;            /* NULL: there is none */
};

/* Call it before the first call. Takes `words`, on failure, too. Refuses a model whose URL or key
 * is invalid. */
int memories_start(const struct memories_opts *opts, struct memories **ret_memories,
		   struct error *error);
/* Sends nothing new to the model, and refuses searches that wait. Accepts NULL. */
void memories_stop(struct memories *m);
void memories_free(struct memories *m); /* accepts NULL; call it after the last work has finished */

/* Now and then, on the loop: keeps indexes in files. Accepts NULL. */
void memories_tick(struct memories *m);
/* After the last work has finished, before memories_free: the same for what is left, which may take
 * some seconds. Accepts NULL. */
void memories_finish(struct memories *m);

bool memories_off(const struct memories *m);

/* The model's client; NULL: there is none. Accepts NULL. */
struct embedding *memories_embedding(const struct memories *m);

/* For a search, on the loop, before its work is submitted: see engine/index/wait.h. Accepts NULL for `m`: then the
 * search never waits. */
void memory_wait_init(struct memory_wait *w, struct memories *m);

/* ---- for engine.c, on the writer's thread; all accept NULL ---- */
void memories_mark(struct memories *m);      /* a call begins */
void memories_undo(struct memories *m);      /* the call is undone */
void memories_committed(struct memories *m); /* the batch is kept: searches see it from now on */
void memories_dropped(struct memories *m);   /* the batch is not kept */

enum {
	MEMORY_LIMIT_MAX = 1000,
	MEMORY_SUBJECTS_MAX = 64,
	MEMORY_VERSIONS_MAX = 32, /* kept of a memory, and of memories that replaced each other */
};

/* Who asks. None of the three is named: nobody in particular, which sees everything. */
struct memory_asker {
	struct text user;
	struct text chat;
	struct text chat_type;   /* "group" and "supergroup" are groups; {NULL, 0}: unknown */
	struct text project;     /* as model/project.h names it */
	bool this_chat;          /* sees only what was learnt in the chat */
	bool common;             /* means the common ones alone, whoever asks */
	bool changes_common;     /* may change common ones, too, if it names somebody */
	struct text tool_use_id; /* the agent's own id of the call; told with what it changes */
};

enum memory_scope { MEMORY_PERSONAL, MEMORY_GROUP, MEMORY_PROJECT, MEMORY_COMMON };

enum memory_scope memory_scope_of(const struct memory *m);

struct memory_new {
	struct text content;
	struct text source;
	struct text category; /* {NULL, 0}: other */
	double importance;    /* -1: the default, 0.5 */
	const struct text *subjects;
	unsigned n_subjects; /* at most MEMORY_SUBJECTS_MAX */
	struct memory_asker by;
	/* With the chat that `by` names, else with the project. So is anything that has a chat or a
	 * project but no user. */
	bool shared;
	bool expires;
	int64_t expires_days;
	int64_t expires_ms; /* instead of days; 0: none */
	int64_t created_ms; /* 0: now; imported ones have their own time */
	struct text metadata;
	/* The id of a memory that is not valid any more, or its beginning; {NULL, 0}: none. The new
	 * one belongs to whom that one belonged, who must be `by`'s to change. */
	struct text replaces;
	struct text origin; /* what it was drawn from; {NULL, 0}: not said */
	enum memory_review review;
	bool once; /* the same is not stored again, however long ago it was */
};

/* Refuses names that are too long for anything to be kept under them. */
int memory_check_names(const struct memory_asker *by, struct error *error);

/*
 * Stores a memory. The same content, user, chat, project, `shared`, source, subjects and
 * expiry within ten seconds returns the first one, as `repeated`: clients repeat a call if they did not get
 * its answer. With another created_ms it is a different memory.
 */
int memory_add(struct memories *m, struct arena *a, const struct memory_new *in,
	       struct memory *ret_memory, struct error *error);

struct memory_query {
	struct text text;
	struct memory_asker by;
	int64_t limit;        /* as given: 0 or less means the default, 10 */
	struct text category; /* {NULL, 0}: any */
	struct text vector;   /* the answer of embedding_ask for the text; {NULL, 0}: words alone */
	double least;         /* 0: none; see below */
	bool least_of_words;  /* it also applies to memories that are judged by their words */
	int64_t at_ms;        /* what was valid then; 0: what is valid now */
	bool include_replaced;    /* and what was ever valid, if at_ms is 0 */
	bool explain;             /* each hit says why it was found */
	struct memory_wait *wait; /* of the work that searches */
};

/*
 * Best first. With a vector, memories that are close in meaning are found as well as those
 * that share words. If `least` is also set, the similarity is the cosine of the two vectors,
 * whatever the order of the hits, and hits with less are left out. A memory without a vector
 * is judged by its words, and stays unless least_of_words is set. The same goes for all
 * memories if there is no vector.
 *
 * In the hits only the members of MEMORY_FOUND and the similarity are set.
 *
 * Several spellings of one fact (duplicates.h) are one hit, the newest, unless all that was ever
 * valid is asked for; further hits fill the limit.
 *
 * Of the past, the memories that have not changed since are found as always; of those that have,
 * the texts that were valid then, at most 2000 of them, by their words.
 *
 * WORK_WAITS when its indexes are not in memory: q->wait says what it waits for, and the work,
 * whose `wait` that is, must return WORK_WAITS, too.
 */
int memory_search(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		  struct memory **ret_hits, unsigned *ret_n, struct error *error);

struct memory_filter {
	struct memory_asker by;
	int64_t limit; /* as given: 0 or less means the default, 20 */
	bool include_expired;
	int64_t at_ms; /* what was valid then; 0: what is valid now */
	bool include_replaced;
};

/* Newest first; only the members of MEMBER_LISTED are set, or all if the past is asked for. */
int memory_list(struct memories *m, int lane, struct arena *a, const struct memory_filter *f,
		struct memory **ret_rows, unsigned *ret_n, struct error *error);

/* A list as memory_list gives it, on the loop: NULL when it is not at hand, or would be refused. The
 * rows stay until it is released. */
struct recent_list *memory_list_at_hand(struct memories *m, const struct memory_filter *f,
					const struct memory **ret_rows, unsigned *ret_n);
void memory_list_release(struct memories *m, struct recent_list *list);

/* By id, or by a prefix that matches exactly one that `by` sees. */
int memory_get(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
	       struct text id, struct memory *ret_memory, struct error *error);

/* The same, as it was at that time: not found if it was not valid then. 0: now. */
int memory_get_at(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  struct text id, int64_t at_ms, struct memory *ret_memory, struct error *error);

/* What a memory said, newest first: itself, what it said before, and the same of those that it
 * replaced. Up to 1000 rows and 2 MiB of text. */
int memory_history(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		   struct text id, struct memory **ret_rows, unsigned *ret_n, struct error *error);

/*
 * Its history goes with it. False if there is none, or if `by` may not delete it; REFUSE_CONFLICT if
 * several ids begin with `id`. Nothing finds it any more, but it can be restored for a while unless
 * `purge` is set: then it leaves the store, the indexes and their files, also if it was already
 * deleted. *ret_memory is set when *ret_deleted is.
 */
int memory_delete(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, bool purge, struct memory *ret_memory, bool *ret_deleted,
		  struct error *error);

/* Brings back a deleted memory with its history. Refuses one that is not there. */
int memory_restore(struct memories *m, struct arena *a, const struct memory_asker *by,
		   struct text id, struct memory *ret_memory, struct error *error);

/* Those that `by` may restore, deleted last first; updated_ms is when. */
int memory_list_deleted(struct memories *m, int lane, struct arena *a,
			const struct memory_asker *by, int64_t limit, struct memory **ret_rows,
			unsigned *ret_n, struct error *error);

/* A member that is {NULL, 0} or -1 stays unchanged. A content that is changed is kept: see
 * memory_history. */
struct memory_change_in {
	struct text content;
	struct text category;
	double importance;
	struct text metadata;
	bool accept; /* somebody has looked at it: see memory_review */
};

int memory_update(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, const struct memory_change_in *change, struct memory *ret_memory,
		  struct error *error);

/* Memories that an agent made and nobody has looked at, of those that `by` may change; the last
 * stored first. Rejecting one means deleting it. */
int memory_review(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  int64_t limit, struct memory **ret_rows, unsigned *ret_n, struct error *error);

/* It counts like any other from now on, with another content unless that is {NULL, 0}. */
int memory_accept(struct memories *m, struct arena *a, const struct memory_asker *by,
		  struct text id, struct text content, struct memory *ret_memory,
		  struct error *error);

struct memory_counts {
	struct memory_totals memories;
	size_t index_bytes;
	unsigned n_indexes;
	int64_t index_files; /* large indexes that are kept in files */
	int64_t index_file_bytes;
	struct text model; /* the model that makes vectors; {NULL, 0}: none */
	bool model_fails;
	int64_t vectors;
	int64_t pending;        /* memories that will have one */
	struct text words_file; /* the table of word vectors; {NULL, 0}: none */
	size_t words;           /* that it has */
};

/* Counts what `by` sees. */
int memory_stats(struct memories *m, int lane, const struct memory_asker *by,
		 struct memory_counts *ret_counts);

struct memory_figures {
	uint64_t n_indexes; /* in memory, with those that are being built */
	uint64_t index_bytes;
	struct histogram searches; /* nanoseconds */
};

/* Any thread. False: memory is off, or there is none (NULL). */
bool memory_figures(struct memories *m, struct memory_figures *ret);

/* Where a page starts in the order of time; all zero: at the newest. */
struct memory_page {
	int64_t before_ms;
	int64_t before_seq;
	int64_t limit; /* as given: 0 or less means the maximum, 1000 */
};

/* The next memories, newest first, including expired ones: `limit` of them, or fewer if they are
 * long. No rows: there are no more. */
int memory_export(struct memories *m, int lane, struct arena *a, const struct memory_asker *by,
		  const struct memory_page *page, struct memory **ret_rows, unsigned *ret_n,
		  struct memory_page *ret_next);

/* Whether anything expires at all, so that sweeping is worth a thread. */
bool memory_expires(const struct memories *m);

/* Deletes some of the expired memories; *ret_more: there may be more of them. */
int memory_sweep(struct memories *m, bool *ret_more);
