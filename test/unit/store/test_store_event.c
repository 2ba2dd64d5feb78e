/* The event log in the store: order, pages, what is swept away, numbers that never come again. */
#include "store_rows.h"

#include <errno.h>
#include <pthread.h>

#include "store/event.h"

#define NONE ((struct text) {0})

/* Within a batch. The number of the last one. */
static int64_t add_rows(struct fixture *f, const struct event *rows, unsigned n, int64_t slack_ms)
{
	struct store_event_given given = {0};

	assert_int_equal(store_event_add(writer(f), rows, n, slack_ms, &given), 0);
	assert_int_equal(store_event_settle(writer(f)), 0);
	assert_true(given.last_seq > 0);
	return given.last_seq;
}

static int64_t add_row(struct fixture *f, const struct event *row)
{
	return add_rows(f, row, 1, 0);
}

static int64_t add(struct fixture *f, const char *type, int64_t time_ms)
{
	return add_row(f, &(struct event) {.type = text_of(type), .time_ms = time_ms});
}

/* The types of what is found, one letter each. */
static void assert_list(struct fixture *f, struct store_event_query q, const char *want)
{
	char got[64] = "";
	struct store_event_rows found;

	if (q.limit == 0)
		q.limit = 50;
	assert_int_equal(store_event_list(reader(f), &q, &f->arena, &found), 0);
	for (unsigned i = 0; i < found.n; i++)
		got[i] = found.rows[i].type.data[0];
	got[found.n] = '\0';
	assert_string_equal(got, want);
}

#define LIST(f, want, ...) assert_list(f, (struct store_event_query) {__VA_ARGS__}, want)

static void assert_bounds(struct fixture *f, int64_t first, int64_t last)
{
	int64_t got_first = -1, got_last = -1;

	assert_int_equal(store_event_bounds(reader(f), &got_first, &got_last), 0);
	assert_int_equal(got_first, first);
	assert_int_equal(got_last, last);
}

static unsigned sweep(struct fixture *f, int64_t before_ms, int64_t keep, unsigned limit)
{
	unsigned n = 12345;

	begin(f);
	assert_int_equal(store_event_sweep(store_writer(f->store), before_ms, keep, limit, &n), 0);
	commit(f);
	return n;
}

FIXTURE(setup, teardown);

TEST(an_event_comes_back_as_it_was_added)
{
	static const char bytes[] = "{\0\xff";
	struct fixture *f = *state;
	const struct event in = {
		.type = TEXT("task.started"),
		.time_ms = 1234567890123,
		.project = TEXT(""),
		.session = TEXT("s"),
		.run = NONE,
		.data = {bytes, 3},
	};
	struct store_event_rows found;
	const struct event *rows;
	int64_t seq;

	begin(f);
	seq = add_row(f, &in);
	add(f, "bare", 0);
	commit(f);
	assert_int_equal(store_event_list(reader(f), &(struct store_event_query) {.limit = 9},
					  &f->arena, &found),
			 0);
	assert_int_equal(found.n, 2);
	rows = found.rows;
	assert_int_equal(rows[0].seq, seq);
	assert_true(text_is(rows[0].type, "task.started"));
	assert_int_equal(rows[0].time_ms, 1234567890123);
	assert_non_null(rows[0].project.data);
	assert_int_equal(rows[0].project.len, 0);
	assert_true(text_is(rows[0].session, "s"));
	assert_null(rows[0].run.data);
	assert_int_equal(rows[0].data.len, 3);
	assert_memory_equal(rows[0].data.data, bytes, 3);
	assert_null(rows[1].project.data);
	assert_null(rows[1].session.data);
	assert_null(rows[1].data.data);
}

TEST(lists_go_on_behind_a_number_either_way)
{
	struct fixture *f = *state;
	int64_t first;

	LIST(f, "", .limit = 5);
	begin(f);
	first = add(f, "a", 1);
	for (const char *type = "b\0c\0d\0e\0"; *type; type += 2)
		add(f, type, 1);
	commit(f);
	LIST(f, "abcde");
	LIST(f, "edcba", .newest_first = true);
	LIST(f, "abc", .limit = 3);
	LIST(f, "ed", .limit = 2, .newest_first = true);
	LIST(f, "de", .after_seq = first + 2);
	LIST(f, "d", .after_seq = first + 2, .limit = 1);
	LIST(f, "", .after_seq = first + 4);
	LIST(f, "", .after_seq = INT64_MAX);
}

