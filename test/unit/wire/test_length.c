/* Messages behind a 4-byte length: cut anywhere, the same ones come out. */
#include "framing_vectors.h"

static const struct framing_limits limits = {.message = 8};

#define BYTES(literal) .in = (literal), .len = sizeof(literal) - 1

TEST(frames_come_out_whole)
{
	static const struct vector vectors[] = {
		{BYTES("\0\0\0\2{}"), .out = "<{}>\n"},
		{BYTES("\0\0\0\0"), .out = "<>\n"},
		{BYTES("\0\0\0\1a\0\0\0\0\0\0\0\3\nbc"), .out = "<a>\n<>\n<\nbc>\n"},
	};

	VECTORS_CHECK(&framing_length, &limits, vectors);
}

TEST(limit_is_exact_and_judged_from_the_header_alone)
{
	static const struct vector vectors[] = {
		{BYTES("\0\0\0\10"
		       "12345678"),
		 .out = "<12345678>\n"},
		{BYTES("\0\0\0\11"), .out = "! large 0 Message too large: 9 > 8\n"},
		{BYTES("\0\0\0\1a\0\0\0\11"
		       "123456789\0\0\0\1b"),
		 .out = "<a>\n! large 0 Message too large: 9 > 8\n"},
		{BYTES("\xff\xff\xff\xff"), .out = "! large 0 Message too large: 4294967295 > 8\n"},
		{BYTES("\x80\0\0\0"), .out = "! large 0 Message too large: 2147483648 > 8\n"},
	};

	VECTORS_CHECK(&framing_length, &limits, vectors);
}

TEST(half_a_frame_at_eof_is_nothing)
{
	static const struct vector vectors[] = {
		{BYTES("\0\0\0"), .eof = true, .out = ""},
		{BYTES("\0\0\0\1a\0\0\0\2b"), .eof = true, .out = "<a>\n"},
	};

	VECTORS_CHECK(&framing_length, &limits, vectors);
}

TEST(in_message_between_first_and_last_byte)
{
	struct feed f;

	feed_init(&f, &framing_length, &limits);
	assert_false(framing_length.in_message(f.state));
	feed_bytes(&f, "\0", 1, false);
	assert_true(framing_length.in_message(f.state));
	feed_bytes(&f, "\0\0\1", 3, false);
	assert_true(framing_length.in_message(f.state));
	feed_bytes(&f, "a", 1, false);
	assert_false(framing_length.in_message(f.state));
	feed_done(&f);
}

TEST(wrap_puts_the_length_in_front)
{
	static char payload[0x10203];
	struct buf out;

	buf_init(&out, 1 << 20);
	framing_length.wrap(&out, "{}", 2);
	framing_length.wrap(&out, "", 0);
	assert_int_equal(out.len, 10);
	assert_memory_equal(out.data, "\0\0\0\2{}\0\0\0\0", 10);
	buf_clear(&out);
	framing_length.wrap(&out, payload, sizeof(payload));
	assert_int_equal(out.len, 4 + sizeof(payload));
	assert_memory_equal(out.data, "\0\1\2\3", 4);
	buf_done(&out);
}

TEST(wrap_beyond_the_buffer_adds_nothing)
{
	struct buf out;

	buf_init(&out, 7);
	framing_length.wrap(&out, "1234", 4);
	assert_int_equal(out.len, 0);
	assert_int_not_equal(out.err, 0);
	buf_done(&out);
}
