/*
 * A word finds the memory that has this very word, whatever language either is taken for.
 *
 * Among the words are those that look like small words of other languages (a Romanian "cat", a
 * Dutch "door"), parts of dates, names that are words, and words that only ask.
 */
#include "check.h"

#include <stdbool.h>

#include "search/query.h"

enum { MEMORIES = 8, HITS = 32, ROUNDS = 500 };

static const int64_t NOW = 1704456000000; /* 5 January 2024 */

static const char *const everyday[] = {
	"cat",    "care",   "door",   "once",    "bin",    "soy",    "hay",     "ate",     "volt",
	"bent",   "till",   "hoe",    "hem",     "par",    "per",    "os",      "kim",     "ben",
	"meg",    "ed",     "mia",    "ai",      "ci",     "io",     "fi",      "com",     "dir",
	"tot",    "min",    "med",    "van",     "plus",   "men",    "man",     "hat",     "war",
	"die",    "son",    "come",   "comment", "may",    "march",  "art",     "rose",    "grace",
	"hope",   "mark",   "bill",   "sunday",  "monday", "june",   "second",  "spring",  "fall",
	"summer", "night",  "kettle", "cellar",  "garden", "bottle", "river",   "window",  "candle",
	"bread",  "mice",   "teeth",  "running", "swam",   "bought", "written", "berries", "houses",
	"oslo",   "leeds",  "x230",   "4431",    "1999",   "2024",   "404",     "7",       "blau",
	"garten", "maison", "casa",   "cocina",  "fiets",  "hus",    "talo",    "kind",    "name",
	"type",   "bank",   "number", "place",   "time",   "way",    "fridge",  "phone",   "kids",
	"mum",    "grey",   "colour", "dying",   "lying",  "max_mm", "main.c",  "git",     "npm",
	"sqlite", "utf8",   "api",    "json",    "red",    "got",    "pets",    "wedding", "visa",
	"tea",    "key",    "wifi",
};

/* They tell what language they are in; these only find themselves. */
static const char *const accented[] = {
	"café",   "naïve", "señor",  "øre",    "ärzte", "straße", "niño", "kök",
	"Müller", "São",   "🎂",      "猫",     "Çay",   "İzmir",  "дом",  "кошка",
	"σπίτι",  "école", "façade", "Zürich", "żółw",  "ñandú",
};

static const char *const frames[] = {
	"%s",
	"the %s is here",
	"I told you about %s and it was good",
	"note: %s, paid",
	"Das ist %s für die Wohnung",
	"%s gehört nicht mir",
	"Le %s est dans la cuisine",
	"El %s no es de mi hermana",
	"De %s staat in het huis",
	"%s door ons",
	"%s och jag är hemma",
};

static struct search_scratch *scratch;
static struct search_index *ix;
static struct search_hit hits[HITS];
static size_t n_hits;
static uint32_t random_state = 1;
static char texts[MEMORIES + 1][128];

static uint32_t random_below(size_t n)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % (uint32_t)n;
}

static bool find(const char *question, uint64_t key)
{
	const struct search_index *one = ix;
	const struct search_query query = {.text = text_of(question), .now_ms = NOW};

	assert_int_equal(search_run(scratch, &one, 1, &query, hits, HITS, &n_hits), 0);
	for (size_t i = 0; i < n_hits; i++) {
		if (hits[i].key == key)
			return true;
	}
	return false;
}

static void add(uint64_t key, const char *text)
{
	const struct search_doc doc = {
		.key = key, .time_ms = NOW - 5000, .text = text_of(text), .importance = 0.5f};

	assert_int_equal(search_index_add(ix, scratch, &doc), 0);
}

static void add_framed(uint64_t key, const char *word)
{
	const char *frame = frames[random_below(sizeof(frames) / sizeof(frames[0]))];
	const char *at = strstr(frame, "%s");

	snprintf(texts[key], sizeof(texts[key]), "%.*s%s%s", (int)(at - frame), frame, word,
		 at + 2);
	add(key, texts[key]);
}

static void start(void)
{
	scratch = search_scratch_new();
	ix = search_index_new(NULL);
	assert_true(scratch && ix);
}

static void finish(void)
{
	search_index_free(ix);
	search_scratch_free(scratch);
}

static const char *random_word(void)
{
	return everyday[random_below(sizeof(everyday) / sizeof(everyday[0]))];
}

static void assert_finds(const char *first, const char *second, uint64_t key)
{
	char question[128];

	snprintf(question, sizeof(question), "%s%s%s", first, *second ? " " : "", second);
	if (!find(question, key))
		fail_msg("'%s' does not find '%s'", question, texts[key]);
}

/* A word finds its memory alone, before and after another word. */
static void one_round(bool accents)
{
	const char *words[MEMORIES];

	start();
	for (uint64_t key = 0; key < MEMORIES; key++) {
		words[key] = accents ? accented[random_below(sizeof(accented) / sizeof(*accented))]
				     : random_word();
		add_framed(key + 1, words[key]);
	}
	for (uint64_t key = 0; key < MEMORIES; key++) {
		const char *other = random_word();

		assert_finds(words[key], "", key + 1);
		assert_finds(words[key], other, key + 1);
		assert_finds(other, words[key], key + 1);
	}
	finish();
}

TEST(a_word_finds_itself)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(false);
}

TEST(an_accented_word_finds_itself)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		one_round(true);
}

/* Even where all memories are English. */
TEST(a_question_in_another_language_finds_the_word)
{
	static const char *const words[] = {"phone",  "way",    "berries", "family", "mice",
					    "candle", "houses", "city",    "bought", "running"};
	static const char *const asking[] = {"wo ist das %s", "le %s est dans la cuisine",
					     "donde esta mi %s", "waar is de %s van ons"};

	start();
	for (uint64_t key = 1; key <= sizeof(words) / sizeof(words[0]); key++) {
		const char *word = words[key - 1];
		char text[128];

		snprintf(text, sizeof(text), "I told you about the %s and it was good", word);
		add(key, text);
		for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
			const char *at = strstr(asking[i], "%s");

			snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - asking[i]), asking[i],
				 word, at + 2);
			if (!find(text, key))
				fail_msg("'%s' does not find '%s'", text, word);
		}
	}
	finish();
}

/* Where all others are Swedish, a word that is small in Swedish may still be another one. */
TEST(a_small_word_of_the_others_finds_itself)
{
	start();
	for (uint64_t key = 10; key < 20; key++)
		add(key, "Jag är hemma och det är inte min bil");
	add(1, "note: 20 min, paid");
	assert_true(find("list min", 1));
	finish();
}

/* Names that are small words are written with a capital. */
TEST(a_small_word_may_be_a_name)
{
	start();
	add(1, "Will likes green tea");
	add(2, "Maria is allergic to nuts");
	add(3, "The car is a red Toyota");
	assert_true(find("does Will have allergies", 1));
	assert_true(find("does Will have a car", 1));
	assert_false(find("which car will it be", 1));
	finish();
}