TEST(a_list_may_want_one_project_session_or_run)
{
	static const struct event rows[] = {
		{.type = TEXT("a"), .project = TEXT("p"), .session = TEXT("s"), .run = TEXT("r")},
		{.type = TEXT("b"), .project = TEXT("p"), .session = TEXT("t")},
		{.type = TEXT("c"), .project = TEXT("q"), .session = TEXT("s")},
		{.type = TEXT("d"), .project = TEXT("")},
		{.type = TEXT("e")},
	};
	struct fixture *f = *state;

	begin(f);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		add_row(f, &rows[i]);
	commit(f);
	LIST(f, "ab", .project = TEXT("p"));
	LIST(f, "d", .project = TEXT(""));
	LIST(f, "ac", .session = TEXT("s"));
	LIST(f, "a", .run = TEXT("r"));
	LIST(f, "b", .project = TEXT("p"), .session = TEXT("t"));
	LIST(f, "", .project = TEXT("q"), .run = TEXT("r"));
}

static void assert_since(struct fixture *f, int64_t time_ms, int64_t want)
{
	int64_t seq = 0;

	assert_int_equal(store_event_since(reader(f), time_ms, &seq), 0);
	assert_int_equal(seq, want);
}

/* The clock was set back between c and d. */
TEST(since_a_time_means_the_time_of_each)
{
	struct fixture *f = *state;
	int64_t first;

	begin(f);
	first = add(f, "a", 1000);
	add(f, "b", 2000);
	add(f, "c", 3000);
	add(f, "d", 1500);
	add(f, "e", 2500);
	commit(f);
	LIST(f, "bce", .after_ms = 2000);
	LIST(f, "ecb", .after_ms = 2000, .newest_first = true);
	LIST(f, "bcde", .after_ms = 1001);
	LIST(f, "e", .after_ms = 1001, .after_seq = first + 3);
	LIST(f, "", .after_ms = 3001);
	assert_since(f, 2000, first + 1);
	assert_since(f, 1001, first + 1);
	assert_since(f, 2001, first + 2);
	assert_since(f, 3001, INT64_MAX);
}

TEST(a_page_ends_at_its_bytes)
{
	static char long_data[1000];
	struct fixture *f = *state;
	struct event row = {.data = {long_data, sizeof(long_data)}};

	begin(f);
	row.type = TEXT("a");
	add_row(f, &row);
	row.type = TEXT("b");
	add_row(f, &row);
	row.type = TEXT("c");
	add_row(f, &row);
	commit(f);
	LIST(f, "a", .max_bytes = 1);
	LIST(f, "a", .max_bytes = 2001);
	LIST(f, "ab", .max_bytes = 2002);
	LIST(f, "abc", .max_bytes = 0);
	LIST(f, "cb", .max_bytes = 2002, .newest_first = true);
}

TEST(the_last_number_outlives_its_event)
{
	struct fixture *f = *state;
	int64_t last;

	assert_bounds(f, 0, 0);
	begin(f);
	add(f, "a", 1);
	add(f, "b", 2);
	last = add(f, "c", 3);
	commit(f);
	assert_bounds(f, last - 2, last);
	assert_int_equal(sweep(f, 3, 0, 100), 2);
	assert_bounds(f, last, last);
	assert_int_equal(sweep(f, INT64_MAX, 0, 100), 1);
	assert_bounds(f, 0, last);
	fixture_close(f);
	fixture_open(f);
	assert_bounds(f, 0, last);
	begin(f);
	assert_int_equal(add(f, "d", 4), last + 1);
	commit(f);
	assert_bounds(f, last + 1, last + 1);
	/* An old answer of meta does not hide a newer event. */
	fixture_close(f);
	fixture_open(f);
	assert_bounds(f, last + 1, last + 1);
}

TEST(a_sweep_deletes_what_is_old_or_too_many)
{
	struct fixture *f = *state;

	assert_int_equal(sweep(f, INT64_MAX, 1, 100), 0);
	begin(f);
	for (char type[2] = "a"; type[0] <= 'j'; type[0]++)
		add(f, type, 1000 * (type[0] - 'a'));
	commit(f);
	assert_int_equal(sweep(f, 0, 0, 100), 0);
	assert_int_equal(sweep(f, 0, 10, 100), 0);
	LIST(f, "abcdefghij");
	assert_int_equal(sweep(f, 0, 8, 1), 1);
	LIST(f, "bcdefghij");
	assert_int_equal(sweep(f, 0, 8, 100), 1);
	LIST(f, "cdefghij");
	assert_int_equal(sweep(f, 4000, 0, 100), 2);
	LIST(f, "efghij");
	/* Both, with a limit that ends within the second. */
	assert_int_equal(sweep(f, 8000, 4, 3), 3);
	LIST(f, "hij");
	assert_int_equal(sweep(f, 8000, INT64_MAX, 0), 0);
	assert_int_equal(sweep(f, 8000, INT64_MAX, 100), 1);
	LIST(f, "ij");
}

