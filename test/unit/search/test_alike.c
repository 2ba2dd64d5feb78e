/* Words that are used alike find each other, a little: with the tests' own table. */
#include "check.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "search/query.h"
#include "search/vector/word_table.h"

enum { HITS = 20 };

static const int64_t NOW = 1704456000000; /* 5 January 2024 */

static struct buf file;
static struct word_table *table;
static struct search_scratch *scratch;
static struct search_index *ix;
static struct search_tuning tuning;
static struct search_hit hits[HITS];
static size_t n_hits;

static int read_table(void **state)
{
	struct error error;
	int fd = open(getenv("KOINE_WORDS"), O_RDONLY | O_CLOEXEC);

	buf_init(&file, WORD_TABLE_BYTES_MAX);
	if (fd < 0 || file_read_all(fd, &file) != 0)
		return -1;
	close(fd);
	return word_table_read((struct text) {file.data, file.len}, &table, &error);
}

static int free_table(void **state)
{
	word_table_free(table);
	buf_done(&file);
	return 0;
}

GROUP_FIXTURE(read_table, free_table);

static int setup(void **state)
{
	scratch = search_scratch_new();
	ix = search_index_new(NULL);
	tuning = search_default_tuning;
	return scratch && ix ? 0 : -1;
}

static int teardown(void **state)
{
	search_index_free(ix);
	search_scratch_free(scratch);
	return 0;
}

FIXTURE(setup, teardown);

static void add(uint64_t key, const char *text)
{
	struct search_doc doc = {
		.key = key, .time_ms = NOW - (int64_t)key * 1000, .text = text_of(text)};

	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
}

static void ask_of(struct word_table *words, const char *text)
{
	const struct search_index *indexes[] = {ix};
	const struct search_query q = {
		.text = text_of(text), .now_ms = NOW, .words = words, .tuning = &tuning};

	assert_int_equal(search_run(scratch, indexes, 1, &q, hits, HITS, &n_hits), 0);
}

static void ask(const char *text)
{
	ask_of(table, text);
}

/* More memories, so that words have a rarity. */
static void fill(void)
{
	static const char *const about[] = {"the window is clean",  "bring the ladder back",
					    "a parcel came",        "keys hang at the door",
					    "the radio plays loud", "she likes the colour green"};

	for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++)
		add(100 + i, about[i]);
}

TEST(a_similar_word_is_found)
{
	fill();
	add(1, "our nurse moved to Ghent");
	ask("where did the doctor go?");
	assert_int_equal(n_hits, 1);
	assert_int_equal(hits[0].key, 1);
	ask_of(NULL, "where did the doctor go?");
	assert_int_equal(n_hits, 0);
	tuning.off = SEARCH_NO_ALIKE;
	ask("where did the doctor go?");
	assert_int_equal(n_hits, 0);
}

TEST(the_word_itself_comes_first)
{
	fill();
	add(1, "the nurse moved to Ghent");
	add(2, "the surgeon moved to Ghent");
	add(3, "a doctor moved to Lille last year, after a long time in the north of the country");
	ask("doctor");
	assert_int_equal(n_hits, 3);
	assert_int_equal(hits[0].key, 3);
}

/* Three words for the same do not make a memory better than one word for two. */
TEST(several_similar_words_count_once)
{
	fill();
	add(1, "nurse surgeon physician");
	add(2, "nurse van ladder");
	ask("doctor car");
	assert_int_equal(n_hits, 2);
	assert_int_equal(hits[0].key, 2);
}

TEST(names_numbers_and_times_are_like_no_others)
{
	fill();
	add(1, "our nurse moved to Ghent");
	ask("was it for the Doctor");
	assert_int_equal(n_hits, 0);
	add(2, "the wedding is next week");
	ask("birthday"); /* a word of time */
	assert_int_equal(n_hits, 0);
}

/* "surgeon" is one letter away from "sturgeon", but it is a word. */
TEST(a_word_of_the_table_is_not_repaired)
{
	fill();
	add(1, "they caught a sturgeon");
	ask("surgeon");
	assert_int_equal(n_hits, 0);
	ask_of(NULL, "surgeon");
	assert_int_equal(n_hits, 1);
	/* A mistake in writing still is one. */
	ask("stugreon");
	assert_int_equal(n_hits, 1);
}

TEST(many_words_have_no_more_bits_than_there_are)
{
	fill();
	add(1, "nurse van puppy cottage salary purchase lunch snack infant voyage fever glad");
	ask("doctor car dog house money buy eat food child holiday sick happy book music film "
	    "teacher school student computer phone road river sea mountain rain cold hot city "
	    "garden cook drink wine bread meat fish fruit vegetable bicycle train plane boat");
	assert_int_equal(n_hits, 1);
	assert_true(hits[0].similarity > 0 && hits[0].similarity <= 1);
}
