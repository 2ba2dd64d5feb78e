/* An index in step with its memories: adding, replacing, removing, order, bounds. */

#include "check.h"

#include "base/error.h"
#include "search/index_inner.h"
#include "search/query.h"

static struct search_scratch *scratch;
static struct search_index *ix;

static int setup(void **state)
{
	scratch = search_scratch_new();
	ix = search_index_new(NULL);
	return scratch && ix ? 0 : -1;
}

static int teardown(void **state)
{
	search_index_free(ix);
	search_scratch_free(scratch);
	return 0;
}

FIXTURE(setup, teardown);

static void add(uint64_t key, const char *text, uint64_t chat, int64_t time_ms)
{
	struct search_doc doc = {
		.key = key, .text = text_of(text), .chat = chat, .time_ms = time_ms};

	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
}

/* The key found first, or 0; *ret_n how many were. */
static uint64_t find(const char *text, size_t *ret_n)
{
	const struct search_index *one = ix;
	struct search_query q = {.text = text_of(text)};
	struct search_hit hits[1000];
	size_t n;

	assert_int_equal(search_run(scratch, &one, 1, &q, hits, 1000, &n), 0);
	if (ret_n)
		*ret_n = n;
	return n ? hits[0].key : 0;
}

TEST(finds_what_was_added)
{
	add(7, "the kettle is blue", 0, 1);
	add(9, "the lamp is green", 0, 2);
	assert_int_equal(search_index_size(ix), 2);
	assert_true(search_index_has(ix, 7));
	assert_false(search_index_has(ix, 8));
	assert_int_equal(find("green lamps", NULL), 9);
	assert_int_equal(find("kettles", NULL), 7);
}

TEST(a_key_added_again_is_replaced)
{
	size_t n;

	add(7, "the kettle is blue", 0, 1);
	add(7, "the lamp is green", 0, 1);
	assert_int_equal(search_index_size(ix), 1);
	assert_int_equal(find("kettle", &n), 0);
	assert_int_equal(find("lamp", &n), 7);
	assert_int_equal(n, 1);
}

TEST(removed_ones_are_not_found)
{
	add(7, "the kettle is blue", 0, 1);
	assert_true(search_index_remove(ix, 7));
	assert_false(search_index_remove(ix, 7));
	assert_int_equal(search_index_size(ix), 0);
	assert_int_equal(find("kettle", NULL), 0);
}

/* Every living memory is found by its own word, no dead one is. */
static void assert_exactly(const bool *alive, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[32];
		size_t found;

		snprintf(text, sizeof(text), "own%zu", i);
		assert_int_equal(find(text, &found), alive[i] ? i : 0);
		assert_int_equal(search_index_has(ix, i), alive[i]);
	}
}

TEST(many_come_and_go)
{
	enum { N = 1000 };
	bool alive[N] = {false};
	size_t n_alive = 0;
	uint32_t random = 12345;

	for (size_t step = 0; step < 6000; step++) {
		size_t i;
		char text[64];

		random = random * 1664525 + 1013904223;
		i = 1 + (random >> 8) % (N - 1);
		n_alive -= alive[i];
		if (random >> 28 < 7) {
			assert_int_equal(search_index_remove(ix, i), alive[i]);
			alive[i] = false;
			continue;
		}
		/* Of no chat, so that neighbours do not answer for others. */
		snprintf(text, sizeof(text), "own%zu shared words of all", i);
		add(i, text, 0, (int64_t)(random >> 4));
		alive[i] = true;
		n_alive++;
	}
	n_alive = 0;
	for (size_t i = 0; i < N; i++)
		n_alive += alive[i];
	assert_int_equal(search_index_size(ix), n_alive);
	/* Dead ones were swept out on the way. */
	assert_true(ix->n_dead <= ix->n_docs / 4 + 64);
	assert_exactly(alive, N);
}

TEST(memory_comes_back_after_removing)
{
	size_t most;

	for (uint64_t i = 1; i <= 20000; i++) {
		char text[64];

		snprintf(text, sizeof(text), "word%u and word%u again", (unsigned)i,
			 (unsigned)i / 2);
		add(i, text, i % 10 + 1, (int64_t)i);
	}
	most = search_index_bytes(ix);
	for (uint64_t i = 1; i <= 19900; i++)
		assert_true(search_index_remove(ix, i));
	assert_true(search_index_bytes(ix) < most / 20);
	assert_int_equal(search_index_size(ix), 100);
	assert_int_equal(find("word19950", NULL), 19950);
}