/* Each is judged by its own time, where the clock went back. */
TEST(a_sweep_takes_only_what_is_old)
{
	struct fixture *f = *state;

	begin(f);
	add(f, "a", 5000);
	add(f, "b", 1000);
	add(f, "c", 6000);
	commit(f);
	assert_int_equal(sweep(f, 5000, 0, 100), 1);
	LIST(f, "ac");
}

TEST(what_is_rolled_back_leaves_nothing)
{
	struct fixture *f = *state;
	unsigned n;

	begin(f);
	add(f, "a", 1);
	assert_int_equal(store_savepoint(f->store), 0);
	add(f, "b", 1);
	assert_int_equal(store_rollback_to(f->store), 0);
	add(f, "c", 1);
	commit(f);
	LIST(f, "ac");
	begin(f);
	add(f, "d", 1);
	assert_int_equal(store_event_sweep(store_writer(f->store), 9, 0, 9, &n), 0);
	assert_int_equal(n, 3);
	store_rollback(f->store);
	LIST(f, "ac");
	assert_bounds(f, 1, 2);
}

TEST(numbers_are_given_in_one_go)
{
	static const struct event rows[] = {{.type = TEXT("a"), .time_ms = 1000},
					    {.type = TEXT("b"), .time_ms = 3000},
					    {.type = TEXT("c"), .time_ms = 2000}};
	struct fixture *f = *state;

	begin(f);
	assert_int_equal(add_rows(f, rows, 3, 0), 3);
	assert_int_equal(add_rows(f, rows, 2, 0), 5);
	commit(f);
	LIST(f, "abcab");
	LIST(f, "bcb", .after_ms = 2000);
	assert_since(f, 2000, 2);
	assert_since(f, 3001, INT64_MAX);
	/* c and the second a go back. */
	assert_int_equal(number(f, "SELECT count(*) FROM event_clock WHERE seq IN (3, 4)"), 2);
	assert_int_equal(number(f, "SELECT count(*) FROM event_clock"), 2);
}

/* As from two machines, one of which is a little behind. */
TEST(clocks_may_differ_a_little)
{
	static const struct event rows[] = {{.type = TEXT("a"), .time_ms = 10000},
					    {.type = TEXT("b"), .time_ms = 9000},
					    {.type = TEXT("c"), .time_ms = 9500},
					    {.type = TEXT("d"), .time_ms = 10001},
					    {.type = TEXT("e"), .time_ms = 5000}};
	struct fixture *f = *state;

	begin(f);
	assert_int_equal(add_rows(f, &rows[0], 1, 1000), 1);
	assert_int_equal(add_rows(f, &rows[1], 3, 1000), 4);
	assert_int_equal(add_rows(f, &rows[4], 1, 1000), 5);
	commit(f);
	LIST(f, "abcd", .after_ms = 10000);
	LIST(f, "d", .after_ms = 10001);
	assert_int_equal(number(f, "SELECT sum(seq) FROM event_clock"), 5);
	assert_int_equal(store_event_time(9000, 10000, 1000), 10000);
	assert_int_equal(store_event_time(8999, 10000, 1000), 8999);
}

/* ---- several who write ---- */

/* Another one's connection, as on another machine. */
struct other {
	pthread_t thread;
	const struct store_ops *ops;
	void *place;
	struct connection conn;
	unsigned n_batches;
	int64_t last;
};

static void other_open(struct fixture *f, struct other *o)
{
	const char *address;

	assert_int_equal(store_find_kind(f->url, &o->ops, &address, &f->error), 0);
	assert_int_equal(o->ops->open(address, &o->place, &f->error), 0);
	o->conn.ops = o->ops;
	assert_int_equal(o->ops->connect(o->place, CONNECTION_WRITER, &o->conn.db, &f->error), 0);
}

static void other_close(struct other *o)
{
	connection_forget(&o->conn);
	o->ops->disconnect(o->conn.db);
	o->ops->close(o->place);
	free(o);
}

