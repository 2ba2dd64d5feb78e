/* What a memory looks like. */

#include "check.h"

#include "search/index_inner.h"

static void assert_traits(const char *text, int traits)
{
	assert_int_equal(traits_of(text_of(text)), traits);
}

TEST(plain_text_has_none)
{
	assert_traits("", 0);
	assert_int_equal(traits_of((struct text) {NULL, 0}), 0);
	assert_traits("It rained. Then it stopped!", 0);
	assert_traits("мы были там", 0);
}

TEST(a_capital_inside_a_sentence_names)
{
	assert_traits("We met Ruth there", TRAIT_NAME);
	assert_traits("Ruth was there. Nobody else: All gone.", 0);
	assert_traits("on Monday, the first of May, OK?", 0);
	assert_traits("We saw Zo\xc3\xab", TRAIT_NAME);
	assert_traits("it was her uncle", TRAIT_NAME);
}

TEST(places_follow_small_words)
{
	assert_traits("we moved to Oslo", TRAIT_PLACE | TRAIT_NAME);
	assert_traits("we moved to, Oslo", TRAIT_NAME);
	assert_traits("he works in May", 0);
	assert_traits("it is at the station", TRAIT_PLACE);
}

TEST(numbers_count)
{
	assert_traits("it was 1,450 euros", TRAIT_NUMBER);
	assert_traits("it was twelve euros", TRAIT_NUMBER);
	assert_traits("she is someone", 0);
}

TEST(quotes_of_all_kinds)
{
	assert_traits("the song is \"harbour\"", TRAIT_QUOTES);
	assert_traits("the song is \xe2\x80\x9charbour\xe2\x80\x9d", TRAIT_QUOTES);
	assert_traits("the song is \xc2\xabharbour\xc2\xbb", TRAIT_QUOTES);
	assert_traits("\xe3\x80\x8c\xe6\xb8\xaf\xe3\x80\x8d", TRAIT_QUOTES);
	assert_traits("that's the garage\xe2\x80\x99s", 0);
}

TEST(reasons_and_oneself)
{
	assert_traits("because it rained", TRAIT_REASON);
	assert_traits("I like it", TRAIT_SELF);
	assert_traits("that is what I\xe2\x80\x99m saying", TRAIT_SELF);
	assert_traits("then I'm off", TRAIT_SELF);
	assert_traits("because of my knee", TRAIT_REASON | TRAIT_SELF);
}

/* Each cut in a text of many bytes is read without going past its end. */
TEST(texts_may_be_cut_anywhere)
{
	static const char text[] = "\xe2\x80\x9cZo\xc3\xab\xe2\x80\x9d \xc2\xab\xe3\x80\x8c 7";

	for (size_t i = 0; i < sizeof(text); i++) {
		char *copy = test_malloc(i + 1);

		memcpy(copy, text, i);
		traits_of((struct text) {copy, i});
		test_free(copy);
	}
	assert_traits(text, TRAIT_QUOTES | TRAIT_NUMBER);
}
