/*
 * Finding: each step of the ranking decides at least one test here, which fails
 * with that step left out (and says so by asking again without it).
 */
#include "search_fixture.h"

#include "base/arena.h"
#include "search/dates.h"
#include "wire/json.h"

static const int64_t DAY = 86400000;
FIXTURE(setup, teardown);

static void add_doc(struct search_doc doc, const char *text)
{
	doc.text = text_of(text);
	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
}

static void add(uint64_t key, const char *text)
{
	add_doc((struct search_doc) {.key = key, .time_ms = NOW - 100 * DAY, .importance = 0.5f},
		text);
}

static void add_about(uint64_t key, const char *text, const char *subject)
{
	struct text name = text_of(subject);

	add_doc(
		(struct search_doc) {
			.key = key, .time_ms = NOW - 100 * DAY, .subjects = &name, .n_subjects = 1},
		text);
}

static void add_at(uint64_t key, const char *text, int64_t time_ms)
{
	add_doc((struct search_doc) {.key = key, .time_ms = time_ms}, text);
}

/* In a chat of its own number, a minute after the one before. */
static void add_said(uint64_t key, const char *text, uint64_t chat)
{
	add_doc((struct search_doc) {.key = key,
				     .chat = chat,
				     .time_ms = NOW - 100 * DAY + (int64_t)key * 60000},
		text);
}

/* Step 1: words. */
TEST(forms_of_a_word_meet)
{
	add(1, "Zoë went to the Café with her children");
	add(2, "nothing of that kind");
	assert_int_equal(first("cafes"), 1);
	assert_int_equal(first("who goes there"), 1);
	assert_int_equal(first("a child"), 1);
	assert_int_equal(first("ZOE"), 1);
}

TEST(numbers_are_found)
{
	add(1, "the rent is 1,450 euros from the 3rd");
	add(2, "the rent is 450 euros");
	assert_int_equal(first("1450"), 1);
	assert_int_equal(first("3"), 1);
}

/* Step 2: the query. */
TEST(words_that_say_nothing_are_dropped)
{
	const char *question = "who is it that we had in the garden?";

	add(1, "a hedgehog lives behind the garden shed, under all of those wet leaves");
	add(2, "it is what it is, and that is that: we had it in there");
	for (uint64_t key = 3; key < 20; key++)
		add(key, "some other garden, quite far away, belongs to people from the town");
	assert_int_not_equal(first(question), 2);
	assert_int_equal(first_without(SEARCH_NO_STOPS, question), 2);
}

TEST(they_are_all_kept_when_there_are_no_others)
{
	add(1, "to be or not to be");
	add(2, "kettle");
	assert_int_equal(first("to be or not to be"), 1);
	assert_int_equal(first("what is it"), 0);
	assert_int_equal(first("who is not"), 1);
}

TEST(any_word_will_do)
{
	add(1, "the red kettle");
	add(2, "a green lamp");
	first("kettle lamp submarine");
	assert_int_equal(n_hits, 2);
}

TEST(no_query_is_an_error)
{
	static const char *const odd[] = {"",
					  " ",
					  "\"",
					  "\"unclosed",
					  "AND OR NOT",
					  "a AND",
					  "NEAR(kettle, 3)",
					  "kettle*",
					  "(((",
					  "title:kettle",
					  "-kettle",
					  "^kettle",
					  "'; DROP TABLE x; --",
					  "%_%",
					  "\\",
					  "?",
					  "\xff\xfe\x80",
					  "e\xcc\x81\xcc\x81\xcc\x81",
					  "\xe2\x80\xae",
					  "🎉",
					  "\xf0\x9f\x8e"};

	add(1, "the red kettle");
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		first(odd[i]);
	assert_int_equal(first("\"kettle\" AND (NOT"), 1);
	query.text = (struct text) {"\0kettle\0", 8};
	assert_int_equal(first_without(0, NULL), 1);
	query.text = (struct text) {NULL, 0};
	assert_int_equal(first_without(0, NULL), 0);
}