static void *other_writes(void *arg)
{
	static const struct query end = {"COMMIT"};
	static const struct event rows[] = {{.type = TEXT("x")}, {.type = TEXT("y")}};
	struct other *o = arg;
	struct store_event_given given = {0};
	int r = 0;

	for (unsigned i = 0; i < o->n_batches && r == 0; i++) {
		r = query_do(&o->conn, &o->ops->begin)
			    ?: store_event_add(&o->conn, rows, 2, 0, &given);
		if (r == 0)
			r = query_do(&o->conn, &end);
	}
	o->last = r == 0 ? given.last_seq : r;
	return NULL;
}

static struct other *other_start(struct fixture *f, unsigned n_batches)
{
	struct other *o = calloc(1, sizeof(*o));

	assert_non_null(o);
	o->n_batches = n_batches;
	other_open(f, o);
	assert_int_equal(pthread_create(&o->thread, NULL, other_writes, o), 0);
	return o;
}

/* Who began first commits last. */
TEST(nobody_gets_a_number_before_a_lower_one_is_kept)
{
	struct fixture *f = *state;
	struct other *o;

	only_on_a_server();
	begin(f);
	assert_int_equal(add(f, "a", 1), 1);
	o = other_start(f, 1);
	while (number(f, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
			 " AND datname = current_database()") == 0)
		continue;
	LIST(f, "");
	assert_bounds(f, 0, 0);
	commit(f);
	assert_int_equal(pthread_join(o->thread, NULL), 0);
	assert_int_equal(o->last, 3);
	LIST(f, "axy");
	other_close(o);
}

/* Numbers have no gaps, so as many are there as the last one says: none comes in below it. */
static void assert_none_is_missing(struct fixture *f)
{
	int64_t first, last, n = 0;

	assert_int_equal(store_event_bounds(reader(f), &first, &last), 0);
	for (const char *t = "axy"; *t; t++) {
		const struct text type = {.data = t, .len = 1};
		struct store_event_rows found;
		const struct store_event_query q = {
			.types = &type, .n_types = 1, .before_seq = last + 1, .limit = 1000};

		assert_int_equal(store_event_list(reader(f), &q, &f->arena, &found), 0);
		n += found.n;
	}
	assert_int_equal(n, last);
	arena_reset(&f->arena);
}

TEST(a_reader_never_sees_a_number_come_late)
{
	enum { N = 30 };
	struct fixture *f = *state;
	struct other *o;

	only_on_a_server();
	o = other_start(f, N);
	for (unsigned i = 0; i < N; i++) {
		begin(f);
		add(f, "a", 1);
		assert_none_is_missing(f);
		commit(f);
		assert_none_is_missing(f);
	}
	assert_int_equal(pthread_join(o->thread, NULL), 0);
	assert_true(o->last > 0 && o->last <= 3 * N);
	assert_bounds(f, 1, 3 * N);
	assert_none_is_missing(f);
	other_close(o);
}

TEST(an_older_log_goes_on)
{
	struct fixture *f = *state;

	become_version(f, 18);
	change_file(f, "INSERT INTO event (seq, type, time_ms) VALUES (7, 'a', 5000);"
		       "UPDATE meta SET value = '9' WHERE key = 'event_last'");
	fixture_open(f);
	assert_bounds(f, 7, 9);
	begin(f);
	assert_int_equal(add(f, "b", 4000), 10);
	commit(f);
	LIST(f, "ab");
	assert_since(f, 4001, 7);
	assert_int_equal(number(f, "SELECT seq FROM event_clock"), 10);
}

TEST(a_small_arena_is_told)
{
	struct fixture *f = *state;
	struct store_event_rows found = {.n = 7};
	struct arena small;

	begin(f);
	for (unsigned i = 0; i < 200; i++)
		add(f, "some type of event", 1);
	commit(f);
	arena_init(&small, 4096);
	assert_int_equal(store_event_list(reader(f), &(struct store_event_query) {.limit = 500},
					  &small, &found),
			 -ENOMEM);
	arena_done(&small);
	assert_null(found.rows);
	assert_int_equal(found.n, 7);
}

TEST(a_file_of_version_3_gets_the_tables)
{
	struct fixture *f = *state;

	become_version(f, 3);
	fixture_open(f);
	assert_true(has_id(f, reader(f), "one"));
	assert_bounds(f, 0, 0);
	begin(f);
	add(f, "a", 1);
	commit(f);
	assert_int_equal(sweep(f, 2, 0, 9), 1);
	assert_bounds(f, 0, 1);
	assert_int_equal(store_quick_check(f->store, 0, &f->error), 0);
}

