/* HTTP responses: what is a body, where it ends, and what is refused, however the bytes are cut. */
#include "check.h"

#include "wire/http/http1_response.h"

static const struct framing_limits limits = {
	.message = 1000, .http_line = 200, .http_headers = 400, .n_headers = 8};

/*
 * Feeds the bytes in pieces of `piece` and writes down what comes out: "200+:body"
 * for a message (+ keeps the connection, - does not), "!parse" or "!large" for a
 * refusal, "..." when it ends in the middle.
 */
static void run(const char *in, size_t len, size_t piece, bool eof, char *log, size_t log_size)
{
	struct http1_response *p = calloc(1, framing_http_response.state_size);
	char *held = malloc(len + 1);
	size_t n_held = 0;
	size_t offered = 0;
	size_t at = 0;
	bool at_end = false;

	assert_non_null(p);
	assert_non_null(held);
	framing_http_response.init(p, &limits);
	while (!at_end) {
		size_t n = len - offered < piece ? len - offered : piece;
		enum frame_kind kind;

		memcpy(held + n_held, in + offered, n);
		n_held += n;
		offered += n;
		at_end = offered == len;
		do {
			/* Memory of exactly that size, so that a sanitizer sees one byte too far. */
			char *exact = malloc(n_held ? n_held : 1);
			struct frame frame = {0};
			size_t used = 0;

			assert_non_null(exact);
			memcpy(exact, held, n_held);
			kind = framing_http_response.next(p, exact, n_held, at_end && eof, &used,
							  &frame);
			assert_true(used <= n_held);
			if (kind == FRAME_MESSAGE) {
				assert_int_equal(frame.status, p->status);
				at += (size_t)snprintf(log + at, log_size - at, "%d%c:%.*s ",
						       frame.status, p->keep_alive ? '+' : '-',
						       (int)frame.len,
						       frame.data ? frame.data : "");
			}
			if (kind == FRAME_REFUSED) {
				at += (size_t)snprintf(
					log + at, log_size - at, "!%s ",
					frame.error.code == REFUSE_TOO_LARGE ? "large" : "parse");
				at_end = true;
			}
			n_held -= used;
			memmove(held, held + used, n_held);
			free(exact);
		} while (kind == FRAME_MESSAGE && n_held > 0);
		if (at_end && kind == FRAME_MORE && framing_http_response.in_message(p))
			at += (size_t)snprintf(log + at, log_size - at, "... ");
	}
	framing_http_response.done(p);
	free(p);
	free(held);
	log[at > 0 ? at - 1 : 0] = '\0';
}

static void expect_cut(const char *in, bool eof, const char *expected)
{
	static const size_t pieces[] = {1, 2, 3, 7, 64, 1 << 20};
	char log[4096];

	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		run(in, strlen(in), pieces[i], eof, log, sizeof(log));
		if (strcmp(log, expected) != 0)
			print_error("in pieces of %zu: %s\n", pieces[i], in);
		assert_string_equal(log, expected);
	}
}

static void expect(const char *in, const char *expected)
{
	expect_cut(in, false, expected);
}

#define OK "HTTP/1.1 200 OK\r\n"

TEST(length_ends_a_body)
{
	expect(OK "Content-Length: 2\r\n\r\n{}", "200+:{}");
	expect(OK "content-length:0\r\n\r\n", "200+:");
	expect(OK "Content-Length: 3\r\n\r\n{}", "...");
	expect(OK "X: y\r\nContent-Length: \t 2 \t\r\n\r\n{}", "200+:{}");
	expect("HTTP/1.1 500 \r\nContent-Length: 1\r\n\r\nx", "500+:x");
	expect("HTTP/1.1 404\r\nContent-Length: 1\r\n\r\nx", "404+:x");
}

TEST(responses_follow_each_other)
{
	expect(OK "Content-Length: 2\r\n\r\n{}" OK "Content-Length: 3\r\n\r\n{1}",
	       "200+:{} 200+:{1}");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n" OK
		  "Content-Length: 1\r\n\r\nx",
	       "200+:ab 200+:x");
	expect(OK "Content-Length: 1\r\n\r\na" OK "Content-Le", "200+:a ...");
}

TEST(chunks_are_joined)
{
	expect(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
	       "200+:abc0123456789");
	expect(OK "Transfer-Encoding: Chunked\r\n\r\n1;name=\"x\"\r\na\r\n00\r\nTrailer: t\r\n\r\n",
	       "200+:a");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "200+:");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n3\r\nab", "...");
}

