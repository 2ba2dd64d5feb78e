/*
 * What is added to a memory's words: each step decides a test here, which asks again without
 * the step. See test_query.c for the words themselves.
 */

#include "check.h"

#include "search/query.h"

enum { HITS = 100, KEYS = 4096 };

static const int64_t DAY = 86400000;
static const int64_t NOW = 1704456000000; /* 5 January 2024, a Friday, noon */

static struct search_scratch *scratch;
static struct search_index *ix;
static struct search_hit hits[HITS];
static size_t n_hits;
static struct search_said said_of[KEYS];

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

/* In a chat of its own number (0: none), at a time, by somebody (NULL: nobody). */
static void add(uint64_t key, uint64_t chat, int64_t time_ms, const char *who, const char *text)
{
	struct text name = text_of(who ? who : "");
	const struct search_doc doc = {
		.key = key,
		.chat = chat,
		.time_ms = time_ms,
		.subjects = &name,
		.n_subjects = who ? 1 : 0,
		.text = text_of(text),
		.importance = 0.5f,
	};

	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
	if (key < KEYS)
		said_of[key] = (struct search_said) {doc.text, time_ms};
}

/* As the engine does, which has the texts. */
static void settle(const struct search_query *query)
{
	struct search_said said[HITS];
	size_t from[HITS];

	for (size_t i = 0; i < n_hits; i++)
		said[i] = said_of[hits[i].key % KEYS];
	search_settle(scratch, query, hits, said, n_hits, from);
}

/* A minute after the one before. */
static void say(uint64_t key, uint64_t chat, const char *who, const char *text)
{
	add(key, chat, NOW - 100 * DAY + (int64_t)key * 60000, who, text);
}

static void note(uint64_t key, const char *text)
{
	add(key, 0, NOW - 100 * DAY, NULL, text);
}

/* Others, so that words have something to be rare in. */
static void add_others(void)
{
	for (uint64_t key = 1000; key < 1030; key++)
		note(key, "some other talk about nothing much");
}

static uint64_t first_without(unsigned off, const char *question)
{
	const struct search_index *one = ix;
	struct search_tuning tuning = search_default_tuning;
	const struct search_query query = {
		.text = text_of(question), .now_ms = NOW, .tuning = &tuning};

	tuning.off = off;
	assert_int_equal(search_run(scratch, &one, 1, &query, hits, HITS, &n_hits), 0);
	settle(&query);
	return n_hits ? hits[0].key : 0;
}

static uint64_t first(const char *question)
{
	return first_without(0, question);
}

/* 0 unless it was found. */
static float similarity_of(uint64_t key)
{
	for (size_t i = 0; i < n_hits; i++) {
		if (hits[i].key == key)
			return hits[i].similarity;
	}
	return 0;
}

/* The first is found first, and the second without the step; they differ in nothing else. */
static void assert_step(unsigned off, const char *question, uint64_t right, uint64_t otherwise)
{
	assert_int_equal(first(question), right);
	assert_int_equal(first_without(off, question), otherwise);
}

/* Neighbours. */
TEST(what_a_memory_says_itself_is_not_counted_again)
{
	add_others();
	for (uint64_t key = 1; key <= 7; key++)
		say(key, 1, NULL, "the oboe is broken");
	say(11, 2, NULL, "just some talk of ours");
	say(12, 2, NULL, "the oboe is broken");
	first("oboe");
	assert_true(similarity_of(4) > 0 && similarity_of(4) < similarity_of(12) * 1.01f);
}

TEST(a_memory_is_credited_with_words_that_it_lacks)
{
	add_others();
	say(1, 1, NULL, "we saw the lighthouse from the train");
	say(2, 1, NULL, "afterwards the picnic was cut short by the rain");
	say(11, 2, NULL, "nothing special there");
	say(12, 2, NULL, "the picnic was cut short by rain");
	assert_step(SEARCH_NO_CONTEXT, "picnic near the lighthouse in the rain", 2, 12);
}