TEST(ten_thousand_words_are_no_problem)
{
	char *text = malloc(200000);
	size_t len = 0;

	assert_non_null(text);
	add(1, "the red kettle");
	for (int i = 0; i < 10000; i++)
		len += (size_t)sprintf(text + len, "unheard%d ", i);
	query.text = (struct text) {text, len};
	assert_int_equal(first_without(0, NULL), 0);
	memcpy(text, "kettle ", 7);
	assert_int_equal(first_without(0, NULL), 1);
	free(text);
}

/* A page of known and unknown words, as people paste it before or after their question. */
static char *page(size_t n_words, size_t *ret_len)
{
	char *text = malloc(n_words * 24 + 1000);
	size_t len = 0;

	assert_non_null(text);
	for (size_t i = 0; i < n_words; i++)
		len += (size_t)sprintf(text + len, i % 20 == 19 ? "word%zu.\n" : "word%zu ",
				       i % 2000);
	*ret_len = len;
	return text;
}

static void add_words_of_a_page(void)
{
	char text[64];

	for (uint64_t key = 1000; key < 1400; key++) {
		uint64_t n = (key - 1000) * 5;

		snprintf(text, sizeof(text), "word%u word%u word%u word%u word%u", (unsigned)n,
			 (unsigned)n + 1, (unsigned)n + 2, (unsigned)n + 3, (unsigned)n + 4);
		add(key, text);
	}
}

TEST(a_question_after_ten_thousand_words_is_found)
{
	size_t len;
	char *text = page(10000, &len);

	add_words_of_a_page();
	add(1, "the kettle is in the cellar");
	len += (size_t)sprintf(text + len, "\nWhere is the kettle?\n");
	query.text = (struct text) {text, len};
	assert_int_equal(first_without(0, NULL), 1);
	/* What was pasted still counts where the question alone does not decide. */
	add(2, "the kettle of word77");
	assert_int_equal(first_without(0, NULL), 2);
	free(text);
}

TEST(a_question_before_ten_thousand_words_is_found)
{
	size_t len;
	char *pasted = page(10000, &len);
	char *text = malloc(len + 100);

	assert_non_null(text);
	add_words_of_a_page();
	add(1, "the kettle is in the cellar");
	strcpy(text, "Where is the kettle? Here is what I have.\n");
	query.text = (struct text) {text, strlen(text) + len};
	memcpy(text + strlen(text), pasted, len);
	assert_int_equal(first_without(0, NULL), 1);
	free(text);
	free(pasted);
}

/* The question's own date counts, not those of the pages before it. */
TEST(a_long_prompt_may_end_with_a_date)
{
	size_t len;
	char *text = page(10000, &len);

	add_at(1, "we had a picnic", at(2021, 5, 7));
	add_at(2, "we had a picnic", at(2023, 6, 1));
	memcpy(text, "in 2023 in 2023 ", 16);
	len += (size_t)sprintf(text + len, "What about the picnic in May 2021?");
	query.text = (struct text) {text, len};
	assert_int_equal(first_without(0, NULL), 1);
	free(text);
}

TEST(a_megabyte_of_words_is_no_problem)
{
	size_t n = 0;
	char *text = malloc(1100000);

	assert_non_null(text);
	add_words_of_a_page();
	for (size_t i = 0; n < 1000000; i++)
		n += (size_t)sprintf(text + n, i % 3 ? "word%zu " : "unheard%zu ", i);
	query.text = (struct text) {text, n};
	assert_int_not_equal(first_without(0, NULL), 0);
	free(text);
}

TEST(the_last_of_a_hundred_thousand_words_is_found)
{
	size_t n = 0;
	char *text = malloc(1100000);

	assert_non_null(text);
	for (size_t i = 0; i < 100000; i++)
		n += (size_t)sprintf(text + n, "w%zu ", i);
	strcpy(text + n, "kettle");
	add(1, text);
	add(2, "nothing of that kind");
	assert_int_equal(first("kettle"), 1);
	assert_int_equal(first("w99999"), 1);
	free(text);
}

