/* The texts of all queries of the store: their locks, and what a text must not contain. */
#include "store_rows.h"

#include <errno.h>

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The section in which QUERY_LIST collects the queries (src/store/meson.build). */
extern const struct query __start_queries[], __stop_queries[];

#define ROWS    " FOR UPDATE"
#define FREE    " FOR UPDATE SKIP LOCKED"
#define FREE_OF " FOR UPDATE OF t SKIP LOCKED"
#define TURN    " FROM (SELECT version FROM koine_schema FOR UPDATE) AS turn"

/* All queries that lock rows on PostgreSQL: the start of the text, a part of it, and its lock. */
static const struct {
	const char *start;
	const char *part;
	const char *lock;
	const char *end; /* the text behind the lock */
} locked[] = {
	{"SELECT seq, id, content,", " FROM memory WHERE id = :id AND (", ROWS, ""},
	{"SELECT seq, id, content,", " FROM memory_deleted WHERE id = root AND", ROWS, ""},
	{"SELECT seq FROM conversation", " AND epoch = :epoch", ROWS, ""},
	{"DELETE FROM memory WHERE seq IN", " LIMIT :limit", FREE, ") RETURNING "},
	{"DELETE FROM memory_deleted", " LIMIT :limit", FREE, ") RETURNING "},
	{"SELECT seq, project,", " FROM task WHERE (state = 1 AND NOT", FREE, ""},
	{"UPDATE task SET", " AND state = 0 AND version = :version", FREE, ") RETURNING "},
	{"UPDATE task SET", " WHERE t.state = 0 AND", FREE_OF, ") RETURNING "},
	{"UPDATE task_project SET next", "", TURN, " WHERE name = "},
	{"INSERT INTO task_project", "SELECT :name, 1", TURN, " WHERE true ON CONFLICT"},
};

/* The row that describes the locks of this text; -1: none. */
static int find_locked(const char *sql)
{
	for (unsigned i = 0; i < N_OF(locked); i++) {
		const char *lock = strstr(sql, locked[i].lock);

		if (lock && strncmp(sql, locked[i].start, strlen(locked[i].start)) == 0 &&
		    strstr(sql, locked[i].part) &&
		    strncmp(lock + strlen(locked[i].lock), locked[i].end, strlen(locked[i].end)) ==
			    0 &&
		    (locked[i].end[0] || strcmp(lock, locked[i].lock) == 0))
			return (int)i;
	}
	return -1;
}

static bool has_lock(const char *sql)
{
	return strstr(sql, "FOR UPDATE") || strstr(sql, "FOR SHARE") || strstr(sql, " KEY SHARE") ||
	       strstr(sql, "FOR NO KEY") || strstr(sql, "SKIP LOCKED") || strstr(sql, "NOWAIT");
}

static void count_lock(const struct buf *sql, unsigned counts[N_OF(locked)])
{
	int i = find_locked(sql->data);

	if (i >= 0)
		counts[i]++;
	else if (has_lock(sql->data))
		fail_msg("a lock that is not expected: %s", sql->data);
}

static void check_query(const struct query *query, unsigned counts[N_OF(locked)])
{
	struct buf text;

	buf_init(&text, 16 << 10);
	if (query_spell(&text, &postgres_ops, query) != 0)
		fail_msg("refused: %s", query->sql);
	count_lock(&text, counts);
	assert_true(query->lock == QUERY_LOCKS_NOTHING || has_lock(text.data));
	buf_clear(&text);
	if (query->many) {
		assert_int_equal(query_spell_many(&text, &postgres_ops, query), 0);
		count_lock(&text, counts);
	}
	buf_clear(&text);
	assert_int_equal(query_spell(&text, &sqlite_ops, query), 0);
	assert_false(has_lock(text.data));
	buf_done(&text);
}

TEST(each_query_takes_its_lock_on_postgres)
{
	const char *at = (const char *)__start_queries;
	unsigned counts[N_OF(locked)] = {0}, n = 0;

	while (at < (const char *)__stop_queries) {
		const struct query *query = (const void *)at;

		/* The linker may leave a gap between two files. */
		if (!query->sql) {
			at += sizeof(void *);
			continue;
		}
		check_query(query, counts);
		n++;
		at += sizeof(*query);
	}
	assert_true(n > 400);
	for (unsigned i = 0; i < N_OF(locked); i++) {
		if (counts[i] != 1)
			fail_msg("%u queries: %s … %s", counts[i], locked[i].start, locked[i].part);
	}
}

static void assert_refused(struct fixture *f, const struct query *query)
{
	struct statement *q = query_open(writer(f), query);

	assert_int_equal(query_fault(q), -EINVAL);
	query_done(q);
}

FIXTURE(setup, teardown);

TEST(comments_are_refused)
{
	QUERY lock = {"SELECT seq FROM memory /* FOR UPDATE */"};
	QUERY end = {"SELECT seq FROM memory -- all"};

	assert_refused(*state, &lock);
	assert_refused(*state, &end);
}

TEST(unknown_marks_are_refused)
{
	QUERY unknown = {"SELECT seq FROM memory {locked}"};
	QUERY no_members = {"SELECT {columns} FROM memory"};

	assert_refused(*state, &unknown);
	assert_refused(*state, &no_members);
}

TEST(lock_and_its_place_require_each_other)
{
	QUERY no_place = {"SELECT seq FROM memory", .lock = QUERY_LOCKS_ROWS};
	QUERY no_lock = {"SELECT seq FROM memory {lock}"};

	assert_refused(*state, &no_place);
	assert_refused(*state, &no_lock);
}

TEST(quoted_text_may_look_like_a_comment)
{
	QUERY sql = {"SELECT 1 WHERE '/* {x} -- */' <> ':a'"};
	struct fixture *f = *state;
	int64_t n;

	assert_int_equal(query_find_int(writer(f), &sql, &n), 0);
	assert_int_equal(n, 1);
}

TEST(value_without_its_parameter_is_refused)
{
	QUERY sql = {"SELECT CAST(:a AS BIGINT) + 1"};
	struct fixture *f = *state;
	int64_t n = 0;

	assert_int_not_equal(query_find_int(writer(f), &sql, &n, BIND(":a", 1), BIND(":b", 2)), 0);
	assert_int_equal(
		query_find_int(writer(f), &sql, &n, BIND(":a", 1), BIND_IF(":b", TEXT("2"))), 0);
	assert_int_equal(n, 2);
}

TEST(numbers_of_no_row_and_of_null_are_zero)
{
	QUERY none = {"SELECT 1, 2 WHERE false"};
	QUERY null = {"SELECT CAST(NULL AS BIGINT), 2"};
	struct fixture *f = *state;
	int64_t n[2] = {7, 7};
	bool found = true;

	assert_int_equal(query_find_ints(writer(f), &none, n, 2, &found), 0);
	assert_false(found || n[0] || n[1]);
	assert_int_equal(query_find_ints(writer(f), &null, n, 2, &found), 0);
	assert_true(found && n[0] == 0 && n[1] == 2);
}
