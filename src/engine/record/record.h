/*
 * The live record: one thing of a noun (a task, a session, an approval …) that is held in memory and that
 * other hosts may change in the store.
 *
 * WHO OWNS WHAT. The row in the store is the truth; what is in memory is the noun's view of it. A noun
 * has one `struct records`, and a `struct record` inside each of its things. The noun owns its things and the
 * memory of its changes; this layer owns the order and the retries of the changes, and the queue of reads.
 * Everything belongs to the loop, except for the callbacks that name another thread. Without other hosts
 * (SQLite) the same code runs: nothing is heard, and the epoch is 0.
 *
 * CHANGES. The noun changes its thing in memory, then adds a change, which is written by `write` on the writer's
 * thread. The changes of one record are written one after another in the order they were made, those of
 * different records in any order, many in one commit. A change has one of these outcomes:
 *
 *	0                the change is stored
 *	-ENOENT          the thing is no longer in the store: there is nothing to write
 *	REFUSE_CONFLICT  LOST: another host changed the thing first, so the noun's guard did not match. The
 *	                 change is dropped, with all later ones of the record, which build on it
 *	other            FAILED: a fault, such as a full disk. It stays in the queue and is written again every second,
 *	                 with all later ones behind it, so that no state is lost or overwritten by an older one
 *	-ECANCELED       the record is being freed
 *
 * Waiters get an outcome once. A waiter of a failed change is not called again when a retry succeeds. All
 * callbacks run on the loop, and never inside the call that added the change, the waiter or the record.
 *
 * READS. An event of another host names a key. The keys of all events that arrived together, and of all stale
 * records, are read by one call of `read` on a reader's thread; then `sync` makes each thing like its row.
 * There is one queue for both, so a key that is named several times is read once, and one back-off:
 * a failed read is repeated after READ_FAULT_MS, a record that is stale again after a pause that doubles.
 * A row may be newer than its event, and may be read more than once. It may also be older than memory, if the
 * noun changed the thing while it was read. A noun either compares versions, or calls records_touch with
 * each change of its own: whatever was being read then is read again before it is synced.
 *
 * A noun calls record_stale when it knows that memory is behind: after LOST, or if a row refers to another
 * that is not known here yet. The record is read when an event names it, and otherwise after a pause: whoever was
 * first may not have committed yet, and a row read before that would only be lost again. The record stays stale
 * until it is synced while no change is pending.
 *
 * GAPS. If events were deleted before they were read, any part of memory may be behind. Then all keys are read: of
 * what is in memory (`reload`), and of what the store has for it (`list`). Each noun must define `reload`.
 * After a rewind of the log this is not enough: the store gives out numbers a second time, and a number that is
 * left anywhere in memory would silently name another row. So koined drops all of its memory (daemon/stop.c).
 *
 * OWNERS. Whatever runs here is stored with this host's epoch. The node calls `fenced` when the epoch is
 * over: the noun gives up what it runs and writes nothing of it. After that, and on every host now and then,
 * `reap` settles on the writer's thread what belongs to an epoch that is over, and `reaped` runs on the
 * loop with the settled rows. `joined` is called when a new epoch has begun.
 */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/sets.h"
#include "base/text.h"
#include "io/loop.h"
#include "io/work.h"

struct event;
struct events;
struct store;
struct node;
struct record_change;
struct record_feed;
struct record_reaper;
struct records;

/* One record of those that are embedded in the noun's things. */
struct record {
	struct records *records;
	struct list changes;     /* not stored yet, oldest first */
	struct list failed_link; /* in records->failed: its first change waits for a retry */
	int error;               /* result of the last try, while in that list */
	bool unreported;         /* waiters do not know about that error yet */
	unsigned n_holds;        /* nothing is written meanwhile */
	struct list read_link;   /* in the feed's queue: its row is to be read */
	bool stale;
};

/* A key that was read. */
struct record_found {
	struct text project, id; /* as `heard` or `key` named it */
	void *row;               /* what `read` found; NULL if the store has none */
	bool stale; /* the record was stale: a row of the same version is to be taken as well */
};

struct record_reaped {
	struct arena arena;
	void *rows;
	unsigned n;
	bool more; /* there may be more to reap */
};

/* How a noun's changes are written. All but `write` run on the loop. */
struct record_change_ops {
	const char *failed;                               /* logged for the first that fails */
	struct text (*id)(const struct record_change *c); /* for the log */
	/* Before the first `write`: nothing is added to the change after this. May be NULL. */
	void (*begin)(struct record_change *c);
	/* Before each `write`. May be NULL. */
	void (*prepare)(struct record_change *c);
	/* Runs on the writer's thread, possibly more than once. */
	int (*write)(struct record_change *c);
	/* After `write` returned 0, before any waiter is called. False if the guard did not match: the change is
	 * lost. NULL if that cannot happen. */
	bool (*took)(struct record_change *c);
	/* The change is stored or lost, and its waiters were called. recovered: earlier tries failed. It may
	 * free the record. */
	void (*stored)(struct record_change *c, bool recovered);
	/* A change failed, and its waiters were called. */
	void (*on_failed)(void *arg);
	void (*free)(struct record_change *c);
};