/* Step 3: BM25, over what this user has. */
TEST(rare_words_weigh_more)
{
	for (uint64_t key = 1; key <= 20; key++)
		add(key, "dinner with friends");
	add(21, "an oboe with a crack");
	assert_int_equal(first("dinner oboe"), 21);
}

TEST(repeating_a_word_soon_stops_counting)
{
	add(1, "kettle kettle kettle kettle kettle kettle");
	add(2, "the kettle and the lamp stand there");
	for (uint64_t key = 3; key < 9; key++)
		add(key, "one thing or another");
	assert_int_equal(first("kettle lamp"), 2);
}

TEST(short_texts_are_preferred_a_little)
{
	add(1, "the kettle that my aunt from Bergen gave to us when we moved house was stolen by a "
	       "man who said that he had come to read the meter in the hall");
	add(2, "the kettle was stolen");
	assert_int_equal(first("kettle"), 2);
	/* But not so much that they win with fewer words. */
	assert_int_equal(first("kettle meter"), 1);
}

/* Alice is everywhere in one user's memories: there her name says little. */
TEST(statistics_are_those_of_the_indexes_asked)
{
	struct search_index *other = search_index_new(NULL);
	const struct search_index *both[] = {ix, other};
	struct search_index *mine = ix;

	for (uint64_t key = 1; key <= 30; key++)
		add(key, "alice was here");
	add(31, "the teapot came from york");
	query.text = text_of("alice teapot");
	assert_int_equal(first("alice teapot"), 31);
	ix = other;
	for (uint64_t key = 100; key < 400; key++)
		add(key, "a teapot on the shelf");
	ix = mine;
	assert_int_equal(search_run(scratch, both, 2, &query, hits, HITS, &n_hits), 0);
	assert_int_not_equal(hits[0].key, 31);
	/* Alone, it is as it was. */
	assert_int_equal(first("alice teapot"), 31);
	search_index_free(other);
}

TEST(several_indexes_answer_as_one)
{
	struct search_index *mine = ix;
	struct search_index *common = search_index_new(NULL);
	const struct search_index *both[] = {mine, common};

	add(1, "the red kettle");
	ix = common;
	add(1, "the red kettle and the lamp");
	add(2, "a green lamp");
	ix = mine;
	query.text = text_of("kettle lamp");
	assert_int_equal(search_run(scratch, both, 2, &query, hits, HITS, &n_hits), 0);
	assert_int_equal(n_hits, 3);
	assert_int_equal(hits[0].key, 1);
	assert_int_equal(hits[0].index, 1);
	assert_int_equal(search_run(scratch, both, 0, &query, hits, HITS, &n_hits), 0);
	assert_int_equal(n_hits, 0);
	search_index_free(common);
}

/* Step 4: context. */
TEST(neighbours_count_for_a_memory)
{
	add_said(1, "the ferry to Bornholm leaves at nine", 1);
	add_said(2, "better take the bicycles along, even if that costs us a little more", 1);
	for (uint64_t key = 10; key < 20; key++)
		add_said(key, "some bicycles stood about in that street", key);
	assert_int_equal(first("bicycles on the ferry to Bornholm"), 1);
	assert_int_equal(hits[1].key, 2);
	first_without(SEARCH_NO_CONTEXT, "bicycles on the ferry to Bornholm");
	assert_int_not_equal(hits[1].key, 2);
}

TEST(context_reaches_three_on_both_sides_within_the_chat)
{
	for (uint64_t key = 1; key <= 9; key++)
		add_said(key, key == 5 ? "the oboe is broken" : "just some talk of ours", 1);
	add_said(20, "just some talk of theirs", 2);
	assert_int_equal(first("oboe"), 5);
	assert_int_equal(n_hits, 7);
	assert_true(found(2) && found(8));
	assert_false(found(1) || found(9) || found(20));
}

