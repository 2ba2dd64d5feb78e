/* Vectors in the store: whose are missing, which are found, and when they go. */
#include "store_fixture.h"

#include <errno.h>

#include "store/index/memory_vector.h"

enum { DIM = 4, MANY = 20500 };

static const struct store_model model = {.name = {"small", 5}, .dim = DIM};
static const struct store_model other = {.name = {"other", 5}, .dim = DIM};
static const struct store_model longer = {.name = {"small", 5}, .dim = 8};

static struct connection *reader(struct fixture *f)
{
	return store_reader(f->store, 0);
}

static int64_t add(struct fixture *f, const char *id, const char *owner, const char *chat)
{
	struct memory row = plain_row(text_of(id), text_of(id));
	int64_t seq = 0;

	row.owner = text_of(owner);
	row.chat = text_of(chat);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_add(store_writer(f->store), &row, &seq), 0);
	assert_int_equal(store_commit(f->store), 0);
	return seq;
}

struct found {
	struct store_bare_memory *bare;
	unsigned n;
	int64_t after;
	bool end;
};

static struct found find_with(struct fixture *f, const struct store_bare_opts *opts)
{
	struct found found = {0};

	assert_int_equal(store_memory_find_bare(reader(f), opts, &f->arena, &found.bare, &found.n,
						&found.after, &found.end),
			 0);
	return found;
}

static struct store_bare_opts bare_opts(const struct store_model *m, int64_t after)
{
	return (struct store_bare_opts) {
		.model = *m,
		.after = after,
		.now_ms = 1000,
		.limit = 64,
		.max_bytes = 100000,
		.max_chars = 1000,
	};
}

static struct found find(struct fixture *f, const struct store_model *m, int64_t after)
{
	const struct store_bare_opts opts = bare_opts(m, after);

	return find_with(f, &opts);
}

static bool put_hash(struct fixture *f, const struct store_model *m, int64_t seq, int64_t hash,
		     int8_t first)
{
	const int8_t bytes[8] = {first, 2, 3, 4};
	const float numbers[8] = {(float)first, 0.5f, -0.25f, 0};
	const struct store_vector v = {
		.seq = seq, .hash = hash, .scale = 0.125f, .bytes = bytes, .numbers = numbers};
	bool kept = false;

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_put_vector(store_writer(f->store), m, &v, &kept), 0);
	assert_int_equal(store_commit(f->store), 0);
	return kept;
}

/* Gives a vector to the one that is next without. */
static void put(struct fixture *f, const struct store_model *m, int64_t seq, int8_t first)
{
	const struct found found = find(f, m, seq - 1);

	assert_true(found.n > 0);
	assert_int_equal(found.bare[0].seq, seq);
	assert_true(put_hash(f, m, seq, found.bare[0].hash, first));
}

struct sum {
	unsigned n;
	int total;
	float scale;
};

static int add_first(void *arg, int64_t seq, const int8_t *bytes, float scale)
{
	struct sum *sum = arg;

	sum->n++;
	sum->total += bytes[0];
	sum->scale = scale;
	return 0;
}

static struct sum sum_of(struct fixture *f, const struct store_scope *scope,
			 const struct store_model *m)
{
	struct store_walk walk = {.limit = 2};
	struct sum sum = {0};

	while (!walk.end)
		assert_int_equal(
			store_memory_each_vector(reader(f), scope, m, &walk, add_first, &sum), 0);
	return sum;
}

FIXTURE(setup, teardown);

TEST(a_memory_is_bare_until_it_has_a_vector_of_the_model)
{
	struct fixture *f = *state;
	int64_t a = add(f, "a", "ann", "team");
	int64_t b = add(f, "b", NULL, "team");
	struct found found = find(f, &model, 0);

	assert_int_equal(found.n, 2);
	assert_true(found.end);
	assert_int_equal(found.after, b);
	assert_memory_equal(found.bare[0].content.data, "a", 1);
	assert_memory_equal(found.bare[0].owner.data, "ann", 3);
	assert_null(found.bare[1].owner.data);
	assert_memory_equal(found.bare[1].chat.data, "team", 4);
	put(f, &model, a, 1);
	found = find(f, &model, 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.bare[0].seq, b);
	assert_int_equal(find(f, &other, 0).n, 2);
	assert_int_equal(find(f, &longer, 0).n, 2);
	assert_int_equal(find(f, &model, b).n, 0);
}

TEST(of_any_dimension_when_it_is_not_known)
{
	struct fixture *f = *state;
	const struct store_model any = {.name = model.name};

	put(f, &model, add(f, "a", NULL, NULL), 1);
	assert_int_equal(find(f, &any, 0).n, 0);
}

TEST(a_vector_replaces_that_of_another_model)
{
	struct fixture *f = *state;
	int64_t a = add(f, "a", NULL, NULL);

	put(f, &model, a, 1);
	put(f, &other, a, 2);
	assert_int_equal(sum_of(f, &EVERYTHING, &model).n, 0);
	assert_int_equal(sum_of(f, &EVERYTHING, &other).total, 2);
	assert_int_equal(find(f, &model, 0).n, 1);
}

TEST(the_floats_come_back)
{
	struct fixture *f = *state;
	int64_t a = add(f, "a", NULL, NULL);
	float numbers[DIM];
	bool found;

	put(f, &model, a, 7);
	assert_int_equal(store_memory_find_vector(reader(f), &model, a, numbers, &found), 0);
	assert_true(found);
	assert_true(numbers[0] == 7 && numbers[1] == 0.5f && numbers[2] == -0.25f);
	assert_true(sum_of(f, &EVERYTHING, &model).scale == 0.125f);
	assert_int_equal(store_memory_find_vector(reader(f), &other, a, numbers, &found), 0);
	assert_false(found);
	assert_int_equal(store_memory_find_vector(reader(f), &model, a + 1, numbers, &found), 0);
	assert_false(found);
}

