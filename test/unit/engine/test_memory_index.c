/*
 * The search indexes: built beside everything else while searches wait without a thread, found
 * and dropped without a look at the others.
 *
 * There are no threads here: what would be done on a reader's is done by run_next, in the order in
 * which it was submitted, so that everything between two slices of a build can be looked at.
 */
#include "engine_fixture.h"

#include "engine/index/inner.h"
#include "engine/memory/inner.h"
#include "store/db/query.h"
#include "store/store.h"

enum { MANY = 3000, WAITING = 8 };

static void run_all(struct fixture *f)
{
	while (run_next(f))
		;
}

static struct memory_query about(const char *user)
{
	return (struct memory_query) {
		.text = TEXT("about"), .by = asker(user, NULL), .limit = MEMORY_LIMIT_MAX};
}

static struct memory_indexes_counts counts(struct fixture *f)
{
	struct memory_indexes_counts n;

	memory_indexes_count(f->engine->memories->indexes, &n);
	return n;
}

/* Each has been on the thread once, and left it. */
static void start_and_run(struct fixture *f, struct search *searches, unsigned n, const char *user)
{
	const struct memory_query q = about(user);

	for (unsigned i = 0; i < n; i++) {
		search_start(f, &searches[i], &q);
		while (searches[i].n_runs == 0)
			assert_true(run_next(f));
		assert_false(searches[i].over);
	}
}

static unsigned n_over(const struct search *searches, unsigned n)
{
	unsigned n_over = 0;

	for (unsigned i = 0; i < n; i++)
		n_over += searches[i].over;
	return n_over;
}

static unsigned n_works(const struct fixture *f)
{
	unsigned n = 0;

	list_for_each (at, following, (struct list *)&f->works)
		n++;
	return n;
}

FIXTURE(setup, teardown);

/* ---- building beside ---- */

TEST(searches_wait_for_an_index_without_a_thread)
{
	struct fixture *f = *state;
	const struct memory_query small = about("ann");
	struct search searches[WAITING], other;

	fill_users(f, 1, MANY);
	add(f, "about little", "ann");
	start_and_run(f, searches, WAITING, "user0");
	/* All that a thread has to do is the next slice. */
	assert_int_equal(n_works(f), 1);
	/* Another call is answered, even one that needs a small index of its own. */
	search_start(f, &other, &small);
	while (!other.over)
		assert_true(run_next(f));
	assert_int_equal(other.result, 0);
	assert_int_equal(other.n, 1);
	assert_int_equal(n_over(searches, WAITING), 0);
	run_all(f);
	for (unsigned i = 0; i < WAITING; i++) {
		assert_true(searches[i].over);
		assert_int_equal(searches[i].result, 0);
		assert_int_equal(searches[i].n, MEMORY_LIMIT_MAX);
		assert_int_equal(searches[i].n_runs, 2);
	}
}

TEST(the_large_are_built_one_after_the_other)
{
	static const char *const users[] = {"user0", "user1", "user2", "user3"};
	enum { USERS = 4 };
	struct fixture *f = *state;
	struct search searches[USERS];
	size_t one;

	fill_users(f, USERS, MANY);
	start_and_run(f, searches, 1, "user0");
	run_all(f);
	one = counts(f).bytes;
	fixture_reopen(f, 64 << 20);
	for (unsigned i = 0; i < USERS; i++)
		start_and_run(f, &searches[i], 1, users[i]);
	for (unsigned n = 0; n < USERS; n = n_over(searches, USERS)) {
		assert_true(run_next(f));
		/* What is built, and one that is not complete, with the first slices of others. */
		assert_true(counts(f).bytes < (n + 2) * one + one / 2);
	}
	for (unsigned i = 0; i < USERS; i++)
		assert_int_equal(searches[i].n, MEMORY_LIMIT_MAX);
}