/* Six neighbours are not worth more than the word itself. */
TEST(neighbours_give_less_than_the_word)
{
	add_others();
	for (uint64_t key = 1; key <= 7; key++)
		say(key, 1, NULL, key == 4 ? "that was quite a noise" : "oboe");
	note(20, "the oboe is an instrument that needs a great deal of care and a lot of patience");
	first("oboe");
	assert_true(similarity_of(4) > 0 && similarity_of(4) < similarity_of(20));
}

TEST(neighbours_of_another_day_count_less)
{
	add_others();
	say(1, 1, NULL, "the oboe is broken");
	say(2, 1, NULL, "that was quite a noise");
	add(11, 2, NOW - 90 * DAY, NULL, "the oboe is broken");
	add(12, 2, NOW - 80 * DAY, NULL, "that was quite a noise");
	first("oboe");
	assert_true(similarity_of(12) > 0 && similarity_of(12) < similarity_of(2) * 0.9f);
}

/* Names and dates. */
TEST(a_name_and_the_context_outweigh_the_word)
{
	add_others();
	say(1, 1, "Bob", "the oboe is in the attic");
	say(2, 1, "Anna", "what a pity, it sounded so warm");
	assert_step(SEARCH_NO_SUBJECTS, "What does Anna think of the oboe?", 2, 1);
}

/* Anna's memories are too many to be scored for her name alone. */
TEST(a_frequent_name_counts_for_neighbours)
{
	for (uint64_t key = 1000; key < 9000; key++)
		add(key, 0, NOW - 900 * DAY, "Anna", "some other talk about nothing much");
	for (uint64_t key = 1; key < 500; key++)
		say(key, key, "Bob", "the oboe is in the attic");
	say(500, 500, "Bob", "an oboe broke");
	say(501, 500, "Anna", "what a pity, it sounded so warm");
	assert_step(SEARCH_NO_SUBJECTS, "What does Anna think of the oboe?", 501, 500);
}

TEST(a_day_and_the_context_outweigh_the_word)
{
	add_others();
	add(1, 1, NOW - 300 * DAY, NULL, "the oboe is broken");
	add(11, 2, NOW - 1 * DAY, NULL, "the oboe again");
	add(12, 2, NOW - 1 * DAY + 60000, NULL, "she played for hours");
	first("what about the oboe yesterday");
	assert_true(similarity_of(12) > similarity_of(1));
	first_without(SEARCH_NO_DATES, "what about the oboe yesterday");
	assert_true(similarity_of(12) < similarity_of(1));
}

/* All have the word; by it alone, only the newest would be examined. */
TEST(a_day_is_found_among_thousands)
{
	for (uint64_t key = 1; key <= 3000; key++)
		add(key, 0, NOW - (int64_t)key * DAY, NULL, "coffee with the others");
	assert_int_equal(first("coffee on 2021-07-09"), 910);
	assert_int_equal(first("coffee on 9 July 2021"), 910);
	assert_int_equal(first_without(SEARCH_NO_DATES, "coffee on 2021-07-09"), 1);
}

TEST(a_day_is_found_whatever_was_said)
{
	add_others();
	add(1, 0, NOW - 3 * DAY, NULL, "pasta with Tom");
	note(2, "let us eat out");
	first("What did we eat on 2024-01-02?");
	assert_true(similarity_of(1) > 0 && similarity_of(2) > 0);
	first("What did we eat?");
	assert_true(similarity_of(1) == 0);
}

/* The newer of two. */
/* A date at the very start leaves the words after it as they are. */
TEST(a_question_may_begin_with_a_month)
{
	add_others();
	note(1, "the invoice of the plumber came");
	assert_int_equal(first("June invoice"), 1);
	assert_int_equal(first("Summer 2022 invoice"), 1);
	assert_int_equal(first("Invoice, June"), 1);
	note(2, "she is born in June");
	assert_int_equal(first("June"), 2);
}