TEST(what_has_no_chat_has_no_neighbours)
{
	add(1, "the oboe is broken");
	add(2, "just some talk");
	first("oboe");
	assert_int_equal(n_hits, 1);
}

/* Step 5: the best, looked at closely. */
TEST(a_subject_named_lifts_what_is_about_it)
{
	const char *question = "What does Alice drink?";

	add_about(1, "drinks green tea, gallons of it", "Alice Martin");
	add_about(2, "drinks green tea, buckets of it", "Bob");
	add_about(3, "drinks coffee", "Carl");
	assert_int_equal(first(question), 1);
	assert_int_not_equal(first_without(SEARCH_NO_SUBJECTS, question), 1);
}

/* Her name in another's text would otherwise weigh more than what is asked. */
TEST(a_subjects_name_is_no_content_word)
{
	const char *question = "Which bicycle did Alice buy?";

	add_about(1, "bought a red bicycle in May", "Alice");
	add_about(2, "Alice, Alice, where are you, Alice?", "Bob");
	for (uint64_t key = 3; key < 20; key++)
		add_about(key, "bought another bicycle, which makes seven", "Carl");
	assert_int_equal(first(question), 1);
	assert_int_equal(first_without(SEARCH_NO_SUBJECTS, question), 2);
}

TEST(a_name_alone_finds_what_is_about_it)
{
	add_about(1, "likes green tea", "Alice");
	add_about(2, "met Alice at the station", "Bob");
	add_about(3, "likes coffee", "Carl");
	first("alice");
	assert_int_equal(n_hits, 2);
	assert_true(found(1) && found(2));
	first("What about Alice?");
	assert_int_equal(n_hits, 2);
}

/* A memory is not harder to find because somebody said whom it is about. */
TEST(what_is_about_a_name_is_found_whatever_is_asked_of_it)
{
	add_about(1, "Anna prefers tea", "Anna");
	add_about(2, "likes the sea", "Anna");
	add_about(3, "prefers coffee", "Bob");
	assert_int_equal(first("what does anna eat"), 1);
	assert_true(found(2) && !found(3));
	/* Coffee is a drink, whoever likes it. */
	assert_int_equal(first("what does anna drink"), 1);
	assert_true(found(2) && found(3));
	assert_int_equal(first("tell me about Anna"), 1);
	assert_true(found(2) && !found(3));
	first("Do you know where Anna lives?");
	assert_true(found(1) && found(2) && !found(3));
}

/* Others have the word that was asked for, and more of them than are wanted. */
TEST(a_name_is_not_buried_by_the_words_of_others)
{
	add_about(1, "prefers tea", "Anna");
	for (uint64_t key = 2; key < 40; key++)
		add_about(key, "told us over a drink what he has to do this week", "Bob");
	assert_int_equal(first("tell me about Anna"), 1);
	first("what does anna drink");
	n_hits = n_hits < 10 ? n_hits : 10;
	assert_true(found(1));
}

/* Somebody is called Day; that makes no other day a name. */
TEST(a_word_that_is_somebodys_name_stays_a_word)
{
	add_about(1, "plays the violin on Sundays", "Bob Day");
	for (uint64_t key = 2; key < 20; key++)
		add(key, "this day was about the garden");
	assert_int_not_equal(first("garden day"), 1);
	assert_true(found(1));
	assert_int_equal(first("What does Bob play?"), 1);
}

TEST(a_question_may_be_framed)
{
	add(1, "the boiler is serviced in October");
	add(2, "Bob told me that he knows nobody");
	assert_int_equal(first("tell me about the boiler"), 1);
	assert_false(found(2));
	assert_int_equal(first("what do you know about the boiler?"), 1);
	assert_false(found(2));
	assert_int_equal(first("whom did Bob tell?"), 2);
	assert_int_equal(first("who knows"), 2);
	assert_int_equal(first("tell me"), 2);
}