TEST(bad_chunks_are_refused)
{
	expect(OK "Transfer-Encoding: chunked\r\n\r\n\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n+1\r\na\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n1 \r\na\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n1\na\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\rX", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n0\r\nno colon\r\n\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffff\r\n", "!large");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n3e9\r\n", "!large");
	expect(OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n3e8\r\n", "!large");
}

TEST(without_a_length_the_connection_ends_it)
{
	expect_cut(OK "\r\n{\"a\":1}", true, "200-:{\"a\":1}");
	expect_cut(OK "\r\n", true, "200-:");
	expect(OK "\r\n{", "...");
	expect_cut("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nx", true, "200-:x");
	expect_cut(OK "Content-Length: 3\r\n\r\nab", true, "...");
}

TEST(some_have_no_body)
{
	expect("HTTP/1.1 204 No Content\r\n\r\n", "204+:");
	expect("HTTP/1.1 204 No Content\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", "204+: 200+:x");
	expect("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304+:");
}

TEST(interim_responses_are_skipped)
{
	expect("HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 2\r\n\r\n{}", "200+:{}");
	expect("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100\r\n\r\n" OK
	       "Content-Length: 2\r\n\r\n{}",
	       "200+:{}");
	expect("HTTP/1.1 101 Switching Protocols\r\n\r\n", "!parse");
}

TEST(keeping_the_connection_follows_version_and_header)
{
	expect(OK "Connection: close\r\nContent-Length: 0\r\n\r\n", "200-:");
	expect(OK "Connection: x, Close ,y\r\nContent-Length: 0\r\n\r\n", "200-:");
	expect(OK "Connection: closed\r\nContent-Length: 0\r\n\r\n", "200+:");
	expect("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "200-:");
	expect("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", "200+:");
}

TEST(ambiguous_lengths_are_refused)
{
	expect(OK "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", "!parse");
	expect(OK "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", "!parse");
	expect(OK "Content-Length: 2, 2\r\n\r\n{}", "!parse");
	expect(OK "Content-Length: +2\r\n\r\n{}", "!parse");
	expect(OK "Content-Length: \r\n\r\n{}", "!parse");
	expect(OK "Transfer-Encoding: gzip, chunked\r\n\r\n", "!parse");
	expect(OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "!parse");
	expect("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "!parse");
}

TEST(malformed_heads_are_refused)
{
	expect("HTTP/2 200 OK\r\n\r\n", "!parse");
	expect("HTTP/1.1 20 OK\r\n\r\n", "!parse");
	expect("HTTP/1.1 2000 OK\r\n\r\n", "!parse");
	expect("HTTP/1.1 700 OK\r\n\r\n", "!parse");
	expect("{\"jsonrpc\":\"2.0\"}\r\n", "!parse");
	expect("\r\n" OK "\r\n", "!parse");
	expect("HTTP/1.1 200 OK\n\n", "!parse");
	expect(OK "A: b\nContent-Length: 0\r\n\r\n", "!parse");
	expect(OK "A : b\r\n\r\n", "!parse");
	expect(OK ": b\r\n\r\n", "!parse");
	expect(OK " folded\r\n\r\n", "!parse");
	expect(OK "A: b\x01\r\n\r\n", "!parse");
	expect(OK "A\xc3\xa9: b\r\n\r\n", "!parse");
}

TEST(limits_are_kept)
{
	char big[2048];
	size_t n;

	expect(OK "Content-Length: 1001\r\n\r\n", "!large");
	expect(OK "Content-Length: 99999999999999999999999\r\n\r\n", "!large");
	n = (size_t)snprintf(big, sizeof(big), OK "Content-Length: 1000\r\n\r\n%01000d", 7);
	assert_int_equal(big[n - 1], '7');
	big[n - 1] = '\0';
	expect(big, "...");
	snprintf(big, sizeof(big), OK "A: %0200d", 0);
	expect(big, "!large");
	snprintf(big, sizeof(big), OK "A: %0150d\r\nB: %0150d\r\nC: %0150d\r\n", 0, 0, 0);
	expect(big, "!large");
	expect(OK "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n6:\r\n7:\r\n8:\r\n9:\r\n", "!large");
	snprintf(big, sizeof(big), OK "\r\n%01001d", 0);
	expect_cut(big, true, "!large");
}

TEST(nothing_is_in_the_middle_of_nothing)
{
	expect_cut("", true, "");
	expect(OK, "...");
	expect("H", "...");
}
