/* For tests of rows in the store: its connections, a batch, texts, and a look at the file beside it. */
#pragma once

#include "store_fixture.h"

#include <sqlite3.h>

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

/* One number, asked of the file beside the store. */
static inline int64_t number(struct fixture *f, const char *sql)
{
	sqlite3_stmt *st;
	sqlite3 *db;
	int64_t n;

	assert_int_equal(sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return n;
}
