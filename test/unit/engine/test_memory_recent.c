/* Lists that are at hand: what they show is what the store has. */
#include "engine_fixture.h"

#include "base/clock.h"
#include "engine/memory/inner.h"
#include "engine/memory/recent.h"

static uint32_t random_below(uint32_t n)
{
	static uint32_t state = 7;

	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

static struct memory_filter filter(const char *user, const char *chat, int64_t limit)
{
	return (struct memory_filter) {.by = asker(user, chat), .limit = limit};
}

static unsigned list(struct fixture *f, const struct memory_filter *q, struct memory **ret_rows)
{
	unsigned n;

	assert_int_equal(memory_list(f->engine->memories, 0, &f->arena, q, ret_rows, &n, &f->error),
			 0);
	return n;
}

static bool is_at_hand(struct fixture *f, const struct memory_filter *q)
{
	const struct memory *rows;
	unsigned n;
	struct recent_list *l = memory_list_at_hand(f->engine->memories, q, &rows, &n);

	if (l)
		memory_list_release(f->engine->memories, l);
	return l != NULL;
}

/* If it is at hand, it is what the store has. */
static bool compare(struct fixture *f, const struct memory_filter *q)
{
	const struct memory *rows;
	struct memory *stored;
	unsigned n;
	struct recent_list *l = memory_list_at_hand(f->engine->memories, q, &rows, &n);

	if (!l)
		return false;
	assert_int_equal(list(f, q, &stored), n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(rows[i].seq, stored[i].seq);
		assert_true(text_equal(rows[i].id, stored[i].id));
		assert_true(text_equal(rows[i].content, stored[i].content));
		assert_true(text_equal(rows[i].source, stored[i].source));
		assert_int_equal(rows[i].created_ms, stored[i].created_ms);
		assert_int_equal(rows[i].expires_ms, stored[i].expires_ms);
	}
	memory_list_release(f->engine->memories, l);
	return true;
}

FIXTURE(setup, teardown);

TEST(a_list_is_at_hand_until_something_changes)
{
	struct fixture *f = *state;
	const struct memory_filter ann = filter("ann", NULL, 5);
	const struct memory_filter bob = filter("bob", NULL, 5);
	const struct memory_filter all = filter(NULL, NULL, 5);
	struct memory *rows;

	add(f, "one", "ann");
	assert_false(is_at_hand(f, &ann));
	list(f, &ann, &rows);
	list(f, &bob, &rows);
	list(f, &all, &rows);
	assert_true(compare(f, &ann) && compare(f, &bob) && compare(f, &all));
	/* Another one's, and another length. */
	assert_false(is_at_hand(f, &(struct memory_filter) {.by = asker("ann", NULL), .limit = 6}));
	assert_false(is_at_hand(f, &(struct memory_filter) {.by = asker("ann", "c"), .limit = 5}));
	add(f, "two", "ann");
	assert_false(is_at_hand(f, &ann));
	assert_false(is_at_hand(f, &all));
	assert_true(compare(f, &bob));
	/* What is common is everybody's. */
	list(f, &ann, &rows);
	add(f, "three", NULL);
	assert_false(is_at_hand(f, &ann) || is_at_hand(f, &bob));
}

TEST(what_is_not_committed_changes_nothing)
{
	struct fixture *f = *state;
	const struct memory_filter ann = filter("ann", NULL, 5);
	const struct memory_new in = plain("never", "ann");
	struct memory *rows;
	struct memory m;

	add(f, "one", "ann");
	list(f, &ann, &rows);
	begin(f);
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &m, &f->error), 0);
	assert_true(compare(f, &ann));
	assert_int_equal(engine_leave(f->engine, false), 0);
	assert_int_equal(engine_commit(f->engine), 0);
	assert_true(compare(f, &ann));
	/* A list that was read before a commit is not at hand after it. */
	begin(f);
	assert_int_equal(memory_add(f->engine->memories, &f->arena, &in, &m, &f->error), 0);
	list(f, &ann, &rows);
	end(f);
	assert_false(is_at_hand(f, &ann));
	assert_int_equal(list(f, &ann, &rows), 2);
}

