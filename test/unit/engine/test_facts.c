/* What an agent answers when it is asked for facts: lines of one form, and anything else. */
#include "check.h"

#include <math.h>

#include "engine/extract/facts.h"
#include "engine/memory/duplicates.h"
#include "engine/memory/lenient.h"

static const int64_t now_ms = 1800000000000;

TEST(lines_of_the_form_are_facts)
{
	static const char answer[] = "Here you are:\n"
				     "Ann, Oslo | 2024-05-20 | Ann has a boat in Oslo\r\n"
				     "- Bob | - | Bob is afraid of spiders\n"
				     "12. Eve |  | Eve sings in a choir\n"
				     "* , -, |2024-05-20T10:00Z| The office has no heating\n";
	struct fact facts[FACTS_MAX];

	assert_int_equal(facts_read(TEXT(answer), now_ms, facts), 4);
	assert_true(text_is(facts[0].text, "Ann has a boat in Oslo"));
	assert_int_equal(facts[0].n_subjects, 2);
	assert_true(text_is(facts[0].subjects[1], "Oslo"));
	assert_int_equal(facts[0].time_ms, 1716163200000);
	assert_true(text_is(facts[1].subjects[0], "Bob"));
	assert_int_equal(facts[1].time_ms, 0);
	assert_true(text_is(facts[2].text, "Eve sings in a choir"));
	assert_int_equal(facts[3].n_subjects, 0);
	assert_int_equal(facts[3].time_ms, 1716199200000);
}

TEST(anything_else_is_ignored)
{
	static const char *const answers[] = {
		"",
		"NONE",
		"NAMES | TIME | FACT",
		"Ann has a boat",
		"Ann | Ann has a boat",
		"Ann | - | short",
		"Ann | - | Ann has | a boat and more",
		"Ann | - | Ann has \x1b[31m a boat",
		"Ann | - | Ann has \xff a boat",
		"Ann | - | Ann has \x7f a boat",
		"NAMES | TIME | FACT in one sentence",
		"Ann | - | 7 byte.",
		"| | ",
		"|||",
	};
	struct fact facts[FACTS_MAX];

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		assert_int_equal(facts_read(text_of(answers[i]), now_ms, facts), 0);
}

TEST(answers_are_bounded)
{
	struct fact facts[FACTS_MAX];
	struct buf answer;

	buf_init(&answer, 1 << 20);
	for (int i = 0; i < 100; i++)
		buf_printf(&answer, "a,b,c,d,e,f,g,h,i,j | 2999-01-01 | fact number %d\n", i);
	assert_int_equal(
		facts_read((struct text) {.data = answer.data, .len = answer.len}, now_ms, facts),
		FACTS_MAX);
	assert_int_equal(facts[0].n_subjects, FACT_SUBJECTS_MAX);
	assert_int_equal(facts[0].time_ms, 0); /* still to come */
	buf_clear(&answer);
	buf_printf(&answer, "Ann | - | %0*d\n", FACT_BYTES_MAX + 1, 1);
	assert_int_equal(
		facts_read((struct text) {.data = answer.data, .len = answer.len}, now_ms, facts),
		0);
	buf_done(&answer);
}

static const struct fact *only_fact(const char *answer)
{
	static struct fact facts[FACTS_MAX];

	return facts_read(text_of(answer), now_ms, facts) == 1 ? &facts[0] : NULL;
}

TEST(fact_name_and_time_may_be_as_large_as_their_limits)
{
	char answer[600];

	assert_non_null(only_fact("Ann | - | 8 bytes."));
	snprintf(answer, sizeof(answer), "Ann | - | %0*d", FACT_BYTES_MAX, 1);
	assert_non_null(only_fact(answer));
	for (int more = 0; more < 2; more++) {
		snprintf(answer, sizeof(answer), "%0*d | - | Ann has a boat",
			 FACT_NAME_BYTES_MAX + more, 1);
		assert_int_equal(only_fact(answer)->n_subjects, 1 - more);
	}
	assert_int_equal(only_fact("a | 2027-01-15T08:00:00Z | Ann has a boat")->time_ms, now_ms);
	assert_int_equal(only_fact("a | 2027-01-15T08:00:00.001Z | Ann has a boat")->time_ms, 0);
	assert_int_equal(only_fact("a | 1969-12-31T23:59:59Z | Ann has a boat")->time_ms, 0);
}

TEST(bullet_is_digits_or_a_sign_before_a_space)
{
	static const struct {
		const char *line, *name;
	} rows[] = {{"1) a", "a"},  {"22. a", "a"}, {"- a", "a"},     {"* a", "a"}, {"3 a", "3 a"},
		    {"4.a", "4.a"}, {"-a", "-a"},   {"5- a", "5- a"}, {"7", "7"}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char answer[80];
		const struct fact *f;

		snprintf(answer, sizeof(answer), "%s | - | Ann has a boat", rows[i].line);
		f = only_fact(answer);
		assert_non_null(f);
		assert_int_equal(f->n_subjects, 1);
		assert_true(text_is(f->subjects[0], rows[i].name));
	}
	assert_null(only_fact("12"));
	assert_null(only_fact("12."));
	assert_null(only_fact("-"));
}

