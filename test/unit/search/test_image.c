/* An index as bytes: what is read again finds the same, and bytes that are wrong do no harm. */
#include "check.h"

#include <errno.h>

#include "base/error.h"
#include "search/file/image.h"
#include "search/index.h"
#include "search/index_inner.h"
#include "search/query.h"

enum { HITS = 1000 };

static struct search_scratch *scratch;
static uint32_t random_state;

static int setup(void **state)
{
	scratch = search_scratch_new();
	random_state = 7;
	return scratch ? 0 : -1;
}

static int teardown(void **state)
{
	search_scratch_free(scratch);
	return 0;
}

FIXTURE(setup, teardown);

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % n;
}

static void add(struct search_index *ix, uint64_t key)
{
	const struct text subject = random_below(2) ? TEXT("Ann") : TEXT("Bob Miller");
	char text[128];
	struct search_doc doc = {.key = key,
				 .subjects = &subject,
				 .n_subjects = random_below(3) == 0,
				 .chat = random_below(4),
				 .time_ms = (int64_t)random_below(500),
				 .importance = 0.5f,
				 .category = (uint8_t)random_below(5),
				 .open = random_below(2)};

	snprintf(text, sizeof(text), "common word%u rare%u and twice%u twice%u%s",
		 (unsigned)random_below(50), (unsigned)random_below(5000),
		 (unsigned)random_below(9), (unsigned)random_below(9),
		 random_below(5) ? "" : " on Monday?");
	doc.text = text_of(text);
	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
}

static struct search_index *made(uint64_t n)
{
	struct search_index *ix = search_index_new(NULL);

	assert_non_null(ix);
	for (uint64_t key = 1; key <= n; key++)
		add(ix, key);
	return ix;
}

static void change(struct search_index *ix, uint64_t n)
{
	for (uint64_t i = 0; i < n / 8; i++)
		search_index_remove(ix, 1 + random_below((uint32_t)n));
	for (uint64_t i = 0; i < n / 16; i++)
		add(ix, 1 + random_below((uint32_t)n + 9));
}

/* Its bytes, to be freed. */
static char *bytes_of(const struct search_index *ix, struct search_head *ret_head, size_t *ret_len)
{
	struct search_block blocks[SEARCH_BLOCKS];
	uint64_t *chats;
	size_t len = 0;
	char *bytes;

	assert_int_equal(search_image(ix, ret_head, blocks, &chats), 0);
	for (size_t i = 0; i < SEARCH_BLOCKS; i++)
		len += blocks[i].len;
	bytes = malloc(len + 1);
	assert_non_null(bytes);
	*ret_len = len;
	len = 0;
	for (size_t i = 0; i < SEARCH_BLOCKS; i++) {
		if (blocks[i].len > 0)
			memcpy(bytes + len, blocks[i].data, blocks[i].len);
		len += blocks[i].len;
	}
	free(chats);
	return bytes;
}

static int read_bytes(const struct search_head *head, const char *bytes, size_t len, size_t budget,
		      const struct search_index_opts *opts, struct search_index **ret)
{
	struct search_block blocks[SEARCH_BLOCKS];
	struct search_reading *reading;
	bool done = false;
	int r = search_reading_new(head, len, opts, &reading, blocks);

	if (r != 0)
		return r;
	for (size_t i = 0; i < SEARCH_BLOCKS; bytes += blocks[i++].len) {
		if (blocks[i].len > 0)
			memcpy(blocks[i].data, bytes, blocks[i].len);
	}
	while (r == 0 && !done)
		r = search_reading_step(reading, budget, &done);
	if (r != 0)
		search_reading_free(reading);
	else
		*ret = search_reading_take(reading);
	return r;
}

static size_t find(const struct search_index *ix, const char *text, struct search_hit hits[HITS])
{
	struct search_query q = {.text = text_of(text), .now_ms = 86400000};
	size_t n;

	assert_int_equal(search_run(scratch, &ix, 1, &q, hits, HITS, &n), 0);
	return n;
}

static void assert_same(const struct search_index *a, const struct search_index *b)
{
	static struct search_hit x[HITS], y[HITS];

	assert_int_equal(search_index_size(a), search_index_size(b));
	for (int i = 0; i < 50; i++) {
		char text[64];
		size_t n;

		snprintf(text, sizeof(text), "%s word%d twice%d rare%d",
			 i % 3 ? "what did Ann say about" : "common", i, i % 9, i * 97);
		n = find(a, text, x);
		assert_int_equal(find(b, text, y), n);
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(x[k].key, y[k].key);
			assert_true(x[k].similarity == y[k].similarity);
		}
	}
}

/* Without what was removed, whose words count until an index is compacted. */
static struct search_index *compacted(struct search_index *ix)
{
	struct search_copy *copy = search_copy_new();
	bool done;

	assert_int_equal(search_copy_step(copy, ix, SIZE_MAX, &done), 0);
	search_index_free(ix);
	return search_copy_take(copy);
}

TEST(what_is_read_again_finds_the_same)
{
	static const size_t sizes[] = {0, 1, 2, 30, 3000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct search_index *ix = made(sizes[i]);
		struct search_index *again;
		struct search_head head;
		size_t len;
		char *bytes;

		change(ix, sizes[i]);
		bytes = bytes_of(ix, &head, &len);
		assert_int_equal(read_bytes(&head, bytes, len, 1 + i * 50, NULL, &again), 0);
		assert_same(ix, again);
		/* And both go on alike. */
		random_state = 99;
		change(ix, sizes[i] + 20);
		random_state = 99;
		change(again, sizes[i] + 20);
		ix = compacted(ix);
		again = compacted(again);
		assert_same(ix, again);
		search_index_free(ix);
		search_index_free(again);
		free(bytes);
	}
}