TEST(a_name_that_is_a_common_word_needs_its_capital)
{
	add_about(1, "plays chess", "Will");
	add_about(2, "plays chess well", "Bob");
	assert_int_equal(first("Does Will play chess?"), 1);
	assert_int_equal(first("who will play chess well?"), 2);
}

TEST(when_lifts_what_speaks_of_time)
{
	static const char *const asking[] = {"When is the concert?", "how long is the concert",
					     "What year was the concert in?"};

	add_at(1, "the concert is on the very first Tuesday in spring", NOW - 90 * DAY);
	add_at(2, "the concert is in the old hall near our station", NOW - 90 * DAY + 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(first(asking[i]), 1);
		assert_int_equal(first_without(SEARCH_NO_TIME_WORDS, asking[i]), 2);
	}
	assert_int_equal(first("Where is the concert?"), 2);
}

TEST(an_answer_inherits_from_its_question)
{
	const char *question = "What kind of cheese does Grandpa like?";

	/* A statement and a question with the same words; what follows differs in nothing else. */
	add_said(1, "Tell me whether Grandpa likes cheese.", 1);
	add_said(2, "Only the one with holes.", 1);
	add_said(11, "Do you know whether Grandpa likes cheese?", 2);
	add_said(12, "Only the one with holes.", 2);
	first(question);
	assert_true(similarity_of(12) > similarity_of(2) * 1.2f);
	first_without(SEARCH_NO_ANSWERS, question);
	assert_true(similarity_of(12) < similarity_of(2) * 1.01f);
}

/* Step 6: repair. */
TEST(a_typo_is_mended)
{
	static const char *const typos[] = {"restuarant", "restarant", "restaurrant", "restourant",
					    "Resteurants"};

	add(1, "the restaurants by the harbour");
	add(2, "nothing of that kind");
	for (size_t i = 0; i < sizeof(typos) / sizeof(typos[0]); i++) {
		assert_int_equal(first(typos[i]), 1);
		assert_int_equal(first_without(SEARCH_NO_REPAIR, typos[i]), 0);
	}
	add(3, "мы были в библиотеке вчера");
	assert_int_equal(first("библиотеке"), 3);
	assert_int_equal(first("библотеке"), 3);
}

TEST(known_and_short_words_are_left_alone)
{
	add(1, "a house on the hill");
	add(2, "a mouse in the wall");
	add(3, "tea");
	first("mouse");
	assert_int_equal(n_hits, 1);
	assert_int_equal(first("pea"), 0);
	assert_int_equal(first("1999"), 0);
	/* A word of the language, if not of these memories. */
	add(4, "near");
	assert_int_equal(first("year"), 0);
	assert_int_equal(first("zzzzzz"), 0);
}

/* Step 7: priors and filters. */
TEST(importance_and_recency_decide_between_equals)
{
	add_doc((struct search_doc) {.key = 1, .time_ms = NOW - 9 * DAY, .importance = 0.9f},
		"the red kettle");
	add_doc((struct search_doc) {.key = 2, .time_ms = NOW - 9 * DAY, .importance = 0.1f},
		"the red kettle");
	assert_int_equal(first("kettle"), 1);
	assert_true(hits[0].similarity > hits[1].similarity);
	first_without(SEARCH_NO_PRIORS, "kettle");
	assert_true(hits[0].similarity == hits[1].similarity);
	search_index_remove(ix, 1);
	add_doc((struct search_doc) {.key = 3, .time_ms = NOW - 900 * DAY, .importance = 0.1f},
		"the red kettle");
	assert_int_equal(first("kettle"), 2);
	assert_true(hits[0].similarity > hits[1].similarity);
}

TEST(priors_stay_small)
{
	add_doc((struct search_doc) {.key = 1, .time_ms = NOW, .importance = 1}, "the red kettle");
	add_doc((struct search_doc) {.key = 2, .time_ms = 0, .importance = 0},
		"the red old kettle");
	add(3, "some other thing that is red");
	assert_int_equal(first("old red kettle"), 2);
}