TEST(what_expires_is_not_shown)
{
	struct fixture *f = *state;
	struct memory_filter ann = filter("ann", NULL, 5);
	struct memory_new in = plain("soon gone", "ann");
	struct memory *rows;
	struct memory m;

	add(f, "stays", "ann");
	in.expires_ms = clock_utc_ms() + 50;
	assert_int_equal(add_new(f, &in, &m), 0);
	list(f, &ann, &rows);
	while (clock_utc_ms() < in.expires_ms)
		;
	assert_false(is_at_hand(f, &ann));
	assert_int_equal(list(f, &ann, &rows), 1);
	assert_true(compare(f, &ann));
	ann.include_expired = true;
	assert_int_equal(list(f, &ann, &rows), 2);
	assert_true(compare(f, &ann));
}

TEST(long_lists_are_not_kept)
{
	struct fixture *f = *state;
	const struct memory_filter few = filter("ann", NULL, 5);
	const struct memory_filter many = filter("ann", NULL, 100);
	static char text[40000];
	struct memory *rows;

	fill_users(f, 1, 50);
	list(f, &(struct memory_filter) {.by = asker("user0", NULL), .limit = 100}, &rows);
	assert_int_equal(memory_recent_count(f->engine->memories->recent), 0);
	memset(text, 'x', sizeof(text) - 1);
	add(f, text, "ann");
	list(f, &few, &rows);
	list(f, &many, &rows);
	assert_false(is_at_hand(f, &few) || is_at_hand(f, &many));
}

TEST(there_are_not_too_many)
{
	struct fixture *f = *state;
	struct memory *rows;
	size_t most = 0;

	for (int i = 0; i < 6000; i++) {
		char user[16];
		struct memory_filter q;

		snprintf(user, sizeof(user), "user%d", i);
		q = filter(user, NULL, 5);
		list(f, &q, &rows);
		assert_true(is_at_hand(f, &q));
		arena_reset(&f->arena);
		if (memory_recent_count(f->engine->memories->recent) > most)
			most = memory_recent_count(f->engine->memories->recent);
	}
	assert_true(most > 1000 && most <= 4096);
}

static void change(struct fixture *f, char (*ids)[40], unsigned *n_ids)
{
	static const char *const users[] = {"ann", "bob", NULL};
	static const char *const chats[] = {"c1", "c2", NULL};
	const struct memory_asker everybody = {0};
	struct memory_change_in content = {.content = TEXT("other words"), .importance = -1};
	struct memory_new in = plain("some words", users[random_below(3)]);
	struct memory m;
	bool flag;

	switch (random_below(4)) {
	case 0:
		(void)memory_update(f->engine->memories, &f->arena, &everybody,
				    text_of(ids[random_below(*n_ids + 1)]), &content, &m,
				    &f->error);
		return;
	case 1:
		(void)memory_delete(f->engine->memories, &f->arena, &everybody,
				    text_of(ids[random_below(*n_ids + 1)]), false,
				    &(struct memory) {0}, &flag, &f->error);
		return;
	case 2:
		(void)memory_sweep(f->engine->memories, &flag);
		return;
	default:
		break;
	}
	in.by.chat = text_of(chats[random_below(3)]);
	in.by.chat_type = random_below(2) ? TEXT("private") : TEXT("group");
	in.shared = random_below(2);
	in.created_ms = 1 + random_below(1000);
	if (random_below(5) == 0)
		in.expires_ms = 5;
	if (random_below(9) == 0)
		in.replaces = text_of(ids[random_below(*n_ids + 1)]);
	if (memory_add(f->engine->memories, &f->arena, &in, &m, &f->error) == 0 && !m.repeated)
		snprintf(ids[++*n_ids], 40, "%.*s", TEXT_ARGS(m.id));
}

TEST(whatever_changes_a_list_shows_what_the_store_has)
{
	static const char *const users[] = {"ann", "bob", NULL};
	static const char *const chats[] = {"c1", "c2", NULL};
	static char ids[4000][40] = {"none"};
	struct fixture *f = *state;
	unsigned n_ids = 0, n_at_hand = 0;

	for (int i = 0; i < 3000; i++) {
		struct memory_filter q =
			filter(users[random_below(3)], chats[random_below(3)], 1 + random_below(8));
		struct memory *rows;

		q.by.chat_type = random_below(2) ? TEXT("group") : TEXT("private");
		q.by.this_chat = q.by.chat.data && random_below(3) == 0;
		q.include_expired = random_below(4) == 0;
		if (i % 8 == 0) {
			begin(f);
			change(f, ids, &n_ids);
			end(f);
		}
		n_at_hand += compare(f, &q);
		list(f, &q, &rows);
		assert_true(compare(f, &q));
		arena_reset(&f->arena);
	}
	assert_true(n_at_hand > 100);
}