/* The first, the last and one in the middle: read before the change, and after it. */
TEST(what_changes_meanwhile_is_in_the_index)
{
	struct fixture *f = *state;
	const struct memory_asker by = asker("user0", NULL);
	const struct memory_query boats = {.text = TEXT("boat"), .by = by, .limit = 1000};
	struct memory rows[3];
	struct search waiting;
	struct memory *hits;
	unsigned n;

	rows[0] = add(f, "first about apple", "user0");
	fill_users(f, 1, MANY / 2);
	rows[1] = add(f, "middle about pear", "user0");
	fill_users(f, 1, MANY / 2);
	rows[2] = add(f, "last about plum", "user0");
	search_start(f, &waiting, &boats);
	for (int round = 0; !waiting.over; round++) {
		assert_true(run_next(f));
		if (round >= 8 || waiting.over)
			continue;
		for (unsigned i = 0; i < 3; i++) {
			static const char *const boats_of[] = {"a red boat", "a blue boat",
							       "a green boat"};
			const struct memory_change_in change = {.content = text_of(boats_of[i]),
								.importance = -1};
			struct memory changed;

			begin(f);
			assert_int_equal(memory_update(f->engine->memories, &f->arena, &by,
						       rows[i].id, &change, &changed, &f->error),
					 0);
			end(f);
		}
		if (round == 4)
			add(f, "one more boat", "user0");
	}
	assert_int_equal(waiting.n, 4);
	assert_int_equal(n_found(f, "apple pear plum", "user0"), 0);
	for (unsigned i = 0; i < 3; i++) {
		bool deleted;

		begin(f);
		assert_int_equal(memory_delete(f->engine->memories, &f->arena, &by, rows[i].id,
					       false, &(struct memory) {0}, &deleted, &f->error),
				 0);
		end(f);
		assert_true(deleted);
	}
	assert_int_equal(search_with(f, &boats, &hits, &n), 0);
	assert_int_equal(n, 1);
}

TEST(what_is_deleted_meanwhile_is_not_in_the_index)
{
	struct fixture *f = *state;
	const struct memory_asker by = asker("user0", NULL);
	struct memory rows[2];
	struct search waiting;
	const struct memory_query boats = {.text = TEXT("boat"), .by = by, .limit = 1000};

	rows[0] = add(f, "the first boat", "user0");
	fill_users(f, 1, MANY);
	rows[1] = add(f, "the last boat", "user0");
	search_start(f, &waiting, &boats);
	for (int i = 0; i < 5; i++)
		assert_true(run_next(f));
	for (unsigned i = 0; i < 2; i++) {
		bool deleted;

		begin(f);
		assert_int_equal(memory_delete(f->engine->memories, &f->arena, &by, rows[i].id,
					       false, &(struct memory) {0}, &deleted, &f->error),
				 0);
		end(f);
	}
	assert_false(waiting.over);
	run_all(f);
	assert_true(waiting.over);
	assert_int_equal(waiting.n, 0);
}

/* ---- vectors ---- */

enum { DIM = 4, N_VECTORS = 5000 };

static const struct store_model model = {.name = {.data = "m", .len = 1}, .dim = DIM};
static const struct scope_name user0 = {.kind = SCOPE_USER, .name = {.data = "user0", .len = 5}};
static const int8_t usual[DIM] = {100, 0, 0, 0}, special[DIM] = {0, 100, 0, 0};

static void give_vectors(struct fixture *f)
{
	const float numbers[DIM] = {1, 0, 0, 0};
	const struct store_bare_opts opts = {
		.model = model, .limit = N_VECTORS, .max_bytes = 1 << 30, .max_chars = 10};
	struct store_bare_memory *bare;
	struct connection *c = store_writer(f->engine->store);
	int64_t after;
	unsigned n;
	bool is_last, found;

	assert_int_equal(store_memory_find_bare(c, &opts, &f->arena, &bare, &n, &after, &is_last),
			 0);
	assert_int_equal(n, N_VECTORS);
	begin(f);
	for (unsigned i = 0; i < n; i++) {
		const struct store_vector v = {.seq = bare[i].seq,
					       .hash = bare[i].hash,
					       .scale = 0.01F,
					       .bytes = usual,
					       .numbers = numbers};

		assert_int_equal(store_memory_put_vector(c, &model, &v, &found), 0);
	}
	end(f);
}