TEST(filters_apply_before_the_limit)
{
	const struct search_index *one = ix;

	for (uint64_t key = 1; key <= 500; key++)
		add_doc((struct search_doc) {.key = key,
					     .category = 1,
					     .chat = 7,
					     .time_ms = NOW - DAY,
					     .expires_ms = NOW},
			"kettle");
	add_doc((struct search_doc) {.key = 900, .category = 2, .chat = 8, .time_ms = 5000},
		"an old kettle with a very long story that ranks it last of all of them by far");
	query.text = text_of("kettle");
	assert_int_equal(search_run(scratch, &one, 1, &query, hits, 1, &n_hits), 0);
	assert_int_equal(n_hits, 1);
	assert_int_equal(hits[0].key, 900);
	query.include_expired = true;
	assert_int_not_equal(first("kettle"), 900);
	query.categories = 1 << 2;
	assert_int_equal(first("kettle"), 900);
	assert_int_equal(n_hits, 1);
	query.categories = 1 << 2 | 1 << 1;
	assert_int_not_equal(first("kettle"), 900);
	query.categories = 0;
	query.chat = 8;
	assert_int_equal(first("kettle"), 900);
	assert_int_equal(n_hits, 1);
	query.chat = 99;
	assert_int_equal(first("kettle"), 0);
	query.chat = 0;
	query.to_ms = 5001;
	assert_int_equal(first("kettle"), 900);
	assert_int_equal(n_hits, 1);
	query.to_ms = 5000;
	assert_int_equal(first("kettle"), 0);
}

static bool accept_odd(void *arg, uint64_t key)
{
	++*(size_t *)arg;
	return key % 2;
}

TEST(the_caller_has_the_last_word)
{
	size_t asked = 0;

	for (uint64_t key = 1; key <= 10; key++)
		add_said(key, "kettle", 1);
	query.accept = accept_odd;
	query.arg = &asked;
	first("kettle");
	assert_int_equal(n_hits, 5);
	assert_true(asked >= 10);
	assert_false(found(2));
}

TEST(expiry_is_to_the_millisecond)
{
	add_doc((struct search_doc) {.key = 1, .expires_ms = NOW}, "kettle");
	add_doc((struct search_doc) {.key = 2, .expires_ms = NOW + 1}, "kettle");
	assert_int_equal(first("kettle"), 2);
	assert_int_equal(n_hits, 1);
}

/* What an answer is. */
TEST(equals_come_newest_first_then_by_key)
{
	add_at(5, "kettle", 1000);
	add_at(3, "kettle", 1000);
	add_at(4, "kettle", 2000);
	add_at(9, "kettle", 500);
	first_without(SEARCH_NO_PRIORS, "kettle");
	assert_int_equal(n_hits, 4);
	assert_int_equal(hits[0].key, 4);
	assert_int_equal(hits[1].key, 3);
	assert_int_equal(hits[2].key, 5);
	assert_int_equal(hits[3].key, 9);
}

TEST(of_many_equals_the_newest_are_kept)
{
	for (uint64_t key = 1; key <= 3000; key++)
		add_at(key, "kettle", (int64_t)(key * 7919 % 3000));
	query.text = text_of("kettle");
	assert_int_not_equal(first_without(SEARCH_NO_PRIORS, "kettle"), 0);
	for (size_t i = 0; i < 500; i++)
		assert_int_equal(hits[i].key * 7919 % 3000, 2999 - i);
}

TEST(similarity_is_between_0_and_1)
{
	char text[64];

	for (uint64_t key = 1; key <= 300; key++) {
		snprintf(text, sizeof(text), "kettle number %u and lamp %u", (unsigned)key,
			 (unsigned)key % 7);
		add_said(key, text, key % 3);
	}
	first("kettle lamp 5 number 33");
	assert_true(n_hits > 200);
	for (size_t i = 0; i < n_hits; i++) {
		assert_true(hits[i].similarity > 0 && hits[i].similarity <= 1);
		assert_true(i == 0 || hits[i].similarity <= hits[i - 1].similarity);
	}
}

