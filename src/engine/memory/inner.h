/* Internal to memory/: the handle, and what its files share. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/metric.h"
#include "base/sets.h"
#include "engine/index/changes.h"
#include "engine/memory/memory.h"
#include "engine/record/record.h"
#include "search/index.h"
#include "search/query.h"
#include "search/vector/near.h"
#include "store/index/found.h"
#include "store/index/kept.h"
#include "store/memory.h"

struct loop;

struct memories {
	struct store *store;
	struct events *events; /* NULL: no events are logged */
	struct memory_indexes *indexes;
	struct memory_recent *recent;  /* lists that are at hand */
	struct memory_changes changes; /* of the writer's batch */
	struct records records;        /* only to hear other hosts */
	pthread_mutex_t apply_lock;    /* a change is applied after what was read before it */
	struct embedding *embedding;   /* NULL: there is no model */
	struct word_file *words;       /* NULL: there is no table of words */
	struct fuse_fit fit;           /* how well the model's vectors fit; under its lock */
	pthread_mutex_t fit_lock;
	bool off;
	struct found_memories *found;     /* of what is shared: a search's hits; NULL: it is not */
	bool shared;                      /* other hosts may change memories, too */
	struct lately contents;           /* of these, what was stored lately, by anybody */
	atomic_bool expires;              /* there is something to sweep, now or later */
	atomic_bool deleted;              /* the same of deleted memories */
	int64_t keep_deleted_ms;          /* how long they can be restored */
	struct shared_histogram searches; /* nanoseconds of those that were answered */
};

enum {
	MEMORY_ROWS_BYTES = 32 << 20, /* of text in one answer */
	/* Of a page, which must fit into an answer even if everything is escaped: an answer may
	 * have 16 MiB, and an escape takes six bytes. */
	MEMORY_PAGE_BYTES = 2 << 20,
};

int memory_check_on(const struct memories *m, struct error *error);
int memory_check_category(struct text given, struct error *error);
int memory_need(struct text t, const char *field, struct error *error);

/* By the whole id, else by a prefix that matches only one: *ret_n is 0, 1, or 2 for more. */
int memory_find_by_id(struct connection *c, const struct store_scope *scope, struct text id,
		      bool to_change, struct arena *a, struct memory *ret, unsigned *ret_n);
int memory_refuse_prefix(struct text id, struct error *error);

/* ---- access.c: who may see a memory, and who may change it ---- */

/* Whether the asker is named; an unnamed asker sees everything, or what is common. */
bool memory_names_somebody(const struct memory_asker *by);

/* Refuses an asker that makes no sense. */
int memory_check_asker(const struct memory_asker *by, struct error *error);

/* Where the memories of their own that they see were learnt. */
enum store_learnt memory_learnt(const struct memory_asker *by);

struct store_scope memory_seen_by(const struct memory_asker *by);

/* Nobody who has a name owns the common ones. */
struct store_scope memory_changed_by(const struct memory_asker *by);

/* Sets the owner of a new memory. */
void memory_give(const struct memory_new *in, struct memory *m);

/* ---- forget.c ---- */

struct memory_forgetting {
	struct text root; /* the id of the memory that is deleted: see store/history/deleted.h */
	int64_t now_ms;
	bool keep;  /* it can be restored */
	bool purge; /* and leaves no traces */
};

int memory_forget_one(struct memories *m, const struct memory *gone,
		      const struct memory_forgetting *how);
int memory_sweep_deleted(struct memories *m, bool *ret_more);

/* ---- history.c: what memories said before ---- */

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
struct memory_former {
	int64_t at_ms; /* 0: whatever was ever valid */
	struct memory *rows;
	unsigned n;
	struct search_index *index; /* NULL: no rows */
	int64_t *changed;           /* memories that said something else then, in order */
	unsigned n_changed;
};

/* Reads them, on a reader's thread, if the query asks for the past. */
int former_read(struct memories *m, int lane, struct arena *a, const struct memory_query *q,
		struct memory_former *ret_former);
void former_done(struct memory_former *f);

/* The memories of today that the query may find are those that said the same then. */
void former_filter(const struct memory_former *f, struct search_query *query);

/* The row of a hit that is a former text; NULL: it is a memory of today. */
const struct memory *former_row(const struct memory_former *f, const struct search_hit *hit);

/* Whether a memory of today, as it is in the store, said the same then. */
bool former_is_same(const struct memory_former *f, const struct memory *m);

/* ---- memory.c, event.c, duplicates.c ---- */

/* The writer's batch changes this memory: indexes and lists get to know with the commit. */
int memory_note_change(struct memories *m, enum memory_change_kind kind,
		       const struct memory *memory);

/* A restored memory is found again. */
int memory_put_again(struct memories *m, const struct memory *memory);

/* As given by clients: 0 or less means the default. */
unsigned memory_limit(int64_t given, unsigned fallback);

/* Logs that a memory has changed, but never its text. Runs on the writer's thread; type:
 * "memory.added" ... */
int memory_publish(struct memories *m, const char *type, const struct memory *memory);

/* Begins to hear of what other hosts change, if there are any. */
int memories_follow(struct memories *m, struct loop *loop, struct workers *workers);

/* A memory that is added again within so long is a retry. */
enum { MEMORY_SAME_WITHIN_MS = 10 * 1000 };

/* The memory that `new` repeats. Imported memories have their own times: if created_ms differs,
 * they are two memories. */
int memory_find_first(struct memories *m, const struct memory_new *in, const struct memory *new,
		      struct arena *a, struct memory *ret_first, bool *ret_found);

/* Somebody stores this content. Any thread. */
void memory_note_content(struct memories *m, struct text content);

/* Lists and indexes have a change that is kept. Any thread, with the apply_lock held. */
void memories_apply(struct memories *m, const struct memory_change *change, int lane);