TEST(of_two_that_say_the_same_the_newer_comes_first)
{
	add_others();
	add(1, 0, NOW - 700 * DAY, "Anna", "Anna moved to Oslo");
	add(2, 0, NOW - 400 * DAY, "Anna", "by now Anna moved to Bergen");
	assert_step(SEARCH_NO_NEWER, "Where did Anna move?", 2, 1);
	assert_true(hits[0].similarity >= hits[1].similarity);
	assert_step(SEARCH_NO_NEWER, "Where does Anna live?", 2, 1);
	/* But not if the older says more of what was asked. */
	add(3, 0, NOW - 900 * DAY, "Anna", "Anna moved away by train");
	assert_int_equal(first("Did Anna move by train?"), 3);
	/* Or if they are about others. */
	add(4, 0, NOW - 300 * DAY, "Bob", "Anna moved to Bergen now");
	assert_int_equal(first("Where did Anna move?"), 2);
}

/* With vectors the newer is put first by its words alone; what vectors then put first stays first,
 * unless another is a closer match. */
TEST(vectors_may_outweigh_the_newer)
{
	const struct search_index *one = ix;
	struct search_query query = {
		.text = text_of("Where did Anna move?"), .now_ms = NOW, .newer_first = true};
	struct search_hit was;

	add_others();
	add(1, 0, NOW - 700 * DAY, "Anna", "Anna moved to Oslo");
	add(2, 0, NOW - 400 * DAY, "Anna", "by now Anna moved to Bergen");
	assert_int_equal(search_run(scratch, &one, 1, &query, hits, HITS, &n_hits), 0);
	assert_int_equal(hits[0].key, 2);
	assert_true(hits[0].similarity >= hits[1].similarity);
	was = hits[0];
	hits[0].key = hits[1].key;
	hits[1].key = was.key;
	settle(&query);
	assert_int_equal(hits[0].key, 1);
	query.newer_first = false;
	settle(&query);
	assert_int_equal(hits[0].key, 2);
	query.text = text_of("Anna moved to Oslo");
	query.newer_first = true;
	settle(&query);
	assert_int_equal(hits[0].key, 1);
}

/* Closer matches. */
struct pair {
	const char *question;
	const char *right;
	const char *wrong;
};

/* Whichever was stored first, the newer one or the older one, `right` is found first. */
static void check_pair(const struct pair *pair, bool right_is_newer, bool right_is_last)
{
	int64_t old = NOW - 10 * DAY, new = NOW - DAY;
	uint64_t right = right_is_last ? 2 : 1;

	setup(NULL);
	add_others();
	for (uint64_t key = 1; key <= 2; key++)
		add(key, 0, (key == right) == right_is_newer ? new : old, NULL,
		    key == right ? pair->right : pair->wrong);
	if (first(pair->question) != right)
		fail_msg("'%s' found '%s' first", pair->question, pair->wrong);
	teardown(NULL);
}

TEST(closer_match_is_first_in_either_order)
{
	static const struct pair pairs[] = {
		{"zebraX from cli", "zebraX from cli", "zebraX group cli"},
		{"Bob is allowed in", "Bob is allowed in", "Bob is not allowed in"},
		{"Bob is not allowed in", "Bob is not allowed in", "Bob is allowed in"},
		{"Is Bob allowed in?", "Bob is allowed in", "Bob is not allowed in"},
		{"the cache may be shared by both", "the cache may be shared by both hosts",
		 "the cache may never be shared by both hosts"},
		{"Ann can't swim", "Ann can't swim", "Ann can swim"},
		{"der Server darf nicht neu starten", "der Server darf nicht neu starten",
		 "der Server darf jetzt neu starten"},
		{"Нина не пьёт кофе", "Нина не пьёт кофе", "Нина пьёт кофе"},
		{"retry 3 times after 30 seconds", "retry 3 times after 30 seconds",
		 "retry 30 times after 3 seconds"},
		{"raise the limit from 8 to 16", "raise the limit from 8 to 16",
		 "raise the limit from 16 to 8"},
		{"Alice owes Bob lunch", "Alice owes Bob lunch", "Bob owes Alice lunch"},
		{"Mallory reports to Trent", "Mallory now reports to Trent",
		 "Trent now reports to Mallory"},
		{"backup to the attic", "copy the backup to the attic",
		 "copy the backup from an attic"},
	};

	teardown(NULL);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		for (unsigned way = 0; way < 4; way++)
			check_pair(&pairs[i], way & 1, way & 2);
	}
	setup(NULL);
}

