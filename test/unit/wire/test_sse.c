/* Server-sent events, cut at every place. */
#include "check.h"

#include <errno.h>

#include "../sse_feed.h"

struct vector {
	const char *in;
	const char *out;
};

static const struct vector vectors[] = {
	{"data: a\n\n", "<|a>"},
	{"data: a\r\n\r\n", "<|a>"},
	{"data: a\r\r", "<|a>"},
	{"data: a\r\n\rdata: b\n\r", "<|a><|b>"},
	{"data: a\n\ndata: b\r\n\r\ndata: c\r\r", "<|a><|b><|c>"},
	{"data: one\ndata: two\r\ndata:\rdata: four\n\n", "<|one\ntwo\n\nfour>"},
	{"data:no space\n\ndata:  two spaces\n\n", "<|no space><| two spaces>"},
	{"event: ping\ndata: {}\n\ndata: {}\n\n", "<ping|{}><|{}>"},
	{"event: early\nevent:late\ndata: x\n\n", "<late|x>"},
	{"event: alone\n\ndata: x\n\n", "<|x>"},
	{": a comment\n:\n:data: no\ndata: x\n\n", "<|x>"},
	{"id: 7\nretry: 10000\nnonsense: 1\nnonsense\ndata: x\n\n", "<|x>"},
	{"data\n\n", "<|>"},
	{"data:\n\n", "<|>"},
	{"data\ndata\n\n", "<|\n>"},
	{"\xef\xbb\xbf"
	 "data: x\n\n",
	 "<|x>"},
	{"data: x\n\n\xef\xbb\xbf"
	 "data: y\n\n",
	 "<|x>"},
	{" data: x\n\ndatax: y\n\nDATA: z\n\n", ""},
	{"\n\n\r\n\r\r\n", ""},
	{"data: whole\n\ndata: cut\n", "<|whole>"},
	{"data: whole\n\ndata: cu", "<|whole>"},
	{"data: a:b: c\n\n", "<|a:b: c>"},
	{"", ""},
};

static void check(const char *in, size_t len, size_t max, const unsigned char *sizes,
		  size_t n_sizes, const char *out)
{
	struct sse_feed f;

	sse_feed_init(&f, max);
	sse_feed_all(&f, in, len, sizes, n_sizes);
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, out);
	sse_feed_done(&f);
}

TEST(events_come_out_whole)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++)
		check(vectors[i].in, strlen(vectors[i].in), SSE_MAX, NULL, 0, vectors[i].out);
}

TEST(events_come_out_the_same_cut_at_every_place)
{
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *v = &vectors[i];
		size_t len = strlen(v->in);

		for (size_t cut = 1; cut < len; cut++) {
			const unsigned char sizes[] = {(unsigned char)(cut - 1), 255};

			check(v->in, len, SSE_MAX, sizes, 2, v->out);
		}
		check(v->in, len, SSE_MAX, (const unsigned char[]) {0}, 1, v->out);
	}
}

TEST(bytes_of_any_value_are_kept)
{
	const char in[] = "data: a\0b\xff\n\n";
	struct sse_feed f;

	sse_feed_init(&f, SSE_MAX);
	sse_feed_all(&f, in, sizeof(in) - 1, NULL, 0);
	assert_int_equal(f.out.len, 7);
	assert_memory_equal(f.out.data, "<|a\0b\xff>", 7);
	sse_feed_done(&f);
}

TEST(the_limit_is_exact)
{
	static const unsigned char one[] = {0};

	for (size_t n = 0; n < 2; n++) {
		check("data: 456789\n\n", 14, 12, one, n, "<|456789>");
		check("data: 4567890\n\n", 15, 12, one, n, "! a line longer than 12 bytes");
		check("data:a\n\ndata: 4567890", 21, 12, one, n,
		      "<|a>! a line longer than 12 bytes");
		check("data:12345\ndata:123456\n\n", 24, 12, one, n, "<|12345\n123456>");
		check("data:123456\ndata:123456\n\n", 25, 12, one, n,
		      "! an event longer than 12 bytes");
	}
}

TEST(a_refused_stream_stays_refused)
{
	struct error error = {.code = 0};
	struct sse s;

	sse_init(&s, 4);
	assert_int_equal(sse_push(&s, "12345", 5, sse_feed_note, NULL, &error), REFUSE_TOO_LARGE);
	error.text[0] = '\0';
	assert_int_equal(sse_push(&s, "\n\n", 2, sse_feed_note, NULL, &error), REFUSE_TOO_LARGE);
	assert_string_equal(error.text, "a line longer than 4 bytes");
	sse_done(&s);
}

TEST(a_line_without_end_is_refused)
{
	static char part[65536];
	struct error error;
	struct sse s;
	size_t sent = 0;
	int r = 0;

	memset(part, 'x', sizeof(part));
	sse_init(&s, SSE_MAX);
	while (r == 0 && sent < 10 << 20) {
		r = sse_push(&s, part, sizeof(part), sse_feed_note, NULL, &error);
		sent += sizeof(part);
	}
	assert_int_equal(r, REFUSE_TOO_LARGE);
	assert_int_equal(sent, SSE_MAX + sizeof(part));
	assert_string_equal(error.text, "a line longer than 4194304 bytes");
	assert_null(s.line.data);
	sse_done(&s);
}

TEST(a_large_event_leaves_no_buffer_behind)
{
	static char line[100002] = "data:";
	struct buf out;
	struct sse s;

	memset(line + 5, 'x', sizeof(line) - 7);
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\n';
	buf_init(&out, 1 << 20);
	sse_init(&s, SSE_MAX);
	assert_int_equal(sse_push(&s, line, 5000, sse_feed_note, &out, NULL), 0);
	assert_int_equal(sse_push(&s, line + 5000, sizeof(line) - 5000, sse_feed_note, &out, NULL),
			 0);
	assert_int_equal(out.len, sizeof(line) - 7 + 3);
	assert_null(s.line.data);
	assert_null(s.data.data);
	sse_done(&s);
	buf_done(&out);
}

static int stop_at_first(void *arg, const struct sse_event *e)
{
	unsigned *n = arg;

	assert_true(text_is(e->data, "a"));
	++*n;
	return -ECANCELED;
}

TEST(the_reader_may_stop)
{
	unsigned n = 0;
	struct sse s;

	sse_init(&s, SSE_MAX);
	assert_int_equal(sse_push(&s, "data: a\n\ndata: b\n\n", 18, stop_at_first, &n, NULL),
			 -ECANCELED);
	assert_int_equal(n, 1);
	sse_done(&s);
}

TEST(a_name_of_any_length_does_no_harm)
{
	static char in[400] = "event:";
	char out[128];
	struct sse_feed f;

	memset(in + 6, 'n', 300);
	strcpy(in + 306, "\ndata: x\n\n");
	memset(out, 'n', sizeof(out));
	out[0] = '<';
	strcpy(out + 1 + SSE_NAME_MAX, "|x>");
	sse_feed_init(&f, SSE_MAX);
	sse_feed_all(&f, in, strlen(in), NULL, 0);
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, out);
	sse_feed_done(&f);
}
