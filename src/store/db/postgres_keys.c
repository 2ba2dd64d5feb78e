/* Keys of rows, drawn before the rows are inserted, for a batch at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/db/postgres.h"

enum { DRAW_SQL_MAX = 200 };

void pg_keys_begin(struct pg_keys *keys)
{
	keys->stale = true;
}

static unsigned how_many(struct pg_keys *keys, const char *table)
{
	bool known = strcmp(keys->table, table) == 0;
	unsigned n = known && keys->n_used > 0 ? keys->n_used : 1;

	if (keys->stale || !known)
		keys->n_used = 0;
	keys->stale = false;
	snprintf(keys->table, sizeof(keys->table), "%s", table);
	return n < PG_KEYS_MAX ? n : PG_KEYS_MAX;
}

static int draw(struct pg *db, const char *table)
{
	struct pg_keys *keys = &db->keys;
	unsigned n = how_many(keys, table);
	PGresult *result = NULL;
	char sql[DRAW_SQL_MAX];
	int r;

	keys->n = keys->next = 0;
	snprintf(sql, sizeof(sql),
		 "SELECT nextval(pg_get_serial_sequence('koine.%s', 'seq'))"
		 " FROM generate_series(1, %u)",
		 table, n);
	r = pg_simple(db, sql, &result);
	if (r != 0)
		return r;
	for (; keys->n < n; keys->n++)
		keys->list[keys->n] = strtoll(PQgetvalue(result, (int)keys->n, 0), NULL, 10);
	PQclear(result);
	return 0;
}

int pg_draw_key(void *handle, const char *table, int64_t *ret_key)
{
	struct pg *db = handle;
	struct pg_keys *keys = &db->keys;
	bool has = !keys->stale && keys->next < keys->n && strcmp(keys->table, table) == 0;
	int r = has ? 0 : pg_ready(db) ?: draw(db, table);

	if (r != 0)
		return pg_note_fault(db, r);
	keys->n_used++;
	*ret_key = keys->list[keys->next++];
	return 0;
}
