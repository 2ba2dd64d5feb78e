/* For tests of rows in the store: its connections, a batch, texts, and a look at the file beside it. */
#pragma once

#include "store/db/query.h"
#include "store_fixture.h"

#include <sqlite3.h>

#include "store/db/driver.h"
#include "store/db/members.h"
#include "store/db/schema.h"
#include "steps.h"

static inline struct connection *writer(struct fixture *f)
{
	return store_writer(f->store);
}

static inline struct connection *reader(struct fixture *f)
{
	return store_reader(f->store, 0);
}

static inline void begin(struct fixture *f)
{
	assert_int_equal(store_begin(f->store), 0);
}

static inline void commit(struct fixture *f)
{
	assert_int_equal(store_commit(f->store), 0);
}

static inline void assert_text(struct text t, const char *want)
{
	if (!want) {
		assert_null(t.data);
		assert_int_equal(t.len, 0);
		return;
	}
	assert_non_null(t.data);
	assert_int_equal(t.len, strlen(want));
	assert_memory_equal(t.data, want, t.len);
}

static inline int64_t server_number(const char *sql)
{
	int64_t n = 0;

	if (server_ask(sql, &n) != 0)
		fail_msg("%s", sql);
	return n;
}

/* One number, asked of the file beside the store. */
static inline int64_t number(struct fixture *f, const char *sql)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t n;

	if (on_server())
		return server_number(sql);
	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}

/* Changes the file behind the back of a store that is closed. */
static inline void change_file(struct fixture *f, const char *sql)
{
	sqlite3 *db;

	if (on_server()) {
		(void)server_number(sql);
		return;
	}
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* As a program of that version left it, with the memory "one" in it; the store is closed then. */
static inline void become_version(struct fixture *f, int version)
{
	static const char memory[] =
		"INSERT INTO memory (id, content_hash, source, category, importance, shared,"
		" created_ms, updated_ms, stored_ms, subjects, metadata, content) VALUES"
		" ('one', 1, 'test', 'fact', 0.5, 0, 1000, 1000, 1000, '[]', '{}', 'x');";
	char claim[80];

	only_in_a_file();
	fixture_close(f);
	assert_int_equal(unlink(f->path), 0);
	for (int i = 1; i <= version; i++)
		change_file(f, sqlite_steps[i - 1]);
	/* "koin" */
	snprintf(claim, sizeof(claim), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
		 0x6b6f696e, version);
	change_file(f, claim);
	change_file(f, memory);
	assert_int_equal(chmod(f->path, 0600), 0);
}

static inline void assert_plan(sqlite3 *db, const char *sql, const char *table, bool scans)
{
	char explain[8192], walk[64];
	bool found = false;
	sqlite3_stmt *st;
	const char *step;

	snprintf(explain, sizeof(explain), "EXPLAIN QUERY PLAN %s", sql);
	snprintf(walk, sizeof(walk), "SCAN %s", table);
	if (sqlite3_prepare_v2(db, explain, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while (sqlite3_step(st) == SQLITE_ROW) {
		step = (const char *)sqlite3_column_text(st, 3);
		found |= strncmp(step, walk, strlen(walk)) == 0 && !strstr(step, " USING ");
	}
	sqlite3_finalize(st);
	if (found && !scans)
		fail_msg("walks the whole table: %s", sql);
}

/*
 * None of the queries about the table that the connection has prepared goes through all of
 * it; except `but`, which may be NULL. How many there were.
 */
static inline unsigned assert_no_walks(struct fixture *f, struct connection *c, const char *table,
				       const char *but)
{
	unsigned n = 0;
	sqlite3 *db = NULL;

	if (!on_server())
		assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL),
				 SQLITE_OK);
	for (unsigned i = 0; i < c->n_statements; i++) {
		const struct query *query = c->queries[i];
		struct buf sql;

		buf_init(&sql, 16 << 10);
		if (query)
			assert_int_equal(query_spell(&sql, c->ops, query), 0);
		if (query && strstr(sql.data, table)) {
			if (db)
				assert_plan(db, sql.data, table, but && strstr(sql.data, but));
			n++;
		}
		buf_done(&sql);
	}
	sqlite3_close(db);
	return n;
}

/* A life of a host, which is alive (0) or lost (2). */
static inline void add_host(struct fixture *f, const char *name, int64_t epoch, int64_t state)
{
	static const struct query sql = {
		"INSERT INTO host (name, epoch, state, boot, labels, version, since_ms, seen_ms, "
		"lease_ms,"
		" running, parallel) VALUES (:name, :epoch, :state, '', '', '', 0, 0, 0, 0, 0)"};

	assert_int_equal(query_do(writer(f), &sql, BIND(":name", text_of(name)),
				  BIND(":epoch", epoch), BIND(":state", state)),
			 0);
}
