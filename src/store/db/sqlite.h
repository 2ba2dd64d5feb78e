/* Shared by the files of the SQLite driver. */
#pragma once

#include <sqlite3.h>
#include <stdatomic.h>

#include "store/db/db_file.h"
#include "store/db/driver.h"

struct sqlite_place {
	struct db_file file;
	atomic_bool stop;
};

/* -errno for what SQLite returned. */
int sqlite_fault(sqlite3 *db, int rc);

int sqlite_connect(void *place, enum connection_kind kind, void **ret_db, struct error *error);
void sqlite_disconnect(void *db);

int sqlite_backup(void *place, const char *path, struct error *error);
int sqlite_quick_check(void *place, void *db, struct error *error);

/* The first column of the first row, as a number. */
int sqlite_read_number(sqlite3 *db, const char *sql, int *ret);

/* A file that cannot shrink is rewritten if it has little in it; otherwise it stays as it is. */
int sqlite_rewrite_to_shrink(sqlite3 *db);
int sqlite_scrub(void *db);
int sqlite_space(void *db, struct store_space *ret_space);
int sqlite_give_back(void *db, unsigned pages);

/* ---- sqlite_move.c: see driver.h ---- */

#define SQLITE_COLUMNS                                                                             \
	"SELECT t.name, c.name, CASE c.type WHEN 'INTEGER' THEN 'i' WHEN 'REAL' THEN 'd'"          \
	" WHEN 'TEXT' THEN 't' WHEN 'BLOB' THEN 'b' ELSE '?' END, c.pk"                            \
	" FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c"                             \
	" WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.rowid, c.cid"
#define SQLITE_LAST_NUMBER "SELECT seq FROM sqlite_sequence WHERE name = :table"

bool sqlite_makes(const char *address);
int sqlite_set_triggers(void *db, bool on);
int sqlite_set_last_number(void *db, const char *table, int64_t number);
