/* Text into words: folding, forms, stems, scripts without spaces, questions. */

#include "check.h"

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

GROUP_FIXTURE(setup, teardown);

/* The terms of a text, one space between. */
static const char *terms(const char *text, unsigned off, enum words_of of)
{
	static char out[4096];
	size_t len = 0;
	struct word word;

	out[0] = 0;
	words_start(words, text_of(text), off, of);
	while (words_next(words, &word))
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%.*s", len ? " " : "",
					TEXT_ARGS(word.term));
	return out;
}

static void assert_terms(const char *text, const char *expected)
{
	assert_string_equal(terms(text, 0, WORDS_OF_NAME), expected);
}

static void assert_same(const char *a, const char *b)
{
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", terms(a, 0, WORDS_OF_NAME));
	assert_string_equal(copy, terms(b, 0, WORDS_OF_NAME));
	assert_true(copy[0]);
}

TEST(case_and_diacritics_do_not_count)
{
	assert_same("ÅNGSTRÖM Čapek Đorđe Łódź", "angstrom capek dorde lodz");
	assert_same("ΑΘΉΝΑ Ὀδυσσεύς", "αθηνα οδυσσευσ");
	/* An iota below, on its own. */
	assert_terms("\xcd\xba", "");
	assert_same("ЁЛКА Йод", "елка иод");
	assert_same("straße ﬁne œuvre Æsir", "strasse fine oeuvre aesir");
	assert_same("ｆｕｌｌ　ｗｉｄｔｈ", "full width");
}

TEST(composed_and_decomposed_are_one)
{
	assert_same("caf\xc3\xa9", "cafe\xcc\x81");
	assert_same("\xd7\xa9\xd6\xb8\xd7\x9c\xd7\x95\xd6\xb9\xd7\x9d",
		    "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d");
}

TEST(digits_of_other_scripts_are_digits)
{
	assert_same("٢٠٢٣", "2023");
	assert_same("२०२३", "2023");
}

TEST(inflections_share_a_stem)
{
	assert_same("walking walked walks", "walk walk walk");
	assert_string_not_equal(terms("walking", WORDS_NO_STEMS, WORDS_OF_NAME), "walk");
}

TEST(irregular_forms_share_a_base)
{
	assert_same("went ate bought children feet", "go eat buy child foot");
	assert_string_not_equal(terms("went", WORDS_NO_IRREGULAR, WORDS_OF_NAME), "go");
}

TEST(numbers_are_kept)
{
	assert_terms("1,000 of 7th 2023-05-07 b12", "1000 of 7 2023 05 07 b12");
	assert_terms("1,2,3 and 1,0000", "1 2 3 and 1 0000");
}

TEST(apostrophes_do_not_part_words)
{
	assert_terms("Alice's", "alic");
	assert_terms("Alice\xe2\x80\x99s", "alic");
	assert_terms("don't O'Brien they're", "dont obrien thei");
	assert_same("l'école", "l ecole");
	assert_terms("'quoted' dogs'", "quot dog");
}

TEST(chinese_comes_in_pairs)
{
	assert_terms("我喜欢猫", "我喜 喜欢 欢猫");
	assert_terms("猫", "猫");
	assert_terms("猫 and 狗", "猫 and 狗");
	assert_terms("ภาษา", "ภา าษ ษา");
	assert_string_equal(terms("喜欢猫", 0, WORDS_OF_MEMORY), "喜欢 喜 欢 欢猫 猫");
}

TEST(half_width_kana_are_wide_ones)
{
	assert_same("ﾗｰﾒﾝ", "ラーメン");
	assert_same("ｶﾞｿﾘﾝ ﾊﾟﾝ ｳﾞｨﾗ", "ガソリン パン ヴィラ");
	/* As some systems store names of files. */
	assert_same("か\xe3\x82\x99", "が");
}

TEST(single_kana_are_not_words)
{
	assert_string_equal(terms("ラーメン", 0, WORDS_OF_MEMORY), "ラー ーメ メン");
	assert_string_equal(terms("猫の名", 0, WORDS_OF_MEMORY), "猫の 猫 の名 名");
}

static enum language language_of(const char *text)
{
	words_start(words, text_of(text), 0, WORDS_OF_MEMORY);
	return words_language(words);
}