/* What a noun hears and reads. All but `read` and `list` run on the loop. */
struct record_read_ops {
	const struct text *types; /* as in struct event_filter */
	unsigned n_types;
	/* Another host's event. True if the row that *ret_project and *ret_id name is to be read; false if
	 * the event was applied, and its row need not be read. The texts are copied. NULL: the id is that
	 * in the event's data. */
	bool (*heard)(void *arg, const struct event *e, struct text *ret_project,
		      struct text *ret_id);
	/* The record of a key; NULL if it is not in memory. NULL: no record of this noun is ever stale. */
	struct record *(*find)(void *arg, struct text project, struct text id);
	void (*key)(const struct record *r, struct text *ret_project, struct text *ret_id);
	/* Runs on a reader's thread: sets the rows of all keys, by one query. Without it there are no rows. */
	int (*read)(void *arg, int lane, struct arena *a, struct record_found *found, unsigned n);
	void (*sync)(void *arg, const struct record_found *found); /* may be NULL */
	/* Events are missing: calls records_want for all that is in memory, and drops what has no key. If it fails, it
	 * is called again. */
	int (*reload)(void *arg);
	/* After that, on a reader's thread: the keys of what should be in memory. NULL if only what is there can
	 * change. */
	int (*list)(void *arg, int lane, struct arena *a, struct record_found **ret,
		    unsigned *ret_n);
};

/* What a noun does as epochs end. Without other hosts none is called. All but `reap` run on the loop, and may be
 * NULL. */
struct record_owner_ops {
	void (*fenced)(void *arg);
	void (*joined)(void *arg);
	/* A host is gone, or it is time to look. Runs before the reaping. */
	void (*others)(void *arg);
	/* Runs on the writer's thread. */
	int (*reap)(void *arg, struct record_reaped *ret);
	/* Runs if that succeeded. */
	void (*reaped)(void *arg, const struct record_reaped *reaped);
};

struct records_opts {
	struct events *events; /* may be NULL */
	struct node *node;     /* NULL if no other host shares the store */
	struct loop *loop;
	struct workers *workers;
	const char *name; /* how the log names a record: "NAME=ID" */
	void *arg;
	/* NULL if the noun has none. */
	const struct record_change_ops *changes;
	const struct record_read_ops *reads;
	const struct record_owner_ops *owners;
};

/* One for all records of a noun. */
struct records {
	struct records_opts opts;
	struct list failed; /* records whose first change could not be stored */
	struct timer *retry;
	bool failing;       /* the last try failed */
	unsigned n_changes; /* changes of all records that are not stored yet */
	bool stopping;      /* set by the noun: nothing is reaped any more */
	struct record_feed *feed;
	struct record_reaper *reaper;
};

/* Hears the events that follow the ones that were in the log when it was started. */
int records_start(struct records *rs, const struct records_opts *opts);
/* Also accepts one that is all zero; call it after the last work has finished. */
void records_done(struct records *rs);

/* Before the threads start: runs `fn`, which settles what an ended epoch has left, in a transaction with its events.
 * While other hosts hold locks, it runs again. */
int records_settle(struct store *store, struct events *events, int (*fn)(void *arg), void *arg);

/* For `read`: the ids of all keys; NULL if memory runs out. Then sets the rows, of `size` bytes with an id at that
 * offset, in any order. */
struct text *record_ids(struct arena *a, const struct record_found *found, unsigned n);
void record_match(struct record_found *found, unsigned n, void *rows, unsigned n_rows, size_t size,
		  size_t id_at);

/* For `list`: keys that have no project. */
int record_keys(struct arena *a, const struct text *ids, unsigned n, struct record_found **ret);

/* Only within `reload`: this key is to be read. */
int records_want(struct records *rs, struct text project, struct text id);

/* The noun changed something itself: what is being read is read again. */
void records_touch(struct records *rs);

void record_init(struct record *r, struct records *rs);
/* Waiters get -ECANCELED. No change may be on its way. */
void record_drop(struct record *r);

/* Memory is behind the store. The row is read soon, after what is on its way. */
void record_stale(struct record *r);
/* Its row was taken. What was heard since that was read is still to be read. */
static inline void record_fresh(struct record *r)
{
	r->stale = false;
}

/* Something else is written to the thing: until it is, its changes are not sent. What is on its way
 * comes before that. */
void record_hold(struct record *r);
void record_release(struct record *r);

/* Whether a change is on its way or waiting. This still holds while its waiters are called. */
static inline bool record_pending(const struct record *r)
{
	return !list_empty(&r->changes);
}

/* The last change, if more can be added to it; NULL: make a new one. */
struct record_change *record_open_change(struct record *r);

/* Called once with the outcome. It may do anything except free the record. The waiter is already off its list
 * and may be freed. */
struct record_waiter {
	struct list link;
	void (*fn)(struct record_waiter *w, int outcome);
};

struct record_change {
	struct list link; /* in record->changes */
	struct record *record;
	struct work work;
	struct list waiters;
	bool begun;
};

void record_change_init(struct record_change *c);
void record_change_wait(struct record_change *c, struct record_waiter *w);

/* Appends a change. record_submit sends it once those before it are stored. */
void record_add_change(struct record *r, struct record_change *c);
void record_submit(struct record *r);
/* Waiters of a record whose first change failed get the error soon: how long the retries take is unknown. */
void record_report(struct record *r);
