/* Regular expressions: what they find, what is refused, and that none takes long. */
#include "check.h"

#include <regex.h>

#include "base/pattern/pattern.h"

TEST(patterns_as_people_write_them)
{
	static const struct {
		const char *expression, *text;
		bool finds;
	} cases[] = {
		{"^a\\d+$", "a12", true},
		{"^a\\d+$", "a1b", false},
		{"\\bfoo\\b", "a foo b", true},
		{"\\bfoo\\b", "afoo", false},
		{"^[\\w.-]+@[\\w-]+\\.\\w+$", "a.b-c@d-e.fg", true},
		{"[\\]x]", "]", true},
		{"[\\]x]", "y", false},
		{"[^\\]]", "]", false},
		{"[\\^]", "^", true},
		{"[\\^]", "a", false},
		{"[\\^a]", "a", true},
		{"[\\-a]", "-", true},
		{"[\\-\\^]", "^", true},
		{"[\\-\\^]", "x", false},
		{"[^\\^]", "^", false},
		{"(?:ab)+c", "ababc", true},
		{"src\\/main\\.c", "src/main.c", true},
		{"\\S\\s\\S", "a b", true},
		{"^\\D+$", "12", false},
		{"a{2,3}", "aa", true},
		{"x|y", "zy", true},
		{"\\.(c|h)$", "a.h", true},
		{".*?b", "aab", true},
		{"\\t", "a\tb", true},
		{"a+?b??c{2}?", "aacc", true},
		{"^(\\w+\\s?)+$", "a few words", true},
		{"^(a|)$", "", true},
		{"((((((((((a+)+)+)+)+)+)+)+)+)+)+$", "ba", true},
		{"a{0}b", "b", true},
		{"^a{0,2}$", "aaa", false},
		{"^(ab|c){2,}$", "abcab", true},
		{"^(ab|c){2,}$", "ab", false},
		{"^a{,2}$", "aa", true},
		{"[\\d-x]", "-", true},
		{"[a-c-e]", "d", false},
		{"b$|^c", "ca", true},
		{"(a|b|c|)d", "cd", true},
		{"^.$", "\n", true},
		{"a^", "a\n", false},
		{"\\Boo\\b", "foo bar", true},
	};
	static const char *const bad[] = {"",
					  "(",
					  "[a",
					  "a\\",
					  "(?=a)",
					  "(?<n>a)",
					  "\\1",
					  "\\u0041",
					  "[]",
					  "a{2000}",
					  "((a{40}){40}){2}",
					  "[\\q]",
					  "*a",
					  "[[:alpha:]]",
					  "a++",
					  "a**",
					  "a{2}{2}",
					  ")",
					  "a{x}",
					  "a{2",
					  "^*",
					  "(|a)|+"};
	char nul[] = "a\0b";
	uint64_t steps = UINT64_MAX;
	struct pattern *p = NULL;

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = {.text = ""};

		if (pattern_new(text_of(cases[i].expression), &p, &error) != 0)
			fail_msg("%s: %s", cases[i].expression, error.text);
		if (pattern_finds(p, text_of(cases[i].text), &steps) != cases[i].finds)
			fail_msg("%s on %s", cases[i].expression, cases[i].text);
		pattern_free(p);
	}
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct error error = {.text = ""};

		if (pattern_new(text_of(bad[i]), &p, &error) != REFUSE_PARAMS || !error.text[0])
			fail_msg("%s is fine", bad[i]);
	}
	assert_int_equal(pattern_new((struct text) {nul, 3}, &p, NULL), REFUSE_PARAMS);
	assert_int_equal(pattern_new(TEXT("b$"), &p, NULL), 0);
	assert_true(pattern_finds(p, (struct text) {nul, 3}, &steps));
	pattern_free(p);
}

static uint32_t next_random(uint32_t *state, uint32_t n)
{
	*state = *state * 1103515245 + 12345;
	return (*state >> 16) % n;
}

/* Without "?": behind a repetition it makes that modest here, and optional there. */
static void random_expression(uint32_t *random, char out[64])
{
	static const char *const parts[] = {
		"a", "b", "c", ".", "[ab]", "[^a]", "[a-c]", "[-a]",  "ab",    "^",    "$",  "|",
		"(", ")", "*", "+", "(",    ")",    "{2}",   "{1,2}", "{0,1}", "{2,}", "{0}"};
	unsigned n = 1 + next_random(random, 9);

	out[0] = '\0';
	for (unsigned i = 0; i < n; i++)
		strcat(out, parts[next_random(random, sizeof(parts) / sizeof(parts[0]))]);
}