static void change(struct fixture *f, const struct memory *m, enum memory_change_kind kind)
{
	const struct memory_change c = {
		.kind = kind, .memory = *m, .vector = special, .dim = DIM, .scale = 0.01F};

	memory_indexes_change(f->engine->memories->indexes, &c, 0);
}

static void delete_seq(struct fixture *f, int64_t seq)
{
	const struct store_scope all = {.everything = true};
	const struct memory_asker by = asker("user0", NULL);
	struct memory m;
	bool found;

	assert_int_equal(store_memory_find_seq(store_writer(f->engine->store), &all, seq, &f->arena,
					       &m, &found),
			 0);
	begin(f);
	assert_int_equal(memory_delete(f->engine->memories, &f->arena, &by, m.id, false,
				       &(struct memory) {0}, &found, &f->error),
			 0);
	end(f);
	assert_true(found);
}

static unsigned build_all(struct fixture *f, struct held_index *h)
{
	unsigned n = 0;

	for (bool done = false; !done; n++) {
		assert_int_equal(
			build_slice(f->engine->memories->indexes, h,
				    store_lane(f->engine->store, 0),
				    memory_indexes_scratch(f->engine->memories->indexes, 0), &done),
			0);
		if (n > 0 || !h->reading_vectors)
			continue;
		delete_seq(f, 1);
		delete_seq(f, N_VECTORS);
		change(f, &(struct memory) {.seq = 2, .owner = user0.name}, MEMORY_VECTOR);
	}
	return n;
}

TEST(vectors_that_change_meanwhile_are_seen)
{
	struct fixture *f = *state;
	struct memory_indexes *m = f->engine->memories->indexes;
	struct vector_hit hit;
	struct held_index *h;
	size_t n = 0;

	fill_users(f, 1, N_VECTORS);
	give_vectors(f);
	indexes_lock(m);
	h = index_new(m, &user0);
	indexes_unlock(m);
	assert_non_null(h);
	h->model = model;
	assert_true(build_all(f, h) > 10);
	assert_true(index_is_ready(h, 0) && !index_is_ready(h, DIM));
	assert_true(build_all(f, h) > 2);
	assert_true(index_is_ready(h, DIM));
	assert_int_equal(vector_block_size(h->vectors), N_VECTORS - 2);
	vector_block_scan(h->vectors, special, 0.01F, NULL, NULL, &hit, 1, &n, NULL);
	assert_int_equal(hit.key, 2);
	assert_int_equal(search_index_size(h->index), N_VECTORS - 2);
	assert_true(counts(f).bytes ==
		    search_index_bytes(h->index) + vector_block_bytes(h->vectors));
	indexes_lock(m);
	index_unref(m, h);
	indexes_unlock(m);
}

/* ---- the end of waiting ---- */

TEST(a_build_that_fails_answers_all_who_wait)
{
	struct fixture *f = *state;
	struct search searches[WAITING];

	fill_users(f, 1, MANY);
	fixture_reopen(f, 200000);
	start_and_run(f, searches, WAITING, "user0");
	run_all(f);
	for (unsigned i = 0; i < WAITING; i++) {
		assert_true(searches[i].over);
		assert_int_equal(searches[i].result, REFUSE_LIMIT);
		assert_non_null(strstr(searches[i].error.text, "200000 bytes"));
	}
	assert_true(counts(f).bytes < 200000);
	assert_int_equal(counts(f).n, 1); /* the common ones */
}