/* The first of two is asked for, then the second. */
TEST(verbatim_match_of_any_kind_is_first)
{
	static const char *const pairs[][2] = {
		{"the west gate is locked at night", "the west gate is not locked at night"},
		{"Carla never signs on Mondays", "Carla signs on Mondays"},
		{"nobody may restart the proxy", "somebody may restart the proxy"},
		{"Do not merge without review", "Do merge without review"},
		{"Will is allowed to deploy", "Will is not allowed to deploy"},
		{"Can Tim enter the lab?", "Can't Tim enter the lab?"},
		{"Is the vault open", "Isn't the vault open"},
		{"tests run without a network", "tests run with a network"},
		{"Ann writes C", "Ann writes C++"},
		{"Ann writes C#", "Ann writes C"},
		{"the freezer is at -18", "the freezer is at 18"},
		{"keep 5 of 7 backups", "keep 7 of 5 backups"},
		{"port 8080 forwards to port 80", "port 80 forwards to port 8080"},
		{"alpha < beta", "alpha > beta"},
		{"the build needs gcc 12.10", "the build needs gcc 12.1"},
		{"version 2.0.1 breaks login", "version 2.1.0 breaks login"},
		{"Priya manages Jonas", "Jonas manages Priya"},
		{"Lena called Ivo for Max", "Lena called Max for Ivo"},
		{"visit the US office", "visit the us office"},
		{"mail goes from Lyon to Turin", "mail goes to Lyon from Turin"},
		{"it is up", "it is not up"},
		{"not now", "now"},
		{"Der Schalter ist nicht an", "Der Schalter ist an"},
		{"le serveur n'est pas prêt", "le serveur est prêt"},
		{"他不喝茶", "他喝茶"},
	};

	teardown(NULL);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		for (unsigned way = 0; way < 8; way++) {
			const char *right = pairs[i][way >> 2], *wrong = pairs[i][!(way >> 2)];

			check_pair(&(struct pair) {right, right, wrong}, way & 1, way & 2);
		}
	}
	setup(NULL);
}

TEST(verbatim_match_of_many_words_is_first)
{
	static const struct {
		const char *some; /* repeated */
		unsigned n;
	} lengths[] = {{"the red lamp is on and ", 12}, {"the red lamp is on and ", 60}};
	char right[4096], wrong[4096];

	teardown(NULL);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		size_t len = 0;

		for (unsigned k = 0; k < lengths[i].n; k++)
			len += (size_t)snprintf(right + len, sizeof(right) - len, "%s",
						lengths[i].some);
		snprintf(right + len, sizeof(right) - len, "the boiler is for it");
		strcpy(wrong, right);
		memcpy(wrong + len, "the boiler is by it ", 20);
		for (unsigned way = 0; way < 4; way++)
			check_pair(&(struct pair) {right, right, wrong}, way & 1, way & 2);
	}
	setup(NULL);
}

TEST(verbatim_match_beats_importance)
{
	static const char *const texts[] = {"rotate the keys on Friday",
					    "do not rotate the keys on Friday"};

	add_others();
	for (uint64_t key = 1; key <= 2; key++) {
		const struct search_doc doc = {.key = key,
					       .text = text_of(texts[key - 1]),
					       .time_ms = NOW - DAY,
					       .importance = key == 1 ? 0 : 1};

		assert_int_equal(search_index_add(ix, scratch, &doc), 0);
		said_of[key] = (struct search_said) {doc.text, doc.time_ms};
	}
	assert_int_equal(first("rotate the keys on Friday"), 1);
}

TEST(equal_hits_keep_their_order)
{
	add_others();
	for (uint64_t key = 1; key <= 6; key++)
		note(key, "the printer is out of paper");
	first("printer paper");
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(hits[i].key, i + 1);
}

/* Words that ask. */
TEST(words_that_ask_weigh_less)
{
	add_others();
	note(1, "he has a dog from the shelter, one with three legs and a very loud voice");
	note(2, "what kind people");
	note(3, "a dog");
	note(4, "no dog");
	assert_step(SEARCH_NO_WEAK, "What kind of dog?", 3, 2);
}