/* ---- many ---- */

static const struct text types[] = {TEXT("a"), TEXT("b"), TEXT("c"), TEXT("d"), TEXT("e")};
static const struct text names[] = {{0}, TEXT(""), TEXT("x"), TEXT("y")};

static bool has(struct text wanted, struct text t)
{
	return !wanted.data || (t.data && text_equal(wanted, t));
}

static bool is_wanted(const struct store_event_query *q, const struct event *e)
{
	bool typed = !q->types;

	for (unsigned i = 0; i < q->n_types; i++)
		typed = typed || text_equal(q->types[i], e->type);
	return typed && has(q->project, e->project) && has(q->session, e->session) &&
	       has(q->run, e->run) && e->seq > q->after_seq && e->time_ms >= q->after_ms &&
	       (q->before_seq == 0 || e->seq < q->before_seq);
}

static struct store_event_query any_query(void)
{
	struct store_event_query q = {
		.project = names[rand() % 4],
		.session = names[rand() % 4],
		.run = names[rand() % 4],
		.after_seq = rand() % 3 ? 0 : rand() % 400,
		.before_seq = rand() % 3 ? 0 : rand() % 400,
		.after_ms = rand() % 3 ? 0 : rand() % 400,
		.newest_first = rand() % 2,
		.limit = 1 + rand() % 100,
		.types = rand() % 3 ? types + rand() % 5 : NULL,
	};

	if (q.types)
		q.n_types = (unsigned)rand() % (unsigned)(types + 5 - q.types + 1);
	return q;
}

/* Asks on until there is no more, and compares with what is wanted of all. */
static void assert_finds(struct fixture *f, struct store_event_query q, const struct event *all,
			 unsigned n_all)
{
	struct store_event_rows found;
	unsigned at = 0;

	do {
		assert_int_equal(store_event_list(reader(f), &q, &f->arena, &found), 0);
		assert_true(found.n <= found.n_looked && found.n_looked <= q.limit);
		for (unsigned i = 0; i < found.n; i++, at++) {
			while (!is_wanted(&q, &all[q.newest_first ? n_all - 1 - at : at]))
				assert_true(++at < n_all);
			assert_int_equal(found.rows[i].seq,
					 all[q.newest_first ? n_all - 1 - at : at].seq);
		}
		if (found.n_looked > 0)
			*(q.newest_first ? &q.before_seq : &q.after_seq) = found.at;
	} while (!found.end);
	for (; at < n_all; at++)
		assert_false(is_wanted(&q, &all[q.newest_first ? n_all - 1 - at : at]));
}

TEST(any_selection_finds_what_there_is)
{
	enum { N = 400 };
	static struct event all[N];
	struct fixture *f = *state;

	srand(1);
	begin(f);
	for (unsigned i = 0; i < N; i++) {
		all[i] = (struct event) {
			.type = types[rand() % 5],
			.time_ms = i + rand() % 20,
			.project = names[rand() % 4],
			.session = names[rand() % 4],
			.run = names[rand() % 4],
		};
		all[i].seq = add_row(f, &all[i]);
	}
	commit(f);
	for (unsigned i = 0; i < 1000; i++) {
		assert_finds(f, any_query(), all, N);
		arena_reset(&f->arena);
	}
	for (unsigned ms = 0; ms < N + 30; ms += 3) {
		unsigned first = 0;

		while (first < N && all[first].time_ms < ms)
			first++;
		assert_since(f, ms, first < N ? all[first].seq : INT64_MAX);
	}
}

/* Whatever the clock did, and however little goes at a time. */
TEST(what_is_old_goes_and_nothing_else)
{
	enum { N = 300 };
	struct fixture *f = *state;
	int64_t times[N];

	srand(2);
	begin(f);
	for (unsigned i = 0; i < N; i++) {
		times[i] = 10 * i + (rand() % 8 ? 0 : rand() % 1000);
		add(f, "a", times[i]);
	}
	commit(f);
	for (int64_t before = 0; before < 10 * N + 1000; before += 250) {
		int64_t kept = 0;

		while (sweep(f, before, 0, 7) == 7)
			;
		for (unsigned i = 0; i < N; i++)
			kept += times[i] >= before;
		assert_int_equal(number(f, "SELECT count(*) FROM event"), kept);
	}
	assert_int_equal(number(f, "SELECT count(*) FROM event_clock"), 0);
}