static void change_schema(struct fixture *f, const struct query *sql)
{
	struct statement *q;

	assert_int_equal(engine_begin(f->engine), 0);
	q = query_open(store_writer(f->engine->store), sql);
	assert_int_equal(query_run(q), 0);
	query_done(q);
	assert_int_equal(engine_commit(f->engine), 0);
}

TEST(a_read_error_fails_the_searches_that_wait)
{
	static const struct query hide = {"ALTER TABLE memory RENAME TO memory_away"};
	static const struct query restore = {"ALTER TABLE memory_away RENAME TO memory"};
	struct fixture *f = *state;
	struct search searches[WAITING];

	fill_users(f, 1, MANY);
	fixture_reopen(f, 64 << 20);
	start_and_run(f, searches, WAITING, "user0");
	/* Some of it has been read already. */
	assert_true(run_next(f));
	assert_int_equal(n_over(searches, WAITING), 0);
	change_schema(f, &hide);
	run_all(f);
	for (unsigned i = 0; i < WAITING; i++) {
		assert_true(searches[i].over);
		assert_true(searches[i].result < 0);
	}
	change_schema(f, &restore);
	assert_int_equal(n_found(f, "entry0", "user0"), 1);
	assert_int_equal(n_found(f, "entry2999", "user0"), 1);
}

TEST(a_read_error_of_vectors_leaves_the_words)
{
	static const struct query hide = {"ALTER TABLE memory_vector RENAME TO vector_away"};
	struct fixture *f = *state;
	struct memory_indexes *m = f->engine->memories->indexes;
	struct held_index *h;
	bool done;

	fill_users(f, 1, N_VECTORS);
	give_vectors(f);
	indexes_lock(m);
	h = index_new(m, &user0);
	indexes_unlock(m);
	h->model = model;
	(void)build_all(f, h);
	assert_int_equal(build_slice(m, h, store_lane(f->engine->store, 0),
				     memory_indexes_scratch(f->engine->memories->indexes, 0),
				     &done),
			 0);
	assert_false(done);
	change_schema(f, &hide);
	assert_true(build_slice(m, h, store_lane(f->engine->store, 0),
				memory_indexes_scratch(f->engine->memories->indexes, 0),
				&done) < 0);
	assert_true(done);
	assert_true(index_is_ready(h, 0) && !index_is_ready(h, DIM));
	assert_false(h->reading_vectors);
	assert_true(counts(f).bytes == search_index_bytes(h->index));
	indexes_lock(m);
	index_unref(m, h);
	indexes_unlock(m);
}

TEST(nothing_is_built_for_those_who_have_left)
{
	struct fixture *f = *state;
	struct search searches[WAITING];

	fill_users(f, 1, MANY);
	start_and_run(f, searches, WAITING, "user0");
	for (unsigned i = 0; i < WAITING; i++) {
		assert_true(run_next(f));
		assert_true(counts(f).n > 1);
		work_cancel(&searches[i].work);
	}
	run_all(f);
	for (unsigned i = 0; i < WAITING; i++) {
		assert_int_equal(searches[i].result, REFUSE_CANCELLED);
		assert_string_equal(searches[i].error.text, "cancelled");
	}
	assert_int_equal(counts(f).n, 1); /* the common ones were complete */
	assert_int_equal(n_found(f, "entry7", "user0"), 1);
}

/* It is on the thread when it is cancelled, and only then finds that it must wait. */
TEST(a_search_that_was_cancelled_does_not_wait)
{
	struct fixture *f = *state;
	const struct memory_query q = about("user0");
	struct search s;

	search_start(f, &s, &q);
	work_cancel(&s.work);
	assert_true(run_next(f));
	assert_true(run_next(f));
	assert_true(s.over);
	assert_int_equal(s.result, REFUSE_CANCELLED);
	assert_int_equal(counts(f).n, 0);
	assert_false(run_next(f));
}

