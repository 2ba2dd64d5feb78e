/* Text into words: folding, forms, stems, scripts without spaces, questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "search/words.h"

static struct words *words;

static int setup(void **state)
{
	words = words_new();
	return words ? 0 : -1;
}

static int teardown(void **state)
{
	words_free(words);
	return 0;
}

/* The terms of a text, one space between. */
static const char *terms(const char *text, unsigned off, bool extras)
{
	static char out[4096];
	size_t len = 0;
	struct word word;

	out[0] = 0;
	words_start(words, text_of(text), off, extras);
	while (words_next(words, &word))
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%.*s", len ? " " : "",
					TEXT_ARGS(word.term));
	return out;
}

static void assert_terms(const char *text, const char *expected)
{
	assert_string_equal(terms(text, 0, false), expected);
}

static void assert_same(const char *a, const char *b)
{
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", terms(a, 0, false));
	assert_string_equal(copy, terms(b, 0, false));
	assert_true(copy[0]);
}

static void case_and_diacritics_do_not_count(void **state)
{
	assert_same("ÅNGSTRÖM Čapek Đorđe Łódź", "angstrom capek dorde lodz");
	assert_same("ΑΘΉΝΑ Ὀδυσσεύς", "αθηνα οδυσσευσ");
	assert_same("ЁЛКА Йод", "елка иод");
	assert_same("straße ﬁne œuvre Æsir", "strasse fine oeuvre aesir");
	assert_same("ｆｕｌｌ　ｗｉｄｔｈ", "full width");
}

static void composed_and_decomposed_are_one(void **state)
{
	assert_same("caf\xc3\xa9", "cafe\xcc\x81");
	assert_same("\xd7\xa9\xd6\xb8\xd7\x9c\xd7\x95\xd6\xb9\xd7\x9d",
		    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d");
}

static void digits_of_other_scripts_are_digits(void **state)
{
	assert_same("٢٠٢٣", "2023");
	assert_same("२०२३", "2023");
}

static void inflections_share_a_stem(void **state)
{
	assert_same("walking walked walks", "walk walk walk");
	assert_string_not_equal(terms("walking", WORDS_NO_STEMS, false), "walk");
}

static void irregular_forms_share_a_base(void **state)
{
	assert_same("went ate bought children feet", "go eat buy child foot");
	assert_string_not_equal(terms("went", WORDS_NO_IRREGULAR, false), "go");
}

static void numbers_are_kept(void **state)
{
	assert_terms("1,000 of 7th 2023-05-07 b12", "1000 of 7 2023 05 07 b12");
	assert_terms("1,2,3 and 1,0000", "1 2 3 and 1 0000");
}

static void apostrophes_do_not_part_words(void **state)
{
	assert_terms("Alice's", "alic");
	assert_terms("Alice\xe2\x80\x99s", "alic");
	assert_terms("don't O'Brien they're", "dont obrien thei");
	assert_same("l'école", "l ecole");
	assert_terms("'quoted' dogs'", "quot dog");
}

static void chinese_comes_in_pairs(void **state)
{
	assert_terms("我喜欢猫", "我喜 喜欢 欢猫");
	assert_terms("猫", "猫");
	assert_terms("猫 and 狗", "猫 and 狗");
	assert_terms("ภาษา", "ภา าษ ษา");
	assert_string_equal(terms("喜欢猫", 0, true), "喜 喜欢 欢 欢猫 猫");
}

static void emoji_are_words(void **state)
{
	assert_terms("party🎉🎂!", "parti 🎉 🎂");
	/* A skin tone and a selector change nothing. */
	assert_same("👍🏽", "👍");
	assert_same("❤️", "❤");
}

static void right_to_left_marks_are_ignored(void **state)
{
	assert_same("\xe2\x80\x8fשלום\xe2\x80\x8e", "שלום");
	assert_same("أحمد", "احمد");
}

static void bytes_that_are_no_text_part_words(void **state)
{
	struct word word;

	assert_terms("ab\xff\xfe"
		     "cd\xc3",
		     "ab cd");
	words_start(words, (struct text) {"ab\0cd", 5}, 0, false);
	assert_true(words_next(words, &word));
	assert_int_equal(word.term.len, 2);
	assert_true(words_next(words, &word));
	assert_false(words_next(words, &word));
}

static void long_words_are_cut_between_characters(void **state)
{
	char text[401];
	struct word word;

	for (size_t i = 0; i < 400; i += 2)
		memcpy(text + i, "\xd0\xb6", 2);
	words_start(words, (struct text) {text, 400}, 0, false);
	assert_true(words_next(words, &word));
	assert_int_equal(word.term.len, WORD_BYTES_MAX);
	assert_false(words_next(words, &word));
}

static uint8_t flags_of(const char *text)
{
	struct word word;

	words_start(words, text_of(text), 0, false);
	assert_true(words_next(words, &word));
	return word.flags;
}

static void words_are_told_apart(void **state)
{
	assert_true(flags_of("the") & WORD_STOP);
	assert_true(flags_of("Who") & WORD_QUESTION);
	assert_true(flags_of("who") & WORD_STOP);
	assert_true(flags_of("Tuesday") & WORD_TIME);
	assert_true(flags_of("1987") & WORD_TIME);
	assert_true(flags_of("12") & WORD_NUMBER);
	assert_true(flags_of("Will") & WORD_CAPITAL);
	assert_false(flags_of("12") & WORD_TIME);
	assert_int_equal(flags_of("umbrella"), 0);
}

static bool asks(const char *text)
{
	return words_ask(words, text_of(text));
}

static void questions_are_recognised(void **state)
{
	assert_true(asks("Are you coming?"));
	assert_true(asks("You said \"now?\" "));
	assert_true(asks("where did you put it"));
	assert_true(asks("你好吗？"));
	assert_false(asks("When I was young, I sang."));
	assert_false(asks("I bought a lamp"));
	assert_false(asks(""));
}

static void one_text_after_another(void **state)
{
	struct word word;

	/* What the first left behind is gone. */
	words_start(words, text_of("猫狗鸟"), 0, true);
	assert_true(words_next(words, &word));
	assert_true(words_next(words, &word));
	assert_terms("鱼", "鱼");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_and_diacritics_do_not_count),
		cmocka_unit_test(composed_and_decomposed_are_one),
		cmocka_unit_test(digits_of_other_scripts_are_digits),
		cmocka_unit_test(inflections_share_a_stem),
		cmocka_unit_test(irregular_forms_share_a_base),
		cmocka_unit_test(numbers_are_kept),
		cmocka_unit_test(apostrophes_do_not_part_words),
		cmocka_unit_test(chinese_comes_in_pairs),
		cmocka_unit_test(emoji_are_words),
		cmocka_unit_test(right_to_left_marks_are_ignored),
		cmocka_unit_test(bytes_that_are_no_text_part_words),
		cmocka_unit_test(long_words_are_cut_between_characters),
		cmocka_unit_test(words_are_told_apart),
		cmocka_unit_test(questions_are_recognised),
		cmocka_unit_test(one_text_after_another),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
