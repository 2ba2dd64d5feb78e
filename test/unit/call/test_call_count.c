/* How calls are counted: one row a name, none lost, whether or not somebody looked at the clock. */
#include "check.h"

#include "call/metric/call_count.h"

static const struct dialect one = {.name = "one"};
static const struct dialect two = {.name = "two"};
static const struct method ping = {.name = "ping"};
static const struct method ping_again = {.name = "ping"};
static const struct method pong = {.name = "pong"};

static void answer(struct call_counts *k, const struct dialect *d, const struct method *m,
		   enum refusal no)
{
	struct call c = {.dialect = d, .method = m, .failed = no != 0, .error = {.code = no}};

	call_count_now(k, &c);
}

static const struct call_count *row(const struct call_counts *k, const struct dialect *d,
				    const char *name)
{
	for (unsigned i = 0; i < k->n; i++) {
		if (k->rows[i]->dialect == d && strcmp(k->rows[i]->name, name) == 0)
			return k->rows[i];
	}
	fail();
	return NULL;
}

static uint64_t n_of(const struct call_counts *k, const struct dialect *d, const char *name)
{
	return histogram_count(&row(k, d, name)->time);
}

TEST(every_call_is_counted_once)
{
	struct call_counts k = {0};

	call_counts_init(&k);
	/* Of five turns in one millisecond only the first is timed. */
	for (int turn = 0; turn < 5; turn++) {
		call_counts_serve(&k, 7);
		for (int i = 0; i < 3; i++)
			answer(&k, &one, &ping, 0);
		answer(&k, &one, &pong, REFUSE_LIMIT);
		answer(&k, &one, &ping, 0);
		call_counts_served(&k);
	}
	assert_int_equal(n_of(&k, &one, "ping"), 4);
	assert_int_equal(row(&k, &one, "ping")->untimed, 16);
	call_counts_fold(&k);
	assert_int_equal(n_of(&k, &one, "ping"), 20);
	assert_int_equal(n_of(&k, &one, "pong"), 5);
	assert_int_equal(row(&k, &one, "pong")->refused[REFUSE_LIMIT], 5);
	assert_int_equal(call_count_refused(row(&k, &one, "ping")), 0);
	call_counts_fold(&k);
	assert_int_equal(n_of(&k, &one, "ping"), 20);
	call_counts_done(&k);
}

TEST(the_next_timed_one_stands_for_those_before)
{
	struct call_counts k = {0};

	call_counts_init(&k);
	call_counts_serve(&k, 7);
	call_counts_served(&k);
	call_counts_serve(&k, 7);
	answer(&k, &one, &ping, 0);
	answer(&k, &one, &ping, 0);
	call_counts_served(&k);
	assert_int_equal(n_of(&k, &one, "ping"), 0);
	call_counts_serve(&k, 8);
	answer(&k, &one, &ping, 0);
	call_counts_served(&k);
	assert_int_equal(n_of(&k, &one, "ping"), 3);
	assert_int_equal(row(&k, &one, "ping")->untimed, 0);
	call_counts_done(&k);
}

TEST(a_client_served_within_another_loses_nothing)
{
	struct call_counts k = {0};

	call_counts_init(&k);
	call_counts_serve(&k, 1);
	answer(&k, &one, &ping, 0);
	call_counts_serve(&k, 1);
	answer(&k, &two, &ping, 0);
	call_counts_served(&k);
	answer(&k, &one, &ping, 0);
	call_counts_served(&k);
	call_counts_fold(&k);
	assert_int_equal(n_of(&k, &one, "ping"), 2);
	assert_int_equal(n_of(&k, &two, "ping"), 1);
	call_counts_done(&k);
}

TEST(rows_of_one_name_are_one)
{
	struct call_counts k = {0};

	call_counts_init(&k);
	call_counts_serve(&k, 1);
	answer(&k, &one, &ping, 0);
	answer(&k, &one, &ping_again, 0);
	answer(&k, &two, &ping, 0);
	answer(&k, &one, NULL, REFUSE_METHOD);
	answer(&k, &one, NULL, REFUSE_PARSE);
	call_counts_served(&k);
	assert_int_equal(k.n, 3);
	assert_int_equal(n_of(&k, &one, "ping"), 2);
	assert_int_equal(n_of(&k, &one, "unknown"), 2);
	call_counts_done(&k);
}

TEST(a_call_that_left_the_turn_is_timed_by_itself)
{
	struct call_counts k = {0};
	struct call c = {.dialect = &one, .method = &pong, .failed = true};

	call_counts_init(&k);
	call_counts_serve(&k, 1);
	answer(&k, &one, &ping, 0);
	call_count_begin(&k, &c);
	call_counts_served(&k);
	assert_int_equal(n_of(&k, &one, "ping"), 1);
	call_count_end(&k, &c);
	assert_int_equal(n_of(&k, &one, "pong"), 1);
	assert_int_equal(row(&k, &one, "pong")->refused[0], 1);
	call_counts_done(&k);
}

/* Rows can be made at run time, and then be gone; their names stay bounded. */
TEST(too_many_methods_share_a_row)
{
	enum { MANY = CALL_COUNTS_MAX + 100 };
	static struct method methods[MANY];
	static char names[MANY][16];
	struct call_counts k = {0};
	uint64_t n = 0;

	call_counts_init(&k);
	call_counts_serve(&k, 1);
	for (int i = 0; i < MANY; i++) {
		snprintf(names[i], sizeof(names[i]), "m%d", i);
		methods[i].name = names[i];
		answer(&k, &one, &methods[i], 0);
	}
	call_counts_served(&k);
	for (unsigned i = 0; i < k.n; i++)
		n += histogram_count(&k.rows[i]->time);
	assert_int_equal(k.n, CALL_COUNTS_MAX);
	assert_int_equal(n, CALL_COUNTS_MAX);
	assert_int_equal(histogram_count(&k.other.time), 100);
	call_counts_done(&k);
}
