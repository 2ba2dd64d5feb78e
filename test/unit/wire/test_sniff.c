/* Recognising a protocol by its first bytes; never later than SNIFF_MAX. */

#include "check.h"

#include "wire/framing.h"

enum { MAX_MESSAGE = 16 << 20 };

struct sniff_vector {
	const char *in;
	size_t len;
	enum sniffed want;
};

#define V(literal, want)                                                                           \
	{                                                                                          \
		literal, sizeof(literal) - 1, want                                                 \
	}

/* Each prefix says "more" or the same; SNIFF_MAX bytes, or eof, always decide. */
static void check(const struct sniff_vector *v)
{
	bool decided = false;

	for (size_t n = 1; n <= v->len; n++) {
		char *exact = malloc(n);
		enum sniffed got;

		assert_non_null(exact);
		memcpy(exact, v->in, n);
		got = sniff(exact, n, false, MAX_MESSAGE);
		assert_int_not_equal(sniff(exact, n, true, MAX_MESSAGE), SNIFF_MORE);
		free(exact);
		if (got == SNIFF_MORE) {
			assert_false(decided);
			assert_true(n < SNIFF_MAX);
			continue;
		}
		decided = true;
		if (got != v->want)
			fail_msg("%zu bytes of \"%s\": %d, not %d", n, v->in, (int)got,
				 (int)v->want);
	}
	assert_true(decided);
}

static void check_all(const struct sniff_vector *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(&v[i]);
}

#define CHECK_ALL(vectors) check_all(vectors, sizeof(vectors) / sizeof((vectors)[0]))

TEST(json_and_garbage_are_lines)
{
	static const struct sniff_vector vectors[] = {
		V("{}", SNIFF_LINE),
		V("{\"jsonrpc\":\"2.0\"}\n", SNIFF_LINE),
		V("[1]", SNIFF_LINE),
		V("[\xff]", SNIFF_LINE),
		V("{\0}", SNIFF_LINE),
		V("\"\x7f\x7f\x7f\"\n", SNIFF_LINE),
		V("\n\n{}\n", SNIFF_LINE),
		V("\r\nPOST / HTTP/1.1\r\n", SNIFF_LINE),
		V("  {}", SNIFF_LINE),
		V("\t{}", SNIFF_LINE),
		V("12\n", SNIFF_LINE),
		V("NaN\n", SNIFF_LINE),
		V("GARBAGE\n", SNIFF_LINE),
		V("garbage here\n", SNIFF_LINE),
		V("ABCDEFGHIJKLMNOPQRST /", SNIFF_LINE),
		V("\xef\xbb\xbf{}\n", SNIFF_LINE),
		V("\xc3\xa4\n", SNIFF_LINE),
	};

	CHECK_ALL(vectors);
}

TEST(methods_in_capitals_are_http)
{
	static const struct sniff_vector vectors[] = {
		V("GET / HTTP/1.1\r\n", SNIFF_HTTP),     V("POST /rpc HTTP/1.1\r\n", SNIFF_HTTP),
		V("OPTIONS * HTTP/1.1\r\n", SNIFF_HTTP), V("PROPFIND /x", SNIFF_HTTP),
		V("ABCDEFGHIJKLMNO /", SNIFF_HTTP),
	};

	CHECK_ALL(vectors);
}

TEST(bytes_that_start_no_text_are_lengths)
{
	static const struct sniff_vector vectors[] = {
		V("\0\0\0\2{}", SNIFF_LENGTH),       V("\0\0\0\0", SNIFF_LENGTH),
		V("\0\x7f\3\1", SNIFF_LENGTH),       V("\1\0\0\0", SNIFF_LENGTH),
		V("\1\x7f\3\1", SNIFF_LENGTH),       V("\x08\0\0\0", SNIFF_LENGTH),
		V("\x1f\x8b\x08\0", SNIFF_LENGTH),   V("\x7f\xff\xff\xff", SNIFF_LENGTH),
		V("\x7f\0\0\0", SNIFF_LENGTH),       V("\x80\0\0\0", SNIFF_LENGTH),
		V("\xff\xff\xff\xff", SNIFF_LENGTH), V("\xff\xff\xff\xff\3\1", SNIFF_LENGTH),
		V("@\0\0\0", SNIFF_LENGTH),          V("\xfc\x40\0\0\0\0", SNIFF_LENGTH),
	};

	CHECK_ALL(vectors);
}

TEST(type_definitions_are_gob)
{
	static const struct sniff_vector vectors[] = {
		/* net/rpc's Request, by Go up to 1.22 and since 1.23 */
		V("\x2f\xff\x81\x03\x01\x01\x07Request\x01\xff\x82\x00\x01\x02", SNIFF_GOB),
		V("\x2e\x7f\x03\x01\x01\x07Request\x01\xff\x80\x00\x01\x02\x01", SNIFF_GOB),
		/* struct{}: its count is a newline */
		V("\x0a\xff\x83\x03\x01\x02\xff\x84\x00\x00\x00", SNIFF_GOB),
		V("{\xff\x81\x03\x01\x01", SNIFF_GOB),
		V("[\x7f\x03\x01\x01\x07", SNIFF_GOB),
		V("P\xff\x81\x03\x01\x01\x07", SNIFF_GOB),
		V("\xff\x81\xff\x81\x03\x01", SNIFF_GOB),
		V("\xfe\x01\x00\xff\x83\x03\x01", SNIFF_GOB),
		V("\xfc\x00\x01\x00\x00\xfe\x01\x01\x02\x01", SNIFF_GOB),
	};

	CHECK_ALL(vectors);
}

TEST(what_only_resembles_gob_is_not)
{
	static const struct sniff_vector vectors[] = {
		V("\x2f\xff\x82\x03\x01", SNIFF_LENGTH), /* no definition: an even id */
		V("\x2f\xff\x81\x08\x01", SNIFF_LENGTH), /* no such kind of type */
		V("\x2f\xff\x81\x00\x01", SNIFF_LENGTH),
		V("\x2e\x7f\x20\x20", SNIFF_LINE),
		V("/\x7d", SNIFF_LINE),
		V("\xfc\x40\x00\x00\x00\x7f\x03", SNIFF_LENGTH), /* longer than allowed */
	};

	CHECK_ALL(vectors);
}

TEST(nothing_decides_only_at_eof)
{
	assert_int_equal(sniff("", 0, false, MAX_MESSAGE), SNIFF_MORE);
	assert_int_equal(sniff(NULL, 0, true, MAX_MESSAGE), SNIFF_LINE);
	assert_int_equal(sniff("{", 1, false, MAX_MESSAGE), SNIFF_MORE);
	assert_int_equal(sniff("{", 1, true, MAX_MESSAGE), SNIFF_LINE);
	assert_int_equal(sniff("POST", 4, false, MAX_MESSAGE), SNIFF_MORE);
	assert_int_equal(sniff("POST", 4, true, MAX_MESSAGE), SNIFF_LINE);
	assert_int_equal(sniff("\x2f\xff", 2, false, MAX_MESSAGE), SNIFF_MORE);
}