/* Walks a chat from its first to its last; they are in order of time. */
static size_t assert_chain(uint64_t chat)
{
	uint32_t number;
	uint32_t at;
	size_t n = 0;
	size_t in_runs = 0;

	assert_int_equal(chat_get(ix, chat, &number), 0);
	for (uint32_t i = 0; i < ix->chats[number].n_runs; i++)
		in_runs += ix->chats[number].runs[i].n;
	at = ix->chats[number].n_runs ? ix->chats[number].runs[0].first : NO_DOC;
	for (; at != NO_DOC; at = ix->links[at].next) {
		uint32_t next = ix->links[at].next;

		n++;
		assert_false(ix->doc_marks[at] & MARK_DEAD);
		if (next == NO_DOC) {
			assert_int_equal(ix->chats[number].last, at);
			continue;
		}
		assert_int_equal(ix->links[next].prev, at);
		assert_true(ix->times[at] <= ix->times[next]);
	}
	assert_int_equal(n, in_runs);
	return n;
}

TEST(a_chat_is_in_order_of_time_however_it_came)
{
	enum { N = 3000 };

	for (uint64_t i = 1; i <= N; i++)
		add(i, "imported in any order", 5, (int64_t)(i * 7919 % N / 2));
	assert_int_equal(assert_chain(5), N);
	for (uint64_t i = 1; i <= N; i += 3)
		search_index_remove(ix, i);
	assert_int_equal(assert_chain(5), N - N / 3);
	for (uint64_t i = 1; i <= N; i += 3)
		add(i, "back to front", 5, (int64_t)(N - i));
	assert_int_equal(assert_chain(5), N);
}

TEST(backwards_is_as_good_an_order)
{
	for (uint64_t i = 1; i <= 1000; i++)
		add(i, "older and older", 6, -(int64_t)i);
	assert_int_equal(assert_chain(6), 1000);
}

TEST(the_bound_holds)
{
	const struct search_index_opts opts = {.max_bytes = 200000};
	uint64_t key = 0;
	int r = 0;

	search_index_free(ix);
	ix = search_index_new(&opts);
	while (r == 0 && key < 100000) {
		char text[64];
		struct search_doc doc = {.chat = 3};

		snprintf(text, sizeof(text), "number%u of many", (unsigned)key);
		doc.text = text_of(text);
		doc.key = ++key;
		r = search_index_add(ix, scratch, &doc);
		assert_true(search_index_bytes(ix) <= opts.max_bytes);
	}
	assert_int_equal(r, REFUSE_LIMIT);
	assert_true(key > 500);
	/* The one that did not fit is not there, the others are. */
	assert_false(search_index_has(ix, key));
	assert_int_equal(search_index_size(ix), key - 1);
	assert_int_equal(find("number100", NULL), 101);
}

TEST(a_memory_costs_few_bytes)
{
	enum { N = 50000 };
	uint32_t random = 7;

	for (uint64_t i = 1; i <= N; i++) {
		char text[256] = "";
		size_t len = 0;

		for (int k = 0; k < 15; k++) {
			random = random * 1664525 + 1013904223;
			len += (size_t)snprintf(text + len, sizeof(text) - len, "w%u ",
						(random >> 10) % (1U << (4 + k % 10)));
		}
		add(i, text, i % 50 + 1, (int64_t)i);
	}
	assert_true(search_index_bytes(ix) / N < 150);
}

TEST(a_huge_text_is_cut_not_refused)
{
	size_t len = (size_t)rounds(2, 10) << 20;
	char *text = malloc(len);
	struct search_doc doc = {.key = 1, .text = {text, len}};

	assert_non_null(text);
	for (size_t i = 0; i < len; i++)
		text[i] = i % 7 == 6 ? ' ' : (char)('a' + (i / 7 + i) % 26);
	memcpy(text, "kettle ", 7);
	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
	assert_int_equal(find("kettle", NULL), 1);
	memset(text, 0, len);
	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
	assert_int_equal(find("kettle", NULL), 0);
	free(text);
}
