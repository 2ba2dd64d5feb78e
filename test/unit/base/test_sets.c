/* The table and the sorted set: compared with what is known of their members, at every step. */
#include "check.h"

#include <string.h>

#include "base/list.h"
#include "base/sets.h"

enum { MANY = 20000 };

struct member {
	struct table_link in_table;
	struct sorted_link in_order;
	int value;
	bool is_in;
};

static struct member members[MANY];
static unsigned n_compared;

static uint64_t noise(void)
{
	static uint64_t x = 88172645463325252U;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static int forget_members(void **state)
{
	memset(members, 0, sizeof(members));
	for (int i = 0; i < MANY; i++)
		members[i].value = i;
	return 0;
}

FIXTURE(forget_members, NULL);

/* ---- the table ---- */

static uint64_t hash_of(const struct member *m)
{
	return table_hash((struct text) {.data = (const char *)&m->value, .len = sizeof(m->value)});
}

static bool finds(const struct table *t, const struct member *m)
{
	for (struct table_link *at = table_find(t, hash_of(m)); at; at = table_next(at)) {
		if (list_entry(at, struct member, in_table) == m)
			return true;
	}
	return false;
}

TEST(table_finds_what_is_in_it)
{
	struct table t = {0};
	size_t n = 0;

	assert_false(finds(&t, &members[0]));
	for (int i = 0; i < 10 * MANY; i++) {
		struct member *m = &members[noise() % MANY];

		if (m->is_in)
			table_remove(&t, &m->in_table);
		else
			table_add(&t, &m->in_table, hash_of(m));
		m->is_in = !m->is_in;
		n = m->is_in ? n + 1 : n - 1;
		assert_int_equal(t.n, n);
		assert_true(finds(&t, m) == m->is_in);
		m = &members[noise() % MANY];
		assert_true(finds(&t, m) == m->is_in);
	}
	for (int i = 0; i < MANY; i++)
		assert_true(finds(&t, &members[i]) == members[i].is_in);
	table_done(&t);
}

TEST(table_tells_members_with_one_hash_apart)
{
	struct table t = {0};
	unsigned n = 0;

	for (int i = 0; i < 100; i++)
		table_add(&t, &members[i].in_table, (uint64_t)(i % 2));
	for (struct table_link *at = table_find(&t, 1); at; at = table_next(at))
		n += list_entry(at, struct member, in_table)->value % 2 == 1;
	assert_int_equal(n, 50);
	table_done(&t);
}

static size_t longest_chain(const struct table_slots *s)
{
	size_t longest = 0;

	for (size_t i = 0; i < s->n; i++) {
		size_t n = 0;

		for (const struct table_link *at = s->at[i]; at; at = at->next)
			n++;
		longest = n > longest ? n : longest;
	}
	return longest;
}

TEST(table_has_short_chains)
{
	struct table t = {0};

	for (int i = 0; i < MANY; i++)
		table_add(&t, &members[i].in_table, hash_of(&members[i]));
	assert_true(t.slots.n >= MANY / 2);
	assert_true(longest_chain(&t.slots) <= 16);
	table_done(&t);
}

TEST(table_removes_a_stranger_without_harm)
{
	struct table t = {0};

	table_remove(&t, &members[0].in_table);
	table_add(&t, &members[1].in_table, 7);
	table_remove(&t, &members[0].in_table);
	assert_true(table_find(&t, 7) == &members[1].in_table);
	table_done(&t);
}

/* ---- the sorted set ---- */

static bool goes_before(const struct sorted_link *a, const struct sorted_link *b)
{
	n_compared++;
	return list_entry(a, struct member, in_order)->value <
	       list_entry(b, struct member, in_order)->value;
}

static int value_of(const struct sorted_link *l)
{
	return l ? list_entry(l, struct member, in_order)->value : MANY;
}

static int first_in(int from)
{
	while (from < MANY && !members[from].is_in)
		from++;
	return from;
}

TEST(sorted_goes_through_its_members_in_order)
{
	struct sorted s;
	int next = 0;

	sorted_init(&s, goes_before);
	assert_null(s.first);
	for (int i = 0; i < 5 * MANY; i++) {
		struct member *m = &members[noise() % MANY];

		if (m->is_in)
			sorted_remove(&s, &m->in_order);
		else
			sorted_add(&s, &m->in_order);
		m->is_in = !m->is_in;
		if (i % 100 == 0)
			assert_int_equal(value_of(s.first), first_in(0));
	}
	for (struct sorted_link *l = s.first; l; l = l->next) {
		assert_int_equal(value_of(l), first_in(next));
		next = value_of(l) + 1;
		assert_true(!l->next || l->next->prev == l);
	}
	assert_int_equal(first_in(next), MANY);
}

/* However they come: a tree that leans to one side would compare all of them. */
TEST(sorted_compares_few)
{
	struct sorted s;
	unsigned most = 0;

	sorted_init(&s, goes_before);
	for (int i = 0; i < MANY; i++) {
		n_compared = 0;
		sorted_add(&s, &members[i].in_order);
		most = n_compared > most ? n_compared : most;
	}
	for (int i = MANY - 1; i >= 0; i--) {
		n_compared = 0;
		sorted_remove(&s, &members[i].in_order);
		most = n_compared > most ? n_compared : most;
	}
	assert_null(s.first);
	assert_true(most < 100);
}

/* Hosts may be given a number twice after a fail-over that lost commits. */
TEST(sorted_removes_equal_members)
{
	struct sorted s;

	sorted_init(&s, goes_before);
	for (int i = 0; i < MANY; i++) {
		members[i].value = i / 50;
		sorted_add(&s, &members[i].in_order);
	}
	for (int i = 0; i < MANY; i++)
		sorted_remove(&s, &members[(i * 7) % MANY].in_order);
	assert_null(s.first);
	assert_null(s.root);
}

TEST(sorted_removes_a_member_whose_order_has_changed)
{
	struct sorted s;
	int n = 0;

	sorted_init(&s, goes_before);
	for (int i = 0; i < 10; i++)
		sorted_add(&s, &members[i].in_order);
	members[2].value = 1000;
	sorted_remove(&s, &members[2].in_order);
	sorted_remove(&s, &members[20].in_order); /* was never in it */
	for (struct sorted_link *l = s.first; l; l = l->next)
		n++;
	assert_int_equal(n, 9);
}

/* ---- what was seen lately ---- */

TEST_WITH(lately_finds_what_was_added_within_a_period, NULL, NULL)
{
	struct lately l = {0};
	uint64_t now = 1000;

	assert_int_equal(lately_init(&l, 100, now), 0);
	now += 100; /* what was before is over */
	for (uint64_t i = 0; i < MANY; i++)
		lately_add(&l, i, now);
	for (uint64_t i = 0; i < MANY; i++) {
		assert_true(lately_may_have(&l, i, now));
		assert_true(lately_may_have(&l, i, now + 99));
		assert_true(lately_may_have(&l, i, now + 100));
	}
	lately_done(&l);
}

TEST_WITH(lately_forgets_what_is_older, NULL, NULL)
{
	struct lately l = {0};
	unsigned n = 0;

	assert_int_equal(lately_init(&l, 100, 1000), 0);
	for (uint64_t i = 0; i < MANY; i++)
		lately_add(&l, i, 1100);
	for (uint64_t i = 0; i < MANY; i++)
		n += lately_may_have(&l, i, 1250);
	assert_int_equal(n, MANY);
	for (uint64_t i = 0; i < MANY; i++)
		n += lately_may_have(&l, i, 1500);
	assert_int_equal(n, MANY);
	lately_done(&l);
}

TEST_WITH(lately_does_not_know_what_was_before_it, NULL, NULL)
{
	struct lately l = {0};

	assert_int_equal(lately_init(&l, 100, 1000), 0);
	assert_true(lately_may_have(&l, 5, 1099));
	assert_false(lately_may_have(&l, 5, 1100));
	lately_done(&l);
}

TEST_WITH(lately_rarely_takes_one_for_another, NULL, NULL)
{
	struct lately l = {0};
	unsigned n = 0;

	assert_int_equal(lately_init(&l, 100, 1000), 0);
	for (uint64_t i = 0; i < 5 * MANY; i++)
		lately_add(&l, i, 1100);
	for (uint64_t i = 0; i < 5 * MANY; i++)
		n += lately_may_have(&l, i + 10 * MANY, 1100);
	assert_true(n < 5 * MANY / 200);
	lately_done(&l);
}