TEST(a_stop_refuses_those_who_wait_and_those_who_come)
{
	struct fixture *f = *state;
	const struct memory_query q = about("user0");
	struct search searches[WAITING], late;

	fill_users(f, 1, MANY);
	start_and_run(f, searches, WAITING, "user0");
	memories_stop(f->engine->memories);
	search_start(f, &late, &q);
	run_all(f);
	assert_int_equal(late.result, REFUSE_STOPPING);
	for (unsigned i = 0; i < WAITING; i++)
		assert_int_equal(searches[i].result, REFUSE_STOPPING);
	assert_int_equal(counts(f).n, 1); /* the common ones were complete */
}

TEST(more_than_so_many_do_not_wait)
{
	struct fixture *f = *state;
	struct search *searches = calloc(MEMORY_WAITS_MAX + 1, sizeof(*searches));
	struct memory_query q = about("user0");

	q.limit = 1;
	assert_non_null(searches);
	for (unsigned i = 0; i <= MEMORY_WAITS_MAX; i++)
		search_start(f, &searches[i], &q);
	run_all(f);
	for (unsigned i = 0; i < MEMORY_WAITS_MAX; i++)
		assert_int_equal(searches[i].result, 0);
	assert_int_equal(searches[MEMORY_WAITS_MAX].result, REFUSE_LIMIT);
	assert_string_equal(searches[MEMORY_WAITS_MAX].error.text,
			    "too many searches are waiting for an index (limit 4096)");
	free(searches);
}

/* ---- bounded, and found at once ---- */

/* The user's and the common ones do not fit together, but one search needs both. */
TEST(a_search_has_its_indexes_even_if_they_do_not_fit_together)
{
	struct fixture *f = *state;
	const struct memory_query q = about("user0");
	struct search s;
	size_t one;

	fill_users(f, 1, MANY);
	for (int i = 0; i < 2000; i++) {
		char text[80];

		snprintf(text, sizeof(text), "entry%d about topic%d and word%d", i, i * 7, i * 13);
		add(f, text, NULL);
	}
	start_and_run(f, &s, 1, "user0");
	run_all(f);
	one = counts(f).bytes;
	fixture_reopen(f, one * 3 / 4);
	for (int i = 0; i < 3; i++) {
		search_start(f, &s, &q);
		run_all(f);
		assert_int_equal(s.result, 0);
		assert_int_equal(s.n, MEMORY_LIMIT_MAX);
		assert_true(s.n_runs <= 2);
		assert_true(counts(f).bytes <= one * 3 / 4);
	}
}

static void n_users_are_searched(struct fixture *f, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++) {
		char user[16];

		snprintf(user, sizeof(user), "user%u", i);
		assert_int_equal(n_found(f, "about", user), 1);
		arena_reset(&f->arena);
	}
}

TEST(other_users_indexes_are_not_looked_at)
{
	struct fixture *f = *state;
	uint64_t before;

	fill_users(f, MANY, 1);
	n_users_are_searched(f, 0, MANY);
	assert_int_equal(counts(f).n, MANY + 1);
	before = counts(f).n_seen;
	n_users_are_searched(f, 100, 1);
	assert_int_equal(counts(f).n_seen - before, 2); /* the user's, and the common ones */
	before = counts(f).n_seen;
	add(f, "something new", "user200");
	assert_int_equal(counts(f).n_seen - before, 1);
}

/* Those that are in use do not stand in the way of what is dropped. */
TEST(to_drop_an_index_looks_at_no_other)
{
	enum { USERS = 600 };
	struct fixture *f = *state;
	struct memory_indexes_counts before;
	size_t one;

	fill_users(f, USERS, 1);
	n_users_are_searched(f, 0, USERS / 2);
	one = counts(f).bytes;
	fixture_reopen(f, one);
	n_users_are_searched(f, 0, USERS / 2);
	before = counts(f);
	n_users_are_searched(f, USERS / 2, USERS / 2);
	assert_true(counts(f).bytes <= one);
	/* To find, to build, to find again, and to drop one. */
	assert_true(counts(f).n_seen - before.n_seen <= USERS / 2 * 8);
}
