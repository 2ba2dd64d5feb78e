/*
 * The file of an embedded database, before the database opens it: made private,
 * looked at, and held by one process.
 *
 * PATH.lock is flocked for as long as the file is held, and stays behind
 * afterwards: a lock file that is never removed cannot be locked twice. The flock
 * ends with its process, so one left by a crash binds nobody. The file itself is
 * flocked too: it may have a second name, and under each the database would keep
 * another log, which ruins the file. (The database's own locks are of another kind.)
 */
#pragma once

#include <stddef.h>

#include "base/why.h"

enum { DB_PATH_MAX = 480 }; /* SQLite takes 512, with its endings */

struct db_file {
	char path[DB_PATH_MAX + 1]; /* absolute, links of the folder resolved */
	int lock_fd;
	int fd; /* closed last: closing it ends the database's own locks */
};

/*
 * Makes an empty file where there is none. What is there and cannot be a database with
 * this application id is refused, unread by the database and untouched.
 */
int db_file_hold(struct db_file *f, const char *path, unsigned application_id, struct why *why);
void db_file_drop(struct db_file *f);

/* Whether db_file_hold would take it, as far as can be seen without making or holding anything. */
int db_file_look(const char *path, unsigned application_id, struct why *why);

/* Whether something, of whatever kind, is at `path` followed by `ending`. */
int db_file_exists(const char *path, const char *ending, int *ret_exists);

/* Makes the entries of the folder that holds `path` durable. */
int db_file_sync_folder(const char *path);

/* A fault with a path, in words: a refusal where it is a matter of rights. */
int db_file_cannot(struct why *why, const char *verb, const char *path, int err);

/* What of a path fits into a sentence: its end. */
const char *db_file_tail(const char *path);