TEST(a_text_shows_its_language)
{
	assert_int_equal(language_of("The kettle is in the cellar"), LANGUAGE_ENGLISH);
	assert_int_equal(language_of("Der Kessel steht im Keller"), LANGUAGE_GERMAN);
	assert_int_equal(language_of("La bouilloire est dans la cave"), LANGUAGE_FRENCH);
	assert_int_equal(language_of("¿Dónde está la tetera?"), LANGUAGE_SPANISH);
	assert_int_equal(language_of("Il bollitore non è nella cantina"), LANGUAGE_ITALIAN);
	assert_int_equal(language_of("A chaleira não está na adega"), LANGUAGE_PORTUGUESE);
	assert_int_equal(language_of("De ketel staat in het huis van mijn oom"), LANGUAGE_DUTCH);
	assert_int_equal(language_of("Kitteln är i källaren och den är röd"), LANGUAGE_SWEDISH);
	assert_int_equal(language_of("Çaydanlık benim için çok önemli"), LANGUAGE_TURKISH);
	assert_int_equal(language_of("Чайник стоит в подвале"), LANGUAGE_RUSSIAN);
	assert_int_equal(language_of("水壶在地下室"), LANGUAGE_CHINESE);
	/* Nothing says so. */
	assert_int_equal(language_of("Krankenversicherungskarte"), LANGUAGE_ENGLISH);
	assert_int_equal(language_of("kettle, cellar, 42"), LANGUAGE_ENGLISH);
	assert_int_equal(language_of("The man with the hat must die"), LANGUAGE_ENGLISH);
	assert_int_equal(language_of("vitamin d 1000"), LANGUAGE_ENGLISH);
}

TEST(each_language_has_its_stems)
{
	assert_same("врач врачом врачу новый новая", "врач врач врач новая новый");
	assert_same("γιατρός γιατρού", "γιατρο γιατρο");
	assert_string_equal(terms("die Häuser und das Haus", 0, WORDS_OF_MEMORY),
			    "die haus und das haus");
	assert_string_equal(terms("elle a mangé et il va manger", 0, WORDS_OF_MEMORY),
			    "elle a mang et il va mang");
	assert_string_equal(terms("los gatos y el gato", 0, WORDS_OF_MEMORY), "los gat y el gat");
}

/* Also what somebody without the accents on the keyboard would look for. */
TEST(accents_are_found_without_them)
{
	assert_string_equal(terms("le musée est ici", 0, WORDS_OF_MEMORY), "le mus muse est ici");
	assert_string_equal(terms("le musee est ici", 0, WORDS_OF_QUESTION), "le muse est ici");
	assert_string_equal(terms("le musée est ici", 0, WORDS_OF_QUESTION), "le mus est ici");
}

TEST(arabic_articles_and_endings_do_not_count)
{
	assert_same("المدرسة", "مدرسة");
	assert_same("والبيت بالبيت", "بيت بيت");
	assert_same("كِتَاب", "كتـــاب");
	assert_same("إسكندرية", "اسكندريه");
}

TEST(turkish_names_lose_what_follows_their_apostrophe)
{
	assert_same("İstanbul'da", "istanbul");
	assert_same("Elif'in Ankara'ya", "Elif Ankara");
	assert_terms("Hawai'i", "hawaii");
	assert_terms("o'da", "oda");
}

TEST(elided_articles_are_words)
{
	assert_terms("dell'arte", "dell art");
	assert_terms("jusqu'ici", "jusqu ici");
}

TEST(names_in_code_are_found_by_their_parts)
{
	assert_string_equal(terms("parseHttpRequest", 0, WORDS_OF_MEMORY),
			    "parsehttprequest pars http request");
	assert_string_equal(terms("HTTPServer", 0, WORDS_OF_MEMORY), "httpserver http server");
	assert_string_equal(terms("max_rise_mm", 0, WORDS_OF_MEMORY), "max rise mm maxrisemm");
	assert_string_equal(terms("src/main.c:", 0, WORDS_OF_MEMORY), "src main c srcmainc");
	assert_string_equal(terms("std::sort", 0, WORDS_OF_MEMORY), "std sort stdsort");
	assert_string_equal(terms("an e-mail.", 0, WORDS_OF_MEMORY), "an e mail email");
	assert_string_equal(terms("192.168.1.10", 0, WORDS_OF_MEMORY), "192 168 1 10 192168110");
	/* Dates, times and prices are no names. */
	assert_string_equal(terms("2024-05-20 10:30 3.50", 0, WORDS_OF_MEMORY),
			    "2024 05 20 10 30 3 50");
	/* The name of a person or a place is not code. */
	assert_terms("parseHttp max_rise", "parsehttp max rise");
}

