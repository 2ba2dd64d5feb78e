/*
 * What the file takes on the disk. SQLite reuses the pages of what was deleted; a file that can
 * shrink also gives them back, a few at a time: pages from its end move into free ones, and the
 * file ends earlier once the log is copied into it.
 *
 * Whether a file can shrink is settled before its first page, or by writing all of it anew
 * (VACUUM), in one transaction and with a copy of it in memory. So only a small one is rewritten.
 */
#include <errno.h>
#include <stdio.h>

#include "store/db/sqlite.h"

enum {
	INCREMENTAL = 2,              /* of PRAGMA auto_vacuum */
	REWRITE_BYTES_MAX = 64 << 20, /* in use: rewriting them takes about a second */
};

int sqlite_space(void *db, struct store_space *ret_space)
{
	int mode = 0, pages = 0, free = 0;
	int r = sqlite_read_number(db, "PRAGMA auto_vacuum", &mode)
			?: sqlite_read_number(db, "PRAGMA page_count", &pages)
			?: sqlite_read_number(db, "PRAGMA freelist_count", &free);

	if (r == 0)
		*ret_space = (struct store_space) {
			.pages = pages, .free = free, .shrinks = mode == INCREMENTAL};
	return r;
}

int sqlite_rewrite_to_shrink(sqlite3 *db)
{
	struct store_space space;
	int page_size = 0;
	int r = sqlite_space(db, &space) ?: sqlite_read_number(db, "PRAGMA page_size", &page_size);

	if (r != 0 || space.shrinks || (space.pages - space.free) * page_size > REWRITE_BYTES_MAX)
		return r;
	/* Without room for it the file stays as it was, and the next start tries again. */
	(void)sqlite3_exec(db, "PRAGMA auto_vacuum = INCREMENTAL; VACUUM", NULL, NULL, NULL);
	return 0;
}

int sqlite_give_back(void *db, unsigned pages)
{
	char sql[48];

	snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%u)", pages);
	return sqlite_fault(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}

/* A reader that sees an older state keeps the log from being emptied. The passive checkpoint finds
 * that out; the other one would wait for it, and so would every change. */
int sqlite_scrub(void *db)
{
	int in_log = 0, moved = 0;
	int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log, &moved);

	if (rc == SQLITE_OK && moved < in_log)
		return -EBUSY;
	if (rc == SQLITE_OK)
		rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	return sqlite_fault(db, rc);
}