TEST(common_words_weigh_less)
{
	add_others();
	add(1, 0, NOW - 101 * DAY, NULL, "they had one boat");
	add(2, 0, NOW - 100 * DAY, NULL, "they will make it");
	assert_step(SEARCH_NO_WEAK, "Did they make the boat?", 1, 2);
}

TEST(questions_tell_less)
{
	add_others();
	note(1, "is the concert in the old hall?");
	note(2, "yes the concert in the old hall");
	assert_step(SEARCH_NO_ASKING, "concert in the hall", 2, 1);
}

/* Kinds of answers. */
static void assert_kind(const char *question, const char *answer, const char *other)
{
	search_index_free(ix);
	ix = search_index_new(NULL);
	add_others();
	add(1, 0, NOW - 101 * DAY, NULL, answer);
	add(2, 0, NOW - 100 * DAY, NULL, other);
	assert_step(SEARCH_NO_KINDS, question, 1, 2);
	/* A search for the words alone does not care. */
	assert_int_equal(first("the concert"), 2);
}

TEST(an_answer_looks_like_what_is_asked_for)
{
	assert_kind("Where was the concert?", "the concert went well in Bergen",
		    "the concert went well for everybody");
	assert_kind("Who gave the concert?", "the concert was by Oskar",
		    "the concert was by amateurs");
	assert_kind("How many came to the concert?", "the concert had sixty guests",
		    "the concert had several guests");
	assert_kind("How much was the concert?", "the concert was 45 euros",
		    "the concert was some euros");
	assert_kind("What was the title of the concert?", "the concert was \"lights\"",
		    "the concert was lights");
	assert_kind("Why was the concert late?", "the concert began later because of rain",
		    "the concert began later despite of rain");
}

TEST(who_speaks_of_himself_tells_more)
{
	add_others();
	note(1, "they have a concert");
	note(2, "I have a concert");
	assert_step(SEARCH_NO_SELF, "concert", 2, 1);
}

/* Repair. */
TEST(a_mistyped_name_is_a_subject)
{
	static const char *const typos[] = {"Melanei", "Melnie", "Mellanie", "Melabie", "melanei"};
	char question[64];

	add_others();
	say(1, 1, "Melanie", "drinks green tea, gallons of it");
	say(2, 2, "Robert", "drinks green tea, buckets of it");
	say(3, 3, "Robert", "met her at the station");
	for (size_t i = 0; i < sizeof(typos) / sizeof(typos[0]); i++) {
		snprintf(question, sizeof(question), "What does %s drink?", typos[i]);
		assert_step(SEARCH_NO_REPAIR, question, 1, 2);
	}
}

TEST(three_letters_are_repaired_where_nothing_else_is_found)
{
	add_others();
	note(1, "a cat sleeps in the kitchen");
	note(2, "the kitchen needs paint");
	note(3, "the vet comes on Monday");
	say(4, 4, "Bob", "I play the tuba");
	note(5, "the bus is late");
	assert_step(SEARCH_NO_REPAIR, "cta", 1, 0);
	assert_step(SEARCH_NO_REPAIR, "the cta", 1, 0);
	assert_step(SEARCH_NO_REPAIR, "vwt", 3, 0);
	assert_step(SEARCH_NO_REPAIR, "bsu", 5, 0); /* its stem has two letters */
	assert_step(SEARCH_NO_REPAIR, "What does Bbo play?", 4, 4);
	assert_step(SEARCH_NO_REPAIR, "Bbo", 4, 0);
	first("paint cta");
	assert_true(similarity_of(2) > 0 && similarity_of(1) == 0);
	assert_int_equal(first("rat"), 0); /* another first letter */
	assert_int_equal(first("cit"), 0); /* a key that is far away */
	assert_int_equal(first("ca"), 0);
}