TEST(what_joins_words_is_told)
{
	static const char expected[] = {0, '/', '/', 0, 0, '-'};
	struct word word;
	size_t n = 0;

	words_start(words, text_of("20/05/2024 at ten-ish"), 0, WORDS_OF_QUESTION);
	while (words_next(words, &word)) {
		if (word.extra)
			continue;
		assert_true(n < sizeof(expected));
		assert_int_equal(word.joint, expected[n++]);
	}
	assert_int_equal(n, sizeof(expected));
}

TEST(german_compounds_are_taken_apart)
{
	const char *found = terms("Das ist die Krankenversicherungskarte", 0, WORDS_OF_MEMORY);

	assert_non_null(strstr(found, " krankenversicherungskart "));
	assert_non_null(strstr(found, " kart"));
	assert_non_null(strstr(found, " versicher"));
	assert_non_null(strstr(found, " versicherungskart"));
	assert_non_null(strstr(found, " krankenversicher"));
	assert_string_equal(terms("Der Haustürschlüssel ist da", 0, WORDS_OF_MEMORY),
			    "der hausturschlussel schlussel haustur tur haus turschlussel ist da");
	/* A verb is not, unless both of its sides are known. */
	assert_string_equal(terms("wir haben es überwiesen", 0, WORDS_OF_MEMORY),
			    "wir hab es uberwies");
	/* English words are left alone. */
	assert_string_equal(terms("the understanding of handball", 0, WORDS_OF_MEMORY),
			    "the understand of handbal");
}

/* Whatever is in it, a word does not multiply. */
TEST(extras_are_few)
{
	char text[400];
	struct word word;
	size_t n = 0;

	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "aB", 2);
	words_start(words, (struct text) {text, 398}, 0, WORDS_OF_MEMORY);
	while (words_next(words, &word))
		n++;
	assert_true(n > 1 && n <= 13);
}

/* Vectors that others keep are made of what words were at first. */
TEST(old_words_stay_as_they_were)
{
	assert_string_equal(
		terms("die Häuser врачом İstanbul'da ﾗｰ parseHttp", WORDS_OLD, WORDS_OF_NAME),
		"die hauser врачом istanbulda ﾗｰ parsehttp");
}

TEST(emoji_are_words)
{
	assert_terms("party🎉🎂!", "parti 🎉 🎂");
	/* A skin tone and a selector change nothing. */
	assert_same("👍🏽", "👍");
	assert_same("❤️", "❤");
}

TEST(right_to_left_marks_are_ignored)
{
	assert_same("\xe2\x80\x8fשלום\xe2\x80\x8e", "שלום");
	assert_same("أحمد", "احمد");
}

TEST(bytes_that_are_no_text_part_words)
{
	struct word word;

	assert_terms("ab\xff\xfe"
		     "cd\xc3",
		     "ab cd");
	words_start(words, (struct text) {"ab\0cd", 5}, 0, WORDS_OF_NAME);
	assert_true(words_next(words, &word));
	assert_int_equal(word.term.len, 2);
	assert_true(words_next(words, &word));
	assert_false(words_next(words, &word));
}

TEST(long_words_are_cut_between_characters)
{
	char text[401];
	struct word word;

	for (size_t i = 0; i < 400; i += 2)
		memcpy(text + i, "\xd0\xb6", 2);
	words_start(words, (struct text) {text, 400}, 0, WORDS_OF_NAME);
	assert_true(words_next(words, &word));
	assert_int_equal(word.term.len, WORD_BYTES_MAX);
	assert_false(words_next(words, &word));
}

static uint8_t flags_of(const char *text)
{
	struct word word;

	words_start(words, text_of(text), 0, WORDS_OF_NAME);
	assert_true(words_next(words, &word));
	return word.flags;
}

TEST(words_are_told_apart)
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

TEST(questions_are_recognised)
{
	assert_true(asks("Are you coming?"));
	assert_true(asks("You said \"now?\" "));
	assert_true(asks("where did you put it"));
	assert_true(asks("你好吗？"));
	assert_false(asks("When I was young, I sang."));
	assert_false(asks("I bought a lamp"));
	assert_false(asks(""));
}

TEST(one_text_after_another)
{
	struct word word;

	/* What the first left behind is gone. */
	words_start(words, text_of("猫狗鸟"), 0, WORDS_OF_MEMORY);
	assert_true(words_next(words, &word));
	assert_true(words_next(words, &word));
	assert_terms("鱼", "鱼");
}
