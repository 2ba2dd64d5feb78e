/* Texts that come back as they were, or not at all; base64 that has one reading. */
#include "check.h"

#include <errno.h>

#include "wire/crypto.h"

static const uint8_t key[SEAL_KEY] = "one key";
static const uint8_t other_key[SEAL_KEY] = "another";

static struct arena a;

static int set_up(void **state)
{
	arena_init(&a, 1 << 20);
	return 0;
}

static int tear_down(void **state)
{
	arena_done(&a);
	return 0;
}

FIXTURE(set_up, tear_down);

static struct text seal(struct text what, struct text about)
{
	struct buf out;
	struct text kept = {0};

	buf_init(&out, 4096);
	seal_add(&out, key, what, about);
	assert_int_equal(arena_copy_text(&a, (struct text) {out.data, out.len}, &kept), 0);
	buf_done(&out);
	return kept;
}

TEST(what_is_sealed_comes_back)
{
	const struct text whats[] = {TEXT(""), TEXT("a"), TEXT("ab"), TEXT("abc"),
				     TEXT("\0\xff.=")};
	struct text got;

	for (size_t i = 0; i < sizeof(whats) / sizeof(whats[0]); i++) {
		struct text sealed = seal(whats[i], TEXT("for"));

		assert_int_equal(seal_open(&a, key, sealed, TEXT("for"), &got), 0);
		assert_true(text_equal(got, whats[i]));
		/* It needs no quoting in JSON, a header or a URL. */
		for (size_t n = 0; n < sealed.len; n++)
			assert_true(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					   "0123456789-_.",
					   sealed.data[n]) != NULL);
	}
}

TEST(nothing_else_is_opened)
{
	struct text sealed = seal(TEXT("what"), TEXT("for"));
	char copy[200];
	struct text got;

	assert_int_equal(seal_open(&a, other_key, sealed, TEXT("for"), &got), -EBADMSG);
	assert_int_equal(seal_open(&a, key, sealed, TEXT("form"), &got), -EBADMSG);
	assert_int_equal(seal_open(&a, key, sealed, TEXT(""), &got), -EBADMSG);
	assert_int_equal(seal_open(&a, key, TEXT(""), TEXT("for"), &got), -EBADMSG);
	assert_int_equal(seal_open(&a, key, TEXT("."), TEXT("for"), &got), -EBADMSG);
	for (size_t i = 0; i < sealed.len; i++) {
		struct text cut = {.data = sealed.data, .len = i};

		assert_int_equal(seal_open(&a, key, cut, TEXT("for"), &got), -EBADMSG);
		memcpy(copy, sealed.data, sealed.len);
		copy[i] ^= 1;
		cut = (struct text) {.data = copy, .len = sealed.len};
		/* A text may end in bits that mean nothing; what they say is the same then. */
		if (seal_open(&a, key, cut, TEXT("for"), &got) == 0)
			assert_true(text_equal(got, TEXT("what")));
	}
}

TEST(parts_do_not_run_into_each_other)
{
	struct text sealed = seal(TEXT("ab"), TEXT("c"));
	struct text got;

	assert_int_equal(seal_open(&a, key, sealed, TEXT("bc"), &got), -EBADMSG);
	assert_int_equal(seal_open(&a, key, seal(TEXT("a"), TEXT("bc")), TEXT("c"), &got),
			 -EBADMSG);
}

TEST(base64_has_one_reading)
{
	static const struct {
		const char *text;
		const char *bytes; /* NULL: none */
	} cases[] = {
		{"", ""},
		{"SGVsbG8=", "Hello"},
		{"SGVsbG8", NULL},
		{"SGVsbG8==", NULL},
		{"SGVs bG8=", NULL},
		{"SGVsbG9=", NULL},
		{"SGVs!!!bG8=", NULL},
		{"=", NULL},
		{"YQ==", "a"},
		{"YR==", NULL},
		{"YWI=", "ab"},
		{"YWJj", "abc"},
		{"YWJj\n", NULL},
		{"-_-_", NULL},
	};
	struct text got;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int r = base64_read(&a, text_of(cases[i].text), &got);

		assert_int_equal(r, cases[i].bytes ? 0 : -EINVAL);
		if (r == 0)
			assert_true(text_is(got, cases[i].bytes));
	}
}
