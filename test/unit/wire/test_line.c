/* Newline-delimited messages: cut anywhere, the same lines come out. */
#include "framing_vectors.h"

static const struct framing_limits limits = {.message = 8};

TEST(lines_come_out_whole)
{
	static const struct vector vectors[] = {
		{"{}\n", .out = "<{}>\n"},
		{"{}\r\n", .out = "<{}>\n"},
		{"a\nb\r\nc\n", .out = "<a>\n<b>\n<c>\n"},
		{" a \t\n", .out = "< a \t>\n"},
		{"a\rb\n", .out = "<a\rb>\n"},
		{"a\r\r\n", .out = "<a\r>\n"},
		{"\xff\xfe\n", .out = "<\xff\xfe>\n"},
	};

	VECTORS_CHECK(&framing_line, &limits, vectors);
}

TEST(blank_lines_are_skipped)
{
	static const struct vector vectors[] = {
		{"\n\r\n \t\r\n\n", .out = ""},
		{"\n\n1\n\n\n2\n \n", .out = "<1>\n<2>\n"},
		{"  \t", .eof = true, .out = ""},
	};

	VECTORS_CHECK(&framing_line, &limits, vectors);
}

TEST(last_line_counts_only_at_eof)
{
	static const struct vector vectors[] = {
		{"1\n2", .out = "<1>\n"},
		{"1\n2", .eof = true, .out = "<1>\n<2>\n"},
		{"1\n2\r", .eof = true, .out = "<1>\n<2>\n"},
		{"12345678", .eof = true, .out = "<12345678>\n"},
	};

	VECTORS_CHECK(&framing_line, &limits, vectors);
}

TEST(limit_is_exact)
{
	static const struct vector vectors[] = {
		{"12345678\n", .out = "<12345678>\n"},
		{"12345678\r\n1\n", .out = "<12345678>\n<1>\n"},
		{"123456789\n{}\n", .out = "! large 0 the message is longer than 8 bytes\n"},
		{"123456789\r\n{}\n", .out = "! large 0 the message is longer than 8 bytes\n"},
		{"12345678\r\r\n", .out = "! large 0 the message is longer than 8 bytes\n"},
		{"1\n123456789", .out = "<1>\n! large 0 the message is longer than 8 bytes\n"},
		{"12345678\rx", .out = "! large 0 the message is longer than 8 bytes\n"},
		{"12345678\r", .out = ""},
		{"         \n1\n", .out = "! large 0 the message is longer than 8 bytes\n"},
	};

	VECTORS_CHECK(&framing_line, &limits, vectors);
}

TEST(nul_does_not_end_a_line)
{
	struct feed f;

	feed_init(&f, &framing_line, &limits);
	feed_bytes(&f, "a\0b\n", 4, false);
	assert_int_equal(f.out.len, 6);
	assert_memory_equal(f.out.data, "<a\0b>\n", 6);
	feed_done(&f);
}

TEST(in_message_between_first_byte_and_newline)
{
	struct feed f;

	feed_init(&f, &framing_line, &limits);
	assert_false(framing_line.in_message(f.state));
	feed_bytes(&f, "1", 1, false);
	assert_true(framing_line.in_message(f.state));
	feed_bytes(&f, "\n", 1, false);
	assert_false(framing_line.in_message(f.state));
	feed_bytes(&f, "2\n3", 3, false);
	assert_true(framing_line.in_message(f.state));
	feed_bytes(&f, NULL, 0, true);
	assert_false(framing_line.in_message(f.state));
	feed_done(&f);
}

TEST(wrap_adds_a_newline)
{
	struct buf out;

	buf_init(&out, 16);
	framing_line.wrap(&out, "{}", 2);
	framing_line.wrap(&out, "", 0);
	assert_int_equal(out.len, 4);
	assert_memory_equal(out.data, "{}\n\n", 4);
	buf_done(&out);
}

TEST(wrap_beyond_the_buffer_adds_nothing)
{
	struct buf out;

	buf_init(&out, 4);
	framing_line.wrap(&out, "1234", 4);
	assert_int_equal(out.len, 0);
	assert_int_not_equal(out.err, 0);
	buf_done(&out);
}