static unsigned compare(struct pattern *p, const regex_t *libc, const char *expression,
			uint32_t *random)
{
	for (unsigned i = 0; i < 8; i++) {
		uint64_t steps = UINT64_MAX;
		unsigned n = next_random(random, 8);
		char text[8] = "";

		for (unsigned k = 0; k < n; k++)
			text[k] = "aabbc-"[next_random(random, 6)];
		if (pattern_finds(p, text_of(text), &steps) !=
		    (regexec(libc, text, 0, NULL, 0) == 0))
			fail_msg("%s on '%s'", expression, text);
	}
	return 1;
}

/* Where both know the expression. */
TEST(patterns_find_what_libc_finds)
{
	uint32_t random = 7;
	unsigned n = 0;

	for (unsigned i = 0; i < 20000; i++) {
		char expression[64];
		struct pattern *p = NULL;
		struct error error;
		regex_t libc;

		random_expression(&random, expression);
		if (pattern_new(text_of(expression), &p, &error) != 0)
			continue;
		if (regcomp(&libc, expression, REG_EXTENDED | REG_NOSUB) == 0) {
			n += compare(p, &libc, expression, &random);
			regfree(&libc);
		}
		pattern_free(p);
	}
	assert_true(n > 2000);
}

static uint64_t steps_for(const char *expression, struct text text)
{
	uint64_t steps = UINT64_MAX;
	struct error error = {.text = ""};
	struct pattern *p = NULL;

	if (pattern_new(text_of(expression), &p, &error) != 0)
		fail_msg("%s: %s", expression, error.text);
	assert_false(pattern_finds(p, text, &steps));
	pattern_free(p);
	return UINT64_MAX - steps;
}

/* Those that make a matcher that tries one way after another, or that keeps every state it was in, take
 * for ever. */
TEST(no_pattern_takes_more_than_its_text_is_long)
{
	static const char *const expressions[] = {
		"(a+)+$",           "(a|aa)+$",        "(a|b)*a(a|b){14}c", "(a?){60}a{60}c",
		"(.*a){20}x",       "^(\\w+\\s?)+$x",  "((((a*)*)*)*)*c",   "(a*)*(b*)*(a|b)*c",
		"(x+x+)+y|a{100}c", "\\b(a|b)*\\B\\n",
	};
	static char text[2 * PATTERN_TEXT_MAX];
	uint32_t random = 1;

	for (size_t i = 0; i < sizeof(text); i++) {
		random = random * 1103515245 + 12345;
		text[i] = "ab"[random >> 20 & 1];
	}
	text[PATTERN_TEXT_MAX / 2 - 1] = text[PATTERN_TEXT_MAX - 1] = 'b';
	for (unsigned i = 0; i < sizeof(expressions) / sizeof(expressions[0]); i++) {
		struct text half = {text, PATTERN_TEXT_MAX / 2};
		struct text whole = {text, PATTERN_TEXT_MAX};
		uint64_t n_half = steps_for(expressions[i], half);
		uint64_t n_whole = steps_for(expressions[i], whole);

		assert_true(n_half > half.len);
		assert_true(n_whole <= 2ULL * PATTERN_CODE_MAX * (whole.len + 1));
		assert_true(n_whole <= 5 * n_half / 2 + PATTERN_CODE_MAX);
		/* And more text than that is not looked at. */
		assert_int_equal(steps_for(expressions[i], (struct text) {text, sizeof(text)}),
				 n_whole);
	}
}

TEST(a_pattern_without_steps_left_finds_nothing)
{
	uint64_t steps = 100;
	struct pattern *p = NULL;
	struct error error;

	assert_int_equal(pattern_new(TEXT("a"), &p, &error), 0);
	assert_true(pattern_finds(p, TEXT("bba"), &steps));
	assert_in_range(steps, 90, 99);
	steps = 5;
	assert_false(pattern_finds(p, TEXT("bbbbbbbbbba"), &steps));
	assert_int_equal(steps, 0);
	assert_false(pattern_finds(p, TEXT("a"), &steps));
	pattern_free(p);
}

TEST(globs)
{
	assert_true(glob_fits(TEXT("*"), TEXT("")));
	assert_true(glob_fits(TEXT("task.*"), TEXT("task.done")));
	assert_false(glob_fits(TEXT("task.*"), TEXT("task")));
	assert_true(glob_fits(TEXT("*.tmp"), TEXT("a.tmp.tmp")));
	assert_true(glob_fits(TEXT("a?c"), TEXT("abc")));
	assert_false(glob_fits(TEXT(""), TEXT("a")));
	assert_true(glob_fits(TEXT("*a*b*"), TEXT("xxaxxbxx")));
	assert_false(glob_fits(TEXT("*a*b"), TEXT("xxaxxbx")));
}
