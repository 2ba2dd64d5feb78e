/* Two rankings become one. */
#include "check.h"

#include "search/fuse.h"

static size_t fuse(const uint64_t *words, size_t n_words, const uint64_t *vectors, size_t n_vectors,
		   struct search_hit *ret)
{
	struct search_hit by_words[100] = {0};
	struct vector_hit by_vectors[100] = {0};

	for (size_t i = 0; i < n_words; i++)
		by_words[i] = (struct search_hit) {.key = words[i], .similarity = 0.5f};
	for (size_t i = 0; i < n_vectors; i++)
		by_vectors[i] = (struct vector_hit) {.key = vectors[i], .score = 0.5f};
	return search_fuse(&fuse_default_weights, by_words, n_words, by_vectors, n_vectors, ret);
}

static void check_order(const struct search_hit *hits, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_true(hits[i].similarity > 0 && hits[i].similarity <= 1);
		assert_true(i == 0 || hits[i - 1].similarity >= hits[i].similarity);
	}
}

static void first_in_both_is_first_with_one(void **state)
{
	const uint64_t words[] = {7, 1, 2};
	const uint64_t vectors[] = {7, 3};
	struct search_hit hits[5];

	(void)state;
	assert_int_equal(fuse(words, 3, vectors, 2, hits), 4);
	assert_int_equal(hits[0].key, 7);
	assert_true(hits[0].similarity > 0.9999f);
	check_order(hits, 4);
}

static void words_alone_keep_their_order(void **state)
{
	uint64_t words[100];
	struct search_hit hits[100];

	(void)state;
	for (size_t i = 0; i < 100; i++)
		words[i] = 1000 - i;
	assert_int_equal(fuse(words, 100, NULL, 0, hits), 100);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(hits[i].key, words[i]);
	check_order(hits, 100);
}

static void what_only_vectors_found_is_among_the_first_ten(void **state)
{
	uint64_t words[100];
	const uint64_t vectors[] = {5000};
	struct search_hit hits[101];
	size_t at = 0;

	(void)state;
	for (size_t i = 0; i < 100; i++)
		words[i] = i + 1;
	assert_int_equal(fuse(words, 100, vectors, 1, hits), 101);
	while (hits[at].key != 5000)
		at++;
	assert_in_range(at, 1, 9);
	check_order(hits, 101);
}

static void being_in_both_counts_more_than_in_one(void **state)
{
	const uint64_t words[] = {1, 2, 3};
	const uint64_t vectors[] = {4, 3};
	struct search_hit hits[5];

	(void)state;
	assert_int_equal(fuse(words, 3, vectors, 2, hits), 4);
	assert_int_equal(hits[0].key, 3);
	assert_int_equal(hits[1].key, 1);
}

static void each_hit_says_where_it_was(void **state)
{
	const uint64_t words[] = {1, 2, 3};
	const uint64_t vectors[] = {4, 3};
	const uint32_t places[] = {2, 0, 1, 3}; /* of 3, 1, 2 and 4 */
	struct search_hit hits[5];

	(void)state;
	assert_int_equal(fuse(words, 3, vectors, 2, hits), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(hits[i].index, places[i]);
}

static void nothing_of_nothing(void **state)
{
	struct search_hit hits[1];

	(void)state;
	assert_int_equal(fuse(NULL, 0, NULL, 0, hits), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_in_both_is_first_with_one),
		cmocka_unit_test(words_alone_keep_their_order),
		cmocka_unit_test(what_only_vectors_found_is_among_the_first_ten),
		cmocka_unit_test(being_in_both_counts_more_than_in_one),
		cmocka_unit_test(each_hit_says_where_it_was),
		cmocka_unit_test(nothing_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