TEST(a_copy_is_made_while_the_index_changes)
{
	enum { N = 2000 };
	struct search_index *ix = made(N);
	struct search_copy *copy = search_copy_new();
	struct search_index *fresh, *later;
	bool done = false;

	/* In one piece, it is what is there. */
	change(ix, N / 4);
	assert_int_equal(search_copy_step(copy, ix, SIZE_MAX, &done), 0);
	assert_true(done);
	fresh = search_copy_take(copy);
	assert_int_equal(fresh->n_dead, 0);
	assert_int_equal(search_index_size(fresh), search_index_size(ix));
	/* In many, with changes in between, which are then applied to it. */
	copy = search_copy_new();
	for (uint64_t key = N + 1; !done || key == N + 1; key++) {
		assert_int_equal(search_copy_step(copy, ix, 500, &done), 0);
		add(ix, key);
		random_state += (uint32_t)key;
		search_index_remove(ix, key % 7 * 11);
	}
	later = search_copy_take(copy);
	for (uint64_t key = 1; key <= N; key++) {
		if (search_index_has(ix, key))
			assert_true(search_index_has(later, key));
	}
	assert_false(search_index_has(later, N + 1));
	search_index_free(later);
	search_index_free(fresh);
	search_index_free(ix);
}

TEST(a_copy_of_an_index_that_was_compacted_is_begun_anew)
{
	enum { N = 1000 };
	struct search_index *ix = made(N);
	struct search_copy *copy = search_copy_new();
	bool done;

	assert_int_equal(search_copy_step(copy, ix, 100, &done), 0);
	assert_false(done);
	for (uint64_t key = 1; key < N / 2; key++)
		search_index_remove(ix, key);
	assert_int_equal(search_copy_step(copy, ix, 100, &done), -ESTALE);
	search_copy_free(copy);
	search_index_free(ix);
}

TEST(a_head_that_does_not_fit_is_refused)
{
	struct search_index *ix = made(100);
	struct search_index *again;
	const struct search_index_opts small = {.max_bytes = 5000};
	struct search_head head, wrong;
	uint64_t *numbers = (uint64_t *)&wrong;
	size_t len;
	char *bytes = bytes_of(ix, &head, &len);

	assert_int_equal(read_bytes(&head, bytes, len - 1, 100, NULL, &again), -EBADMSG);
	assert_int_equal(read_bytes(&head, bytes, len, 100, &small, &again), REFUSE_LIMIT);
	/* All but the seed. */
	for (size_t i = 0; i + 1 < sizeof(head) / sizeof(*numbers); i++) {
		wrong = head;
		numbers[i]++;
		assert_int_equal(read_bytes(&wrong, bytes, len, 100, NULL, &again), -EBADMSG);
		numbers[i] = UINT64_MAX / 8;
		assert_int_equal(read_bytes(&wrong, bytes, len, 100, NULL, &again), -EBADMSG);
	}
	free(bytes);
	search_index_free(ix);
}

/* Whoever got past the sums: it is refused, or an index like any other. */
TEST(wrong_bytes_do_no_harm)
{
	static struct search_hit hits[HITS];
	struct search_index *ix = made(300);
	unsigned n_refused = 0;
	int n = rounds(1000, 3000);
	struct search_head head;
	size_t len;
	char *bytes;

	change(ix, 100);
	bytes = bytes_of(ix, &head, &len);
	for (int i = 0; i < n; i++) {
		struct search_index *again;
		size_t at = (size_t)(random_below(1 << 16) << 8 | random_below(256)) % len;
		char was = bytes[at];
		int r;

		bytes[at] = (char)(random_below(2) ? was ^ 1 << random_below(8)
						   : (char)random_below(256));
		r = read_bytes(&head, bytes, len, SIZE_MAX, NULL, &again);
		bytes[at] = was;
		n_refused += r != 0;
		if (r != 0) {
			assert_int_equal(r, -EBADMSG);
			continue;
		}
		find(again, "what did Ann say about word7 twice3 common rare12", hits);
		change(again, 300);
		find(again, "common twice1", hits);
		search_index_free(again);
	}
	assert_true(n_refused > (unsigned)n / 10);
	free(bytes);
	search_index_free(ix);
}

static uint64_t sum_of(const char *bytes, size_t len, size_t piece)
{
	struct search_sum sum;

	search_sum_init(&sum);
	for (size_t at = 0; at < len; at += piece)
		search_sum_add(&sum, bytes + at, len - at < piece ? len - at : piece);
	return search_sum_end(&sum);
}

TEST(a_sum_notices_every_bit)
{
	char bytes[333];
	uint64_t sum;

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)random_below(256);
	sum = sum_of(bytes, sizeof(bytes), sizeof(bytes));
	assert_true(sum == sum_of(bytes, sizeof(bytes), 32));
	assert_true(sum == sum_of(bytes, sizeof(bytes), 96));
	for (size_t i = 0; i < sizeof(bytes) * 8; i++) {
		bytes[i / 8] ^= (char)(1 << i % 8);
		assert_true(sum != sum_of(bytes, sizeof(bytes), 64));
		bytes[i / 8] ^= (char)(1 << i % 8);
	}
	assert_true(sum != sum_of(bytes, sizeof(bytes) - 1, 64));
}

TEST(the_fingerprint_is_the_same_every_time)
{
	uint64_t first = search_fingerprint(scratch);

	assert_true(first != 0);
	for (int i = 0; i < 3; i++) {
		/* Whatever was in the memory that it gets. */
		search_index_free(made(50));
		assert_true(search_fingerprint(scratch) == first);
	}
}
