/*
 * The store: one database, with one connection for writing and one connection for each reader
 * thread.
 *
 * The writer runs many calls in one transaction and commits once:
 *
 *	store_begin
 *		store_savepoint  a call's queries  store_release
 *		store_savepoint  another's, which fails  store_rollback_to
 *	store_commit         from here on, and not before, the first is kept
 *
 * A connection belongs to one thread at a time: the writer's functions to the
 * writer thread, each reader to its lane. Nothing here logs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;
struct connection;

/*
 * In bytes, of what rows are found by: the name of a user, a chat …, and a folder or project. In
 * PostgreSQL all columns of an entry of an index have 2704 together, unless they can be compressed,
 * and kept counts have a project beside the name of a model.
 */
enum { STORE_NAME_MAX = 256, STORE_FOLDER_MAX = 2048, STORE_NOTE_MAX = 256 };

struct store_opts {
	unsigned n_readers; /* 0: 4 */
	const char *host;   /* its name, if others may share the store; NULL: none */
	/* The file that lists the owners which koine store adopt has accepted; NULL if there is none. */
	const char *accepted;
	bool accepts_all; /* for an adoption: any owner, but a store without foreign owners is refused */
};

/*
 * `url` is "sqlite:PATH" or "postgresql://…". Creates what is missing, folders as 0700 and files
 * as 0600, and brings older tables up to date.
 *
 * Anything that cannot be ours is refused and left untouched: something other than a file,
 * another program's file, a damaged one, one of a newer koine, one that another koined has
 * open, one that a move has not finished. `error` describes faults as well.
 */
int store_open(const char *url, const struct store_opts *opts, struct store **ret_store,
	       struct error *error);

/*
 * Makes the tables of a store, or brings them up to date, and closes it again. Refuses what store_open refuses. The
 * store gets no identity and no host; its first user makes those.
 */
int store_init(const char *url, struct error *error);

/* Refuses an address of no kind of database that this program was built with, and one that would
 * show a secret. The sentence contains nothing of it. */
int store_check_url(const char *url, struct error *error);

/*
 * Whether store_open would accept it. Creates, changes and migrates nothing, refuses foreign tables and
 * those of a newer koine, and does not find damage further in. *ret_note is a sentence about what is
 * accepted but should not be; "" if there is none.
 */
int store_look(const char *url, const char *accepted, char ret_note[STORE_NOTE_MAX],
	       struct error *error);

/* No connection may still be in use. Accepts NULL. */
void store_close(struct store *s);

/* What was opened, with the links of its folder resolved. */
const char *store_path(const struct store *s);

/*
 * What the marks of our processes begin with: a random id of 16 characters that this database has had since it was
 * made, and something of the host where others have the same. Moving the database keeps the id; a copy gets its own
 * when it is first opened.
 */
const char *store_owner(const struct store *s);

/* False when the last user did not reach store_close: a quick check is due. It stays false,
 * start after start, until one has been done. */
bool store_was_clean(const struct store *s);

/* Why the last writes failed, as -errno; 0 again once one has changed something. Any thread. */
int store_failing(const struct store *s);

/* The server of the store answers again, so a write that found it away says nothing about the next. Any thread. */
void store_answers(struct store *s);

/* Whether a batch has been under way for five seconds, so that all other writes wait for it. Any thread. */
bool store_hangs(const struct store *s);

struct connection *store_writer(struct store *s);

/* 0 <= lane < n_readers. */
struct connection *store_reader(struct store *s, int lane);

/* The connection for a worker's lane; -1 is the writer's. */
struct connection *store_lane(struct store *s, int lane);

/* Whether several koined can use this store at the same time. */
bool store_has_feed(const struct store *s);

/* Opens the connection by which they hear of each other (store/host/host.h), for a thread of its own. A
 * server that does not answer for answer_ms is taken for gone. */
int store_open_feed(struct store *s, unsigned answer_ms, struct error *error);
struct connection *store_feed(struct store *s);

/* Whether the database has lost commits in a fail-over, or was restored: nothing works any more, and what
 * we remember may never have happened. Any thread, as the next. */
bool store_rewound(const struct store *s);
/* The last event that is known, by which that is found out. */
void store_note_event(struct store *s, int64_t seq, int64_t time_ms);

/* The database's own words for the last fault of a connection, for a log line. */
const char *store_message(const struct connection *c);

/*
 * A batch of the writer.
 *
 * After a failed commit nothing of the batch is kept, as far as anybody can see, and the next
 * begin starts afresh. A full disk (-ENOSPC) or a broken one (-EIO) fails those who waited,
 * not those who come once it works again.
 *
 * -EINPROGRESS: a server went away while it committed, and stayed away: nobody knows.
 *
 * Some faults undo the whole transaction at once. Then every query until the commit, and the
 * commit itself, return that fault.
 */
int store_begin(struct store *s);
int store_commit(struct store *s);

/* In place of a commit: the batch has failed with this fault, and is undone. */
void store_fail(struct store *s, int r);

/* Undoes the batch. */
void store_rollback(struct store *s);

/* Put these around one call of a batch. Exactly one of the other two ends a savepoint. */
int store_savepoint(struct store *s);
int store_release(struct store *s);
int store_rollback_to(struct store *s);

/*
 * Copies the store as it is at this moment into a new file (0600), while others read and
 * write. Call it on any thread but the writer's. The file appears under its name once it is
 * complete and on disk; an existing one is refused.
 */
int store_backup(struct store *s, const char *path, struct error *error);

/* Checks the whole file. 0: no damage; a refusal says what was found. */
int store_quick_check(struct store *s, int lane, struct error *error);

enum { STORE_SHRINK_PAGES = 64 }; /* at most, in one step */

/* After a commit: empties the database's log, which still has what was purged. False: a reader is in
 * the way, or the database failed; try again later. */
bool store_scrub(struct store *s);

/*
 * One step of returning to the file system what was deleted; runs in a batch. Some free pages
 * stay for what comes next, and it begins only when there are many more than those, so that a
 * store that neither grows nor shrinks is left alone. *ret_more: there is more to return.
 */
int store_shrink(struct store *s, bool *ret_more);

/* Whether it can: a large store of an older koine cannot. Any thread. */
bool store_shrinks(const struct store *s);

/* From any thread: current and later backups and checks end early with -ECANCELED. */
void store_stop(struct store *s);