static int64_t steps_of(struct fixture *f, struct store_event_query q, unsigned want)
{
	struct store_event_rows found;

	q.limit = 10;
	/* Twice: the first time may also learn the schema. */
	assert_int_equal(store_event_list(reader(f), &q, &f->arena, &found), 0);
	steps_taken(reader(f));
	assert_int_equal(store_event_list(reader(f), &q, &f->arena, &found), 0);
	assert_int_equal(found.n, want);
	return steps_taken(reader(f));
}

#define FEW_STEPS(f, want, ...)                                                                    \
	assert_in_range(steps_of(f, (struct store_event_query) {__VA_ARGS__}, want), 1, 3000)

/* However many there are. Those of "b" are not in project "p", and "rare" is in no session. */
TEST(a_list_reads_only_what_it_shows)
{
	enum { N = 20000 };
	static const struct text rare = TEXT("rare"), common = TEXT("a"), other = TEXT("b"),
				 absent = TEXT("absent");
	struct fixture *f = *state;
	struct text *found;
	int64_t seq;
	unsigned n;

	only_in_a_file();
	begin(f);
	add_row(f, &(struct event) {.type = rare, .project = TEXT("p"), .run = TEXT("t")});
	for (unsigned i = 0; i < N; i++)
		add_row(f, &(struct event) {.type = i % 2 ? common : other,
					    .project = i % 2 ? TEXT("p") : TEXT("q"),
					    .session = TEXT("s"),
					    .run = TEXT("r"),
					    .time_ms = i});
	commit(f);
	for (int back = 0; back < 2; back++) {
		FEW_STEPS(f, 10, .newest_first = back);
		FEW_STEPS(f, 0, .session = absent, .newest_first = back);
		FEW_STEPS(f, 0, .run = absent, .newest_first = back);
		FEW_STEPS(f, 0, .project = absent, .newest_first = back);
		FEW_STEPS(f, 0, .types = &absent, .n_types = 1, .newest_first = back);
		FEW_STEPS(f, 1, .types = &rare, .n_types = 1, .newest_first = back);
		FEW_STEPS(f, 10, .types = &common, .n_types = 1, .newest_first = back);
		FEW_STEPS(f, 1, .types = &rare, .n_types = 1, .project = TEXT("p"),
			  .newest_first = back);
		FEW_STEPS(f, 0, .types = &other, .n_types = 1, .project = TEXT("p"),
			  .newest_first = back);
		FEW_STEPS(f, 0, .types = &rare, .n_types = 1, .session = TEXT("s"),
			  .newest_first = back);
		FEW_STEPS(f, 1, .project = TEXT("p"), .run = TEXT("t"), .newest_first = back);
		FEW_STEPS(f, 10, .project = TEXT("p"), .newest_first = back);
		FEW_STEPS(f, 10, .session = TEXT("s"), .run = TEXT("r"), .newest_first = back);
	}
	assert_int_equal(store_event_types(reader(f), &(struct store_event_query) {0}, &f->arena,
					   &found, &n),
			 0);
	assert_int_equal(n, 3);
	assert_in_range(steps_taken(reader(f)), 1, 200);
	assert_int_equal(store_event_since(reader(f), N / 2, &seq), 0);
	assert_int_equal(seq, N / 2 + 2);
	assert_in_range(steps_taken(reader(f)), 1, 1000);
	steps_taken(writer(f));
	assert_int_equal(sweep(f, N / 2, 0, 10), 10);
	assert_in_range(steps_taken(writer(f)), 1, 3000);
}

/* The indexes of what an older program left. */
TEST(older_events_are_found_by_what_they_are_about)
{
	struct fixture *f = *state;

	become_version(f, 11);
	change_file(f, "INSERT INTO event (type, time_ms, project, session, run) VALUES"
		       " ('a', 1, 'p', NULL, 'r'), ('b', 2, NULL, 's', 'r'),"
		       " ('c', 9, NULL, NULL, NULL), ('d', 5, NULL, NULL, NULL),"
		       " ('e', 8, NULL, NULL, NULL)");
	fixture_open(f);
	assert_since(f, 2, 2);
	assert_since(f, 6, 3);
	assert_since(f, 10, INT64_MAX);
	LIST(f, "a", .project = TEXT("p"));
	LIST(f, "b", .session = TEXT("s"));
	LIST(f, "ab", .run = TEXT("r"));
	LIST(f, "bc", .types = &types[1], .n_types = 2);
	assert_int_equal(sweep(f, 6, 0, 10), 3);
	LIST(f, "ce");
}
