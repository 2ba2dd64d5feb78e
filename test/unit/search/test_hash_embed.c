/*
 * koine-hash: the same vectors everywhere and always, since clients keep them, and nearer ones
 * for texts that share words. The numbers below were worked out apart, from the description in
 * the header.
 */
#include "check.h"

#include <math.h>

#include "search/hash_embed.h"
#include "search/vector.h"

struct axis {
	unsigned at;
	int sum;
};

static const struct axis cats[] = {{5, 16},    {46, -16}, {61, -64}, {85, 16},
				   {102, -16}, {167, 16}, {171, 16}, {239, 16}};
static const struct axis hello_world[] = {{3, 16},    {13, 16},   {20, 16},  {27, 64},  {39, -16},
					  {59, -32},  {69, 64},   {128, 16}, {134, 16}, {137, -16},
					  {149, 16},  {152, -16}, {165, 16}, {178, 16}, {187, 16},
					  {219, -16}, {221, -16}, {237, 16}, {241, 16}};
static const struct axis japan[] = {{71, -64}, {119, -16}, {191, -16}, {205, -16}};
static const struct axis nothing[] = {{0, 1}};

#define CASE(text, axes, squares)                                                                  \
	{                                                                                          \
		text, axes, sizeof(axes) / sizeof((axes)[0]), squares                              \
	}

static const struct {
	const char *text;
	const struct axis *axes;
	size_t n;
	int squares;
} cases[] = {
	CASE("cats", cats, 5888),
	CASE("  CATS! ", cats, 5888),
	CASE("Hello, world", hello_world, 13312),
	CASE("w\xc3\xb6rld h\xc3\xa9llo", hello_world, 13312),
	CASE("\xe6\x97\xa5\xe6\x9c\xac", japan, 4864),
	CASE("", nothing, 1),
	CASE("\xff --- \t", nothing, 1),
};

static struct words *words;

static int set_up(void **state)
{
	words = words_new();
	return words ? 0 : -1;
}

static int tear_down(void **state)
{
	words_free(words);
	return 0;
}

GROUP_FIXTURE(set_up, tear_down);

TEST(vectors_are_as_described)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		float want[HASH_EMBED_DIM] = {0};
		float got[HASH_EMBED_DIM];

		for (size_t k = 0; k < cases[i].n; k++)
			want[cases[i].axes[k].at] =
				(float)(cases[i].axes[k].sum / sqrt(cases[i].squares));
		hash_embed(words, text_of(cases[i].text), got);
		for (unsigned k = 0; k < HASH_EMBED_DIM; k++)
			if (got[k] != want[k])
				fail_msg("'%s': axis %u is %.9g, not %.9g", cases[i].text, k,
					 (double)got[k], (double)want[k]);
	}
}

static float nearness(const char *a, const char *b)
{
	float left[HASH_EMBED_DIM];
	float right[HASH_EMBED_DIM];

	hash_embed(words, text_of(a), left);
	hash_embed(words, text_of(b), right);
	return vector_dot(left, right, HASH_EMBED_DIM);
}

TEST(vectors_are_one_long)
{
	static const char *const texts[] = {"", "a", "the of and", "one two three two one",
					    "\xf0\x9f\x98\x80 smile"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_float_equal(nearness(texts[i], texts[i]), 1.0, 1e-5);
}

TEST(texts_that_share_words_are_nearer)
{
	static const struct {
		const char *text;
		const char *near;
		const char *far;
	} rows[] = {
		{"the cat sat on the mat", "a cat sits on a mat", "interest rates rose in June"},
		{"deploy the server tonight", "servers were deployed",
		 "soup tastes best on sundays"},
		{"configuration file", "configure the files", "the children went home"},
		{"misspeled databse", "misspelled database", "a red bicycle"},
		{"children went home", "a child goes home", "the compiler failed"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		float near = nearness(rows[i].text, rows[i].near);
		float far = nearness(rows[i].text, rows[i].far);

		if (near < far + 0.2f)
			fail_msg("'%s': %.3f near, %.3f far", rows[i].text, (double)near,
				 (double)far);
	}
}

TEST(little_words_say_little)
{
	assert_true(nearness("the bridge", "a bridge") > 0.95f);
	assert_true(nearness("it is the house", "it is the river") < 0.5f);
}

TEST(long_texts_do_not_overflow)
{
	static char text[1 << 20];
	float got[HASH_EMBED_DIM];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 5 == 4 ? ' ' : (char)('a' + i % 5);
	hash_embed(words, (struct text) {.data = text, .len = sizeof(text)}, got);
	assert_float_equal(vector_dot(got, got, HASH_EMBED_DIM), 1.0, 1e-5);
}
