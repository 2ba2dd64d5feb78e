/* A new file has the tables that all steps, one after another, would have made. */
#include "check.h"

#include <errno.h>
#include <sqlite3.h>

#include "base/cleanup.h"
#include "store/db/schema.h"

static sqlite3 *empty(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	return db;
}

static void run(sqlite3 *db, const char *script)
{
	if (sqlite3_exec(db, script, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
}

static void add_rows(sqlite3 *db, const char *sql, struct buf *out)
{
	sqlite3_stmt *st;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(st); i++) {
			const unsigned char *value = sqlite3_column_text(st, i);

			buf_printf(out, "%s|", value ? (const char *)value : "NULL");
		}
		buf_add_char(out, '\n');
	}
	sqlite3_finalize(st);
}

/* What is in it: how it was made, and every row. */
static void add_all(sqlite3 *db, struct buf *out)
{
	sqlite3_stmt *st;

	add_rows(db, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name",
		 out);
	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT name FROM sqlite_schema WHERE type = 'table'"
					    " ORDER BY name",
					    -1, &st, NULL),
			 SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW) {
		char sql[200];

		snprintf(sql, sizeof(sql), "SELECT '%s', * FROM %s ORDER BY 2",
			 sqlite3_column_text(st, 0), sqlite3_column_text(st, 0));
		add_rows(db, sql, out);
	}
	sqlite3_finalize(st);
	buf_add_char(out, '\0');
	assert_int_equal(out->err, 0);
}

TEST(at_once_is_what_the_steps_make)
{
	CLEANUP(buf_donep) struct buf script, by_steps, at_once;
	sqlite3 *one = empty(), *other = empty();

	buf_init(&script, 1 << 20);
	buf_init(&by_steps, 1 << 20);
	buf_init(&at_once, 1 << 20);
	for (int i = 0; i < sqlite_n_steps; i++)
		run(one, sqlite_steps[i]);
	assert_int_equal(schema_at_once(sqlite_steps, sqlite_n_steps, &script), 0);
	assert_null(strstr(script.data, "ALTER TABLE"));
	run(other, script.data);
	add_all(one, &by_steps);
	add_all(other, &at_once);
	assert_string_equal(at_once.data, by_steps.data);
	sqlite3_close(one);
	sqlite3_close(other);
}

TEST(columns_go_to_their_tables)
{
	static const char *const steps[] = {
		"CREATE TABLE a (x TEXT);CREATE TABLE a_b (y INTEGER CHECK (y IN (1, 2))) STRICT;",
		"ALTER TABLE a ADD COLUMN z INTEGER NOT NULL DEFAULT 0;",
		"INSERT INTO a_b VALUES (1);ALTER TABLE a_b ADD COLUMN u TEXT;",
		"ALTER TABLE a ADD COLUMN w BLOB",
	};
	CLEANUP(buf_donep) struct buf script;

	buf_init(&script, 4096);
	assert_int_equal(schema_at_once(steps, 4, &script), 0);
	assert_string_equal(script.data,
			    "CREATE TABLE a (x TEXT, z INTEGER NOT NULL DEFAULT 0, w BLOB);"
			    "CREATE TABLE a_b (y INTEGER CHECK (y IN (1, 2)), u TEXT) STRICT;"
			    "INSERT INTO a_b VALUES (1);");
}

TEST(other_changes_of_tables_are_refused)
{
	static const char *const bad[] = {
		"CREATE TABLE a (x TEXT);ALTER TABLE a RENAME TO b;",
		"CREATE TABLE a (x);ALTER TABLE a RENAME TO b;ALTER TABLE b ADD COLUMN y;",
		"CREATE TABLE a (x TEXT",
		"CREATE TABLE a (x TEXT);ALTER TABLE ",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CLEANUP(buf_donep) struct buf script;

		buf_init(&script, 4096);
		assert_int_equal(schema_at_once(&bad[i], 1, &script), -EINVAL);
	}
}