TEST(a_walk_sees_what_the_scope_sees)
{
	struct fixture *f = *state;
	const struct store_scope ann = {.user = {"ann", 3}};
	const struct store_scope ann_alone = {.user = {"ann", 3}, .without_common = true};
	const struct store_scope team = {.chat = {"team", 4}, .without_common = true};

	put(f, &model, add(f, "a", "ann", "team"), 1);
	put(f, &model, add(f, "b", "bob", NULL), 10);
	put(f, &model, add(f, "c", NULL, "team"), 20);
	put(f, &model, add(f, "d", NULL, NULL), 40);
	assert_int_equal(sum_of(f, &EVERYTHING, &model).total, 71);
	assert_int_equal(sum_of(f, &ann, &model).total, 41);
	assert_int_equal(sum_of(f, &ann_alone, &model).total, 1);
	assert_int_equal(sum_of(f, &team, &model).total, 20);
}

TEST(a_deleted_memory_takes_its_vector_along)
{
	struct fixture *f = *state;
	int64_t a = add(f, "a", NULL, NULL);
	bool found;

	put(f, &model, a, 1);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(
		store_memory_delete(store_writer(f->store), &EVERYTHING, TEXT("a"), &found), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_true(found);
	assert_int_equal(sum_of(f, &EVERYTHING, &model).n, 0);
}

TEST(no_vector_for_what_was_deleted_or_changed_meanwhile)
{
	struct fixture *f = *state;
	int64_t a = add(f, "a", NULL, NULL);
	const struct store_bare_memory before = find(f, &model, 0).bare[0];
	struct memory row = plain_row(TEXT("a"), TEXT("another text"));
	bool found;

	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_update(store_writer(f->store), &row, &found), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_false(put_hash(f, &model, a, before.hash, 1));
	assert_false(put_hash(f, &model, a + 1, before.hash, 1));
	assert_int_equal(sum_of(f, &EVERYTHING, &model).n, 0);
	put(f, &model, a, 3);
}

TEST(a_dropped_vector_is_missing_again)
{
	struct fixture *f = *state;
	int64_t a = add(f, "a", NULL, NULL);

	put(f, &model, a, 1);
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_drop_vector(store_writer(f->store), a), 0);
	assert_int_equal(store_commit(f->store), 0);
	assert_int_equal(find(f, &model, 0).n, 1);
}

TEST(what_is_expired_needs_none)
{
	struct fixture *f = *state;
	struct memory row = plain_row(TEXT("gone"), TEXT("gone"));
	int64_t n_vectors;
	int64_t n_bare;
	int64_t seq;

	row.expires_ms = 1000;
	assert_int_equal(store_begin(f->store), 0);
	assert_int_equal(store_memory_add(store_writer(f->store), &row, &seq), 0);
	assert_int_equal(store_commit(f->store), 0);
	put(f, &model, add(f, "a", NULL, NULL), 1);
	add(f, "b", "ann", NULL);
	assert_int_equal(find(f, &model, 0).n, 1);
	assert_int_equal(store_memory_count_vectors(reader(f), &EVERYTHING, &model, 1000,
						    &n_vectors, &n_bare),
			 0);
	assert_int_equal(n_vectors, 1);
	assert_int_equal(n_bare, 1);
}

TEST(texts_are_cut_and_counted)
{
	struct fixture *f = *state;
	struct store_bare_opts opts = bare_opts(&model, 0);
	struct found found;

	add(f, "\xc3\xa4\xc3\xb6\xc3\xbc-1", NULL, NULL);
	add(f, "\xc3\xa4\xc3\xb6\xc3\xbc-2", NULL, NULL);
	add(f, "\xc3\xa4\xc3\xb6\xc3\xbc-3", NULL, NULL);
	opts.max_chars = 2;
	found = find_with(f, &opts);
	assert_int_equal(found.bare[0].content.len, 4);
	/* The one that reaches the bound is the last. */
	opts.max_bytes = 5;
	found = find_with(f, &opts);
	assert_int_equal(found.n, 2);
	assert_false(found.end);
	opts.after = found.after;
	found = find_with(f, &opts);
	assert_int_equal(found.n, 1);
	assert_true(found.end);
}

TEST(many_are_looked_through_piece_by_piece)
{
	struct fixture *f = *state;
	struct found found = {0};
	unsigned n_looks = 0;
	unsigned n = 0;
	int64_t seq;
	char id[16];

	assert_int_equal(store_begin(f->store), 0);
	for (unsigned i = 0; i < MANY; i++) {
		struct memory row;

		snprintf(id, sizeof(id), "m%05u", i);
		row = plain_row(text_of(id), text_of(id));
		/* All but the last are of no interest. */
		row.expires_ms = i == MANY - 1 ? MEMORY_NEVER : 1;
		assert_int_equal(store_memory_add(store_writer(f->store), &row, &seq), 0);
	}
	assert_int_equal(store_commit(f->store), 0);
	while (!found.end) {
		found = find(f, &model, found.after);
		n_looks++;
		n += found.n;
	}
	assert_int_equal(n, 1);
	assert_int_equal(n_looks, 2);
	assert_int_equal(found.after, seq);
}