TEST(the_same_question_has_the_same_answer)
{
	static struct search_hit before[HITS];
	size_t n_before;

	for (uint64_t key = 1; key <= 200; key++)
		add_said(key, key % 3 ? "a kettle" : "two lamps and one kettle", key % 5);
	first("kettle and lamp");
	memcpy(before, hits, sizeof(hits));
	n_before = n_hits;
	first("an unrelated lamp");
	first("kettle and lamp");
	assert_int_equal(n_hits, n_before);
	for (size_t i = 0; i < n_hits; i++) {
		assert_int_equal(hits[i].key, before[i].key);
		assert_true(hits[i].similarity == before[i].similarity);
	}
}

/* Long lists of common words only raise what rarer words have found: the order stays. */
TEST(long_lists_change_nothing_at_the_top)
{
	char text[64];

	for (uint64_t key = 1; key <= 20000; key++) {
		snprintf(text, sizeof(text), "%s %s", key % 2 ? "garden" : "street",
			 key % 40 == 0 ? "oboe" : "drum");
		add_at(key, text, (int64_t)key);
	}
	add_at(30000, "oboe garden", 5);
	assert_int_equal(first("oboe garden"), 30000);
	assert_int_equal(hits[1].key, 20000);
}

TEST(other_scripts_are_found)
{
	add(1, "我喜欢在西湖边喝龙井茶");
	add(2, "彼は東京でラーメンを食べた");
	add(3, "ฉันชอบกินส้มตำ");
	add(4, "שלום עולם");
	add(5, "party 🎉 at Zoe\xcc\x88's");
	assert_int_equal(first("龙井茶"), 1);
	assert_int_equal(first("茶"), 1);
	assert_int_equal(first("ラーメン"), 2);
	assert_int_equal(first("ส้มตำ"), 3);
	assert_int_equal(first("עולם"), 4);
	assert_int_equal(first("🎉"), 5);
	assert_int_equal(first("zoë"), 5);
}

TEST(other_languages_are_found)
{
	for (uint64_t key = 100; key < 150; key++)
		add(key, "some other garden, quite far away, belongs to people from the town");
	add(1, "Meine Krankenversicherungskarte liegt in der Schublade");
	add(2, "Wir waren gestern bei den Häusern am See");
	add(3, "Elle a oublié son chapeau au musée");
	add(4, "Nos operaron a la perra en la clínica");
	add(5, "Вчера мы говорили с врачом");
	add(6, "Bu yaz İstanbul'da kaldık, çok güzeldi");
	add(7, "ذهبنا إلى المدرسة صباحا");
	add(8, "我家的猫叫豆腐");
	add(9, "ﾗｰﾒﾝを食べた");
	assert_int_equal(first("Wo ist die Versicherung?"), 1);
	assert_int_equal(first("Wo ist meine Versicherungskarte?"), 1);
	assert_int_equal(first("Versicherung"), 1);
	assert_int_equal(first("das Haus"), 2);
	assert_int_equal(first("Haus"), 2);
	assert_int_equal(first("Où sont les chapeaux oubliés ?"), 3);
	assert_int_equal(first("musee"), 3);
	assert_int_equal(first("¿Cuándo la operación?"), 4);
	assert_int_equal(first("врач"), 5);
	assert_int_equal(first("врачами"), 5);
	assert_int_equal(first("istanbul"), 6);
	assert_int_equal(first("مدرسة"), 7);
	assert_int_equal(first("猫的名字"), 8);
	assert_int_equal(first("ラーメン"), 9);
}

/* Where most memories are German, what says nothing of its language is German too. */
TEST(the_language_of_the_others_is_assumed)
{
	for (uint64_t key = 100; key < 110; key++)
		add(key, "Der Garten ist nicht weit von der Stadt, und wir sind oft da");
	add(1, "Zahnarzttermine Montag");
	add(2, "Versicherung");
	assert_int_equal(first("Termin"), 1);
	assert_int_equal(first("Versicherungskarte"), 2);
}