TEST(short_words_are_not_repaired)
{
	note(1, "the red one");
	note(2, "we got it per post");
	note(3, "a boat");
	note(4, "the pots");
	assert_int_equal(first("wedding"), 0);
	assert_int_equal(first("pets"), 0);
	assert_int_equal(first("rod"), 0);
	assert_int_equal(first("bat"), 0);
	assert_int_equal(first("posy"), 2); /* t is beside y */
	assert_int_equal(first("pist"), 2);
	assert_int_equal(first("pasy"), 0);
	assert_int_equal(first("goat"), 0); /* another first letter */
	assert_int_equal(first("baot"), 3);
	assert_int_equal(first("boatt"), 3);
	assert_int_equal(first("bota"), 3);
	assert_int_equal(first("boxt"), 0);
}

/* A letter that was exchanged is surer than one that was left out. */
TEST(the_likelier_repair_is_taken)
{
	note(1, "two casts of it");
	note(2, "two coast lines");
	assert_int_equal(first("caosts"), 2);
	assert_int_equal(n_hits, 1);
}

/* Why. */
static struct search_why whys[HITS];

static const struct search_why *why_of(uint64_t key, const char *question)
{
	const struct search_index *one = ix;
	const struct search_query query = {
		.text = text_of(question), .now_ms = NOW, .ret_error = whys};

	assert_int_equal(search_run(scratch, &one, 1, &query, hits, HITS, &n_hits), 0);
	for (size_t i = 0; i < n_hits; i++) {
		float sum = whys[i].words + whys[i].alike + whys[i].context + whys[i].names +
			    whys[i].dates + whys[i].kind;

		assert_int_equal(whys[i].key, hits[i].key);
		assert_int_equal(whys[i].index, 0);
		assert_true(sum > 0.999f && sum < 1.001f);
		assert_true(whys[i].words >= 0 && whys[i].names >= 0);
	}
	for (size_t i = 0; i < n_hits; i++) {
		if (whys[i].key == key)
			return &whys[i];
	}
	fail();
	return NULL;
}

static bool has_matched(const struct search_why *error, const char *word)
{
	for (size_t i = 0; i < error->n_matched; i++) {
		const struct text matched = {error->matched[i].word, error->matched[i].len};

		if (text_is(matched, word))
			return true;
	}
	return false;
}

TEST(a_hit_says_error)
{
	const struct search_why *error;

	add_others();
	say(1, 1, "Bob", "the oboe is in the attic");
	say(2, 1, "Anna", "what a pity, it sounded so warm");
	add(3, 0, NOW - DAY, NULL, "an oboe was 300 euros");
	error = why_of(1, "oboe");
	assert_true(error->words > 0.99f);
	assert_int_equal(error->n_matched, 1);
	assert_true(has_matched(error, "oboe"));
	error = why_of(2, "What does Anna think of the oboe?");
	assert_true(error->words == 0 && error->context > 0.1f && error->names > 0.3f);
	assert_int_equal(error->n_matched, 1);
	assert_true(has_matched(error, "anna"));
	error = why_of(3, "How much was the oboe yesterday?");
	assert_true(error->words > 0.2f && error->dates > 0.2f && error->kind > 0.01f);
	assert_true(error->names == 0 && error->context == 0 && error->alike == 0);
	why_of(3, "yesterday");
}

/* Other words. */
TEST(what_means_the_same_is_found)
{
	add_others();
	note(1, "Her occupation is baking bread");
	note(2, "She looked for something else to do");
	assert_int_equal(first("what is her job?"), 1);
	assert_true(n_hits > 0 && similarity_of(1) < 0.7f);
	assert_true(first_without(SEARCH_NO_SYNONYMS, "what is her job?") != 1);
}

TEST(a_kind_of_it_is_found_but_not_it_for_the_kind)
{
	add_others();
	note(1, "He practises the violin every night");
	note(2, "An instrument for measuring wind");
	assert_int_equal(first("which instruments does he play?"), 2);
	assert_true(similarity_of(1) > 0 && similarity_of(1) < similarity_of(2));
	assert_int_equal(first("a violin"), 1);
	assert_true(similarity_of(2) == 0);
}

TEST(the_very_word_comes_before_another_one)
{
	add_others();
	note(1, "the film was long");
	note(2, "the movie was long");
	assert_int_equal(first("movie"), 2);
	assert_int_equal(first("film"), 1);
	assert_int_equal((int)n_hits, 2);
}
