/* What copying a store needs of PostgreSQL. */
#include <stdio.h>

#include "store/db/postgres.h"

enum { MOVE_SQL_MAX = 700 };

/* Only our own: those that keep references stay. The owner of a table may say so. */
int pg_set_triggers(void *db, bool on)
{
	char sql[MOVE_SQL_MAX];

	snprintf(sql, sizeof(sql),
		 "DO $m$ DECLARE t text; BEGIN"
		 " FOR t IN SELECT tablename FROM pg_tables WHERE schemaname = 'koine' LOOP"
		 " EXECUTE format('ALTER TABLE koine.%%I %s TRIGGER USER', t);"
		 " END LOOP; END $m$",
		 on ? "ENABLE" : "DISABLE");
	return pg_exec(db, sql);
}

int pg_set_last_number(void *db, const char *table, int64_t number)
{
	char sql[MOVE_SQL_MAX];

	snprintf(sql, sizeof(sql),
		 "SELECT setval(CAST(q.oid AS regclass), %lld)" PG_NUMBERS " AND t.relname = '%s'",
		 (long long)number, table);
	return pg_exec(db, sql);
}
