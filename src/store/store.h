/*
 * Where things are kept: one database, one connection that writes, and one
 * that reads for each reader thread.
 *
 * The writer runs many calls in one transaction and commits once:
 *
 *	store_begin
 *		store_savepoint  a call's queries  store_release
 *		store_savepoint  another's, which fails  store_rollback_to
 *	store_commit         from here on, and not before, the first is kept
 *
 * A connection belongs to one thread at a time: the writer's functions to the
 * writer thread, each reader to its lane. Nothing in here logs.
 */
#pragma once

#include <stdbool.h>

#include "base/why.h"

struct store;
struct connection;

struct store_opts {
	unsigned n_readers; /* 0: 4 */
};

/*
 * "sqlite:PATH". Makes what is missing: folders 0700, files 0600. Brings an
 * older file up to date.
 *
 * Whatever cannot be ours is refused and not touched: something else than a
 * file, another program's file, a damaged one, one of a newer koine, one that
 * another koined has open. `why` is worded for faults as well.
 */
int store_open(const char *url, const struct store_opts *opts, struct store **ret_store,
	       struct why *why);

/*
 * Whether store_open would take it, as far as can be seen from outside: makes, changes and
 * migrates nothing. Damage further in, or a newer koine's tables, it does not find.
 */
int store_look(const char *url, struct why *why);

/* No connection may be in use any more. Accepts NULL. */
void store_close(struct store *s);

/* What was opened, links of its folder resolved. */
const char *store_path(const struct store *s);

/*
 * A random id that this database has had since it was made, of 16 characters. It goes along when the
 * database is moved, but not with a copy: that gets its own when it is first opened.
 */
const char *store_identity(const struct store *s);

/* False when the last to use it did not get to store_close: time for a quick check.
 * It stays false, start after start, until one was done. */
bool store_was_clean(const struct store *s);

/* Why the last writes failed, as -errno; 0 as soon as one has changed something again. Any thread. */
int store_failing(const struct store *s);

struct connection *store_writer(struct store *s);

/* 0 <= lane < n_readers. */
struct connection *store_reader(struct store *s, int lane);

/* The connection for a worker's lane: the writer's for -1. */
struct connection *store_lane(struct store *s, int lane);

/* The database's own words for the last fault of a connection, for a log line. */
const char *store_message(const struct connection *c);

/*
 * A batch of the writer.
 *
 * After a failed commit nothing of the batch is kept, as far as anybody can see, and the
 * next begin starts afresh: a full disk (-ENOSPC) or a broken one (-EIO) costs
 * those who waited, not those who come when it is well again.
 *
 * Some faults undo the whole transaction at once. Then every query until the
 * commit, and the commit, return that fault.
 */
int store_begin(struct store *s);
int store_commit(struct store *s);

/* Undoes the batch instead. */
void store_rollback(struct store *s);

/* Around one call of a batch. A savepoint is ended by exactly one of the other two. */
int store_savepoint(struct store *s);
int store_release(struct store *s);
int store_rollback_to(struct store *s);

/*
 * Copies the store as it is at this moment into a new file (0600), while
 * others read and write. On any thread but the writer's. The file appears
 * under its name when it is complete and on disk; one that exists is refused.
 */
int store_backup(struct store *s, const char *path, struct why *why);

/* Looks through the whole file. 0: no damage; a refusal says what was found. */
int store_quick_check(struct store *s, int lane, struct why *why);

/* From any thread: backups and checks under way, and later ones, end early with -ECANCELED. */
void store_stop(struct store *s);