TEST(spellings_of_one_fact_are_the_same)
{
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{"Ann likes tea", "ann likes Tea!", true},
		{"Ann likes tea", "Ann really likes the tea", true},
		{"Ann's favourite colour", "Anns favorite color", false},
		{"Ann's favourite colour", "Ann\u2019s favorite color", true},
		{"Ann likes tea", "Ann does not like tea", false},
		{"Ann likes tea", "Ann likes 2 teas", false},
		{"Ann moved to Oslo", "Ann moved to Bergen", false},
		{"Ann writes C", "Ann writes C++", false},
		{"Ann writes C#", "Ann writes C", false},
		{"the freezer is at -18 degrees", "the freezer is at 18 degrees", false},
		{"the disk is 90 full", "the disk is 90% full", false},
		{"Ann is a well-known pilot", "Ann is a well known pilot", true},
		{"Ann doesn't ski", "Ann doesn\u2019t ski", true},
		{"ANN DOESN'T SKI", "Ann doesn't ski", true},
		{"Ann doesn't ski", "Ann does ski", false},
		{"Ann organises it", "Ann organizes it", true},
		{"Ann was organising it", "Ann was organizing it", true},
		{"Ann travelled far", "Ann traveled far", true},
		{"it is !done", "it is done", false},
		{"it is ! done", "it is done", true},
		{"it is - 18", "it is 18", true},
		{"it is a-18", "it is a 18", true},
		{"it is (-18)", "it is (18)", false},
		{"it is \u221218", "it is -18", true},
		{"it is 5 \u20ac", "it is 5 \u00a3", false},
		{"it is 5 \u00a2", "it is 5", false},
		{"it is 5 \u00a5", "it is 5", false},
		{"it is 5 \u00a6", "it is 5", true},
		{"it is \u00b15", "it is 5", false},
		{"it is 2 \u00d7 3", "it is 2 3", false},
		{"it is 6 \u00f7 3", "it is 6 3", false},
		{"it is 5 \u2030", "it is 5", false},
		{"a \u2190 b", "a b", false},
		{"a \u22ff b", "a b", false},
		{"a \u2300 b", "a b", true},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (duplicates_same(text_of(cases[i].a), text_of(cases[i].b)) != cases[i].same)
			fail_msg("%s, %s", cases[i].a, cases[i].b);
	}
}

TEST(long_texts_are_no_spellings)
{
	static char one[2050], other[2050];
	struct text a = {one, 2048}, b = {other, 2048};

	memset(one, 'a', sizeof(one));
	memset(other, 'a', sizeof(other));
	for (int i = 9; i < 2040; i += 10)
		one[i] = other[i] = ' ';
	memcpy(one, "Ann ", 4);
	memcpy(other, "ann ", 4);
	assert_true(duplicates_same(a, b));
	a.len++;
	assert_false(duplicates_same(a, b));
	assert_false(duplicates_same(b, a));
	b.len++;
	assert_false(duplicates_same(a, b));
	assert_true(duplicates_same(a, a));
}

TEST(overlap_is_the_part_of_words_in_common)
{
	char words[200 * 5 + 1];

	for (int i = 0; i < 200; i++)
		snprintf(words + 5 * (size_t)i, 6, "w%03d ", i);
	assert_true(duplicates_overlap(TEXT(""), TEXT("")) == 0);
	assert_true(duplicates_overlap(TEXT("Ann"), TEXT("")) == 0);
	assert_true(duplicates_overlap(TEXT("Ann tea"), TEXT("tea ann")) == 1);
	assert_true(duplicates_overlap(TEXT("Ann tea"), TEXT("Ann ships")) == 0.5);
	/* Of a long text, the first 128. */
	assert_true(duplicates_overlap(text_of(words), (struct text) {words, 640}) == 1);
	assert_true(duplicates_overlap(text_of(words), (struct text) {words, 320}) < 0.67);
}

TEST(lenient_values_are_settled)
{
	static const struct {
		const char *given, *want;
	} categories[] = {{"fact", "fact"},
			  {"facts", "fact"},
			  {"preferences", "preference"},
			  {"decision", "decision"},
			  {"entities", "entity"},
			  {"gossip", "other"},
			  {"Fact", "other"},
			  {"", ""}};
	static const struct {
		double given, importance, least;
	} numbers[] = {
		{0, 0.7, 0.7},     {-1, 0.7, 0.7},       {0.3, 0.3, 0.3},       {1, 1, 1},
		{2, 1, 2},         {INFINITY, 0.7, 0.7}, {-INFINITY, 0.7, 0.7}, {NAN, 0.7, 0.7},
		{1e-9, 1e-9, 1e-9}};
	static const int64_t limits[][2] = {{-1, 5}, {0, 5}, {1, 1}, {7, 7}};

	for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++)
		assert_true(text_is(memory_lenient_category(text_of(categories[i].given)),
				    categories[i].want));
	assert_null(memory_lenient_category(TEXT("")).data);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct memory_query q = {.limit = 0};

		memory_lenient_least(numbers[i].given, &q);
		assert_true(memory_lenient_importance(numbers[i].given) == numbers[i].importance);
		assert_true(q.least == numbers[i].least);
		assert_int_equal(q.least_of_words, numbers[i].given > 0 && numbers[i].given < 9);
	}
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(memory_lenient_limit(limits[i][0]), limits[i][1]);
}
