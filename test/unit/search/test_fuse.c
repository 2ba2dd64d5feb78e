/* What words found, and how near vectors are, become one order; a model must earn that. */
#include "check.h"

#include "search/vector/near.h"

enum { N = 20 };

static struct search_hit words[N];
static struct near_hit near[2 * N];
static struct search_hit hits[2 * N];

/* The better half has more of the words. */
static size_t make_words(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		words[i] = (struct search_hit) {
			.key = 100 + i, .score = 1 - (float)i / (float)n, .unit = 0.4f};
		near[i] = (struct near_hit) {.key = 100 + i};
	}
	return n;
}

static void check_order(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(hits[i].similarity > 0 && hits[i].similarity <= 1);
		assert_true(i == 0 || hits[i - 1].similarity >= hits[i].similarity);
		assert_int_equal(hits[i].key, near[hits[i].index].key);
	}
}

TEST(words_alone_keep_their_order)
{
	size_t n = make_words(N);

	assert_int_equal(search_fuse(&fuse_default_weights, 1, words, n, near, n, hits), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(hits[i].key, words[i].key);
	check_order(n);
}

TEST(a_nearer_one_moves_up)
{
	size_t n = make_words(10);

	near[3].z = 6;
	near[0].z = -6; /* farther than others: no worse for that */
	search_fuse(&fuse_default_weights, 1, words, n, near, n, hits);
	assert_int_equal(hits[0].key, 103);
	assert_int_equal(hits[1].key, 100);
	check_order(n);
}

TEST(what_only_vectors_found_is_among_them)
{
	size_t n = make_words(10);

	near[n] = (struct near_hit) {.key = 500, .z = 4};
	near[n + 1] = (struct near_hit) {.key = 501, .z = -1};
	assert_int_equal(search_fuse(&fuse_default_weights, 1, words, n, near, n + 2, hits), n + 2);
	assert_true(hits[7].key == 500 || hits[8].key == 500);
	assert_int_equal(hits[n + 1].key, 501);
	check_order(n + 2);
}

TEST(without_words_the_nearest_is_first)
{
	near[0] = (struct near_hit) {.key = 1, .z = 3};
	near[1] = (struct near_hit) {.key = 2, .z = 0.5f};
	near[2] = (struct near_hit) {.key = 3, .z = -2};
	assert_int_equal(search_fuse(&fuse_default_weights, 1, NULL, 0, near, 3, hits), 3);
	assert_int_equal(hits[0].key, 1);
	assert_int_equal(hits[2].key, 3);
	check_order(3);
	assert_int_equal(search_fuse(&fuse_default_weights, 1, NULL, 0, NULL, 0, hits), 0);
}

TEST(a_model_without_trust_changes_nothing)
{
	size_t n = make_words(10);

	near[9].z = 50;
	near[n] = (struct near_hit) {.key = 500, .z = 40};
	search_fuse(&fuse_default_weights, 0, words, n, near, n + 1, hits);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(hits[i].key, words[i].key);
	assert_int_equal(hits[n].key, 500);
	check_order(n + 1);
}

/* ---- trust ---- */

static float trust_after(struct fuse_fit *fit, float beyond, size_t n)
{
	const struct near_found found = {.beyond = beyond, .judged = true};

	for (size_t i = 0; i < n; i++)
		fuse_learn(fit, &found);
	return fuse_trust(&fuse_default_weights, fit);
}

TEST(trust_is_lost_and_won_again)
{
	struct fuse_fit fit = fuse_first_fit;

	assert_true(fuse_trust(&fuse_default_weights, &fit) == 1);
	assert_true(trust_after(&fit, 0, 20) == 0);
	assert_true(trust_after(&fit, 0.5f, 20) == 1);
	/* However long it went well, it does not take for ever to notice. */
	trust_after(&fit, 0.5f, 100000);
	assert_true(trust_after(&fit, 0, 500) == 0);
	assert_true(trust_after(&fit, 0.5f, 500) == 1);
}

TEST(one_search_does_not_decide)
{
	struct fuse_fit fit = fuse_first_fit;

	trust_after(&fit, 0.3f, 50);
	assert_true(trust_after(&fit, -1000, 1) == 1);
	trust_after(&fit, 0, 500);
	assert_true(trust_after(&fit, 1000, 1) == 0);
}

TEST(what_judges_nothing_teaches_nothing)
{
	const struct near_found nothing = {.beyond = -1};
	struct fuse_fit fit = fuse_first_fit;

	for (int i = 0; i < 100; i++)
		fuse_learn(&fit, &nothing);
	assert_true(fuse_trust(&fuse_default_weights, &fit) == 1);
}
