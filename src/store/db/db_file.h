/*
 * The file of an embedded database before the database opens it: made private, inspected, and
 * held by one process.
 *
 * PATH.lock is flocked for as long as the file is held, and stays behind afterwards: a lock
 * file that is never removed cannot be locked twice. The flock ends with its process, so one
 * left by a crash blocks nobody. The file itself is flocked too: it may have a second name,
 * and the database would keep a separate log under each, which ruins the file. (The database's
 * own locks are of another kind.)
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

enum { DB_PATH_MAX = 480 }; /* SQLite allows 512, including its suffixes */

struct db_file {
	char path[DB_PATH_MAX + 1]; /* absolute, with the folder's links resolved */
	int lock_fd;
	int fd; /* closed last: closing it ends the database's own locks */
};

/*
 * Creates an empty file where there is none. A file that cannot be a database with this
 * application id is refused before the database reads it, and stays untouched.
 */
int db_file_hold(struct db_file *f, const char *path, unsigned application_id, struct error *error);
void db_file_drop(struct db_file *f);

/* Whether db_file_hold would accept it, as far as can be seen without creating anything. No koined
 * can hold the file until it is dropped. `fd` is -1 if there is no file. */
int db_file_look(struct db_file *f, const char *path, unsigned application_id, struct error *error);

/* Whether anything, of whatever kind, exists at `path` followed by `ending`. */
int db_file_exists(const char *path, const char *ending, int *ret_exists);

/* Makes the entries of the folder that holds `path` durable. */
int db_file_sync_folder(const char *path);

/* Describes a fault with a path; it becomes a refusal when permissions are the cause. */
int db_file_cannot(struct error *error, const char *verb, const char *path, int err);

/* The end of a path: as much of it as fits into a sentence. */
const char *db_file_tail(const char *path);