TEST(an_english_word_in_another_language_is_found)
{
	for (uint64_t key = 100; key < 150; key++)
		add(key, "some other garden, quite far away, belongs to people from the town");
	add(1, "Der Server steht bei uns im Keller und ist sehr laut");
	assert_int_equal(first("where is the server"), 1);
	assert_int_equal(first("servers"), 1);
}

TEST(names_in_code_are_found)
{
	add(1, "the fault is in parseHttpRequest, not where we looked");
	add(2, "set max_rise_mm before the start of everything");
	add(3, "see src/search/words.c for it, and the rest");
	add(4, "my e-mail is unread since the start");
	for (uint64_t key = 10; key < 30; key++)
		add(key, "some other thing that is red, or c, or in a start");
	assert_int_equal(first("http request"), 1);
	assert_int_equal(first("parse_http_request"), 1);
	assert_int_equal(first("parsehttprequest"), 1);
	assert_int_equal(first("maxRiseMm"), 2);
	assert_int_equal(first("max rise"), 2);
	assert_int_equal(first("words.c"), 3);
	assert_int_equal(first("email"), 4);
}

/* The set of our own: see bench/search_quality.c for the figures. */
static struct value *read_set(struct arena *arena, const char *name)
{
	const char *folder = getenv("KOINE_SEARCH_SET");
	struct value *v = NULL;
	char path[4096];
	char *text = arena_alloc(arena, 1 << 20);
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", folder ? folder : "test/search", name);
	file = fopen(path, "r");
	assert_non_null(file);
	len = fread(text, 1, 1 << 20, file);
	fclose(file);
	assert_int_equal(json_read(arena, text, len, &json_default_limits, &v, NULL), 0);
	return v;
}

static int64_t read_time(struct text t)
{
	struct tm tm = {0};

	assert_non_null(strptime(t.data, "%Y-%m-%dT%H:%M:%S", &tm));
	return (int64_t)timegm(&tm) * 1000;
}

static void add_set(const struct value *memories)
{
	value_each (m, memories) {
		struct text subject = value_text(value_find(m, "subjects")->first);
		struct search_doc doc = {.text = value_text(value_find(m, "text")),
					 .chat = search_hash(value_text(value_find(m, "chat"))),
					 .time_ms = read_time(value_text(value_find(m, "time"))),
					 .subjects = &subject,
					 .n_subjects = 1,
					 .importance = 0.5f};
		int64_t key;

		assert_true(value_int(value_find(m, "key"), &key));
		doc.key = (uint64_t)key;
		assert_int_equal(search_index_add(ix, scratch, &doc), 0);
	}
}

static double recall_at_10(const struct value *questions, unsigned off)
{
	double sum = 0;

	value_each (q, questions) {
		const struct value *evidence = value_find(q, "evidence");

		query.text = value_text(value_find(q, "question"));
		first_without(off, NULL);
		n_hits = n_hits < 10 ? n_hits : 10;
		value_each (e, evidence) {
			int64_t key;

			assert_true(value_int(e, &key));
			sum += found((uint64_t)key) / (double)evidence->len;
		}
	}
	return sum / questions->len;
}

TEST(our_own_questions_are_answered)
{
	struct arena arena;
	struct value *memories;
	struct value *questions;

	arena_init(&arena, 64 << 20);
	memories = read_set(&arena, "memories.json");
	questions = read_set(&arena, "questions.json");
	assert_true(memories->len >= 300 && questions->len >= 60);
	add_set(memories);
	assert_true(recall_at_10(questions, 0) > 0.78);
	assert_true(recall_at_10(questions, SEARCH_NO_CONTEXT | SEARCH_NO_SUBJECTS |
						    SEARCH_NO_SYNONYMS) < 0.65);
	arena_done(&arena);
}
