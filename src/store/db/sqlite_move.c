/* What copying a store needs of SQLite. */
#include <stdio.h>
#include <sys/stat.h>

#include "store/db/sqlite.h"

enum { NUMBER_SQL_MAX = 320 };

bool sqlite_makes(const char *address)
{
	struct stat st;

	return lstat(address, &st) != 0;
}

int sqlite_set_triggers(void *db, bool on)
{
	return sqlite_fault(db, sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, NULL));
}

int sqlite_set_last_number(void *db, const char *table, int64_t number)
{
	char sql[NUMBER_SQL_MAX];

	snprintf(sql, sizeof(sql),
		 "DELETE FROM sqlite_sequence WHERE name = '%s';"
		 "INSERT INTO sqlite_sequence (name, seq) SELECT name, %lld FROM sqlite_schema"
		 " WHERE name = '%s' AND sql LIKE '%%AUTOINCREMENT%%'",
		 table, (long long)number, table);
	return sqlite_fault(db, sqlite3_exec(db, sql, NULL, NULL, NULL));
}
