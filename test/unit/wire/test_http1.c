/* HTTP requests cut anywhere, what is refused and why, and the responses. */
#include "framing_vectors.h"

static const struct framing_limits limits = {
	.message = 64, .http_line = 48, .http_headers = 160, .n_headers = 6};

#define BYTES(literal) .in = (literal), .len = sizeof(literal) - 1
#define HOST           "Host: localhost\r\n"
#define GET            "GET / HTTP/1.1\r\n" HOST
#define POST           "POST /rpc HTTP/1.1\r\n" HOST
#define CHUNKED        POST "Transfer-Encoding: chunked\r\n\r\n"
#define GOT_GET        "GET / 1.1 keep Host=localhost;"
#define GOT_POST       "POST /rpc 1.1 keep Host=localhost;"
#define GOT_CHUNKED    GOT_POST " Transfer-Encoding=chunked; "

#define CHECK(vectors) VECTORS_CHECK(&framing_http, &limits, vectors)

TEST(requests_come_out_whole)
{
	static const struct vector vectors[] = {
		{GET "\r\n", .out = GOT_GET " <>\n"},
		{POST "Content-Length: 2\r\n\r\n{}", .out = GOT_POST " Content-Length=2; <{}>\n"},
		{POST "content-LENGTH:002\r\n\r\n{}",
		 .out = GOT_POST " content-LENGTH=002; <{}>\n"},
		{POST "Content-Length: 0\r\n\r\n", .out = GOT_POST " Content-Length=0; <>\n"},
		{POST "\r\n", .out = GOT_POST " <>\n"},
		{"M-SEARCH * HTTP/1.1\r\n" HOST "\r\n",
		 .out = "M-SEARCH * 1.1 keep Host=localhost; <>\n"},
		{GET "X:\r\nY: \t \r\nZ: \ta b\t \r\n\r\n", .out = GOT_GET " X=; Y=; Z=a b; <>\n"},
		{GET "X: a\tb\r\nY: \xc3\xa4 0123456789\tx\r\n\r\n",
		 .out = GOT_GET " X=a\tb; Y=\xc3\xa4 0123456789\tx; <>\n"},
		{GET "!#$%&'*+-.^_`|~: x\r\n\r\n", .out = GOT_GET " !#$%&'*+-.^_`|~=x; <>\n"},
	};

	CHECK(vectors);
}

TEST(pipelined_requests_come_out_in_order)
{
	static const struct vector vectors[] = {
		{POST "Content-Length: 1\r\n\r\n1" GET "\r\n" POST "Content-Length: 2\r\n\r\n22",
		 .out = GOT_POST " Content-Length=1; <1>\n" GOT_GET " <>\n" GOT_POST
				 " Content-Length=2; <22>\n"},
		{CHUNKED "1\r\na\r\n0\r\n\r\n" CHUNKED "0\r\n\r\n" GET "\r\n",
		 .out = GOT_CHUNKED "<a>\n" GOT_CHUNKED "<>\n" GOT_GET " <>\n"},
	};

	CHECK(vectors);
}

TEST(a_host_in_the_target_is_told_apart)
{
	static const struct vector vectors[] = {
		{"GET http://[::1]:8765/rpc?x=1 HTTP/1.1\r\n" HOST "\r\n",
		 .out = "GET [::1]:8765 /rpc?x=1 1.1 keep Host=localhost; <>\n"},
		{"GET HTTP://localhost HTTP/1.1\r\n" HOST "\r\n",
		 .out = "GET localhost / 1.1 keep Host=localhost; <>\n"},
		{"GET http://a/ HTTP/1.0\r\n\r\n", .out = "GET a / 1.0 close <>\n"},
		{"GET http://a?x HTTP/1.0\r\n\r\n", .out = "GET a ?x 1.0 close <>\n"},
		{"GET http:///x HTTP/1.0\r\n\r\n", .out = "GET  /x 1.0 close <>\n"},
		{"GET http:// HTTP/1.0\r\n\r\n", .out = "GET http:// 1.0 close <>\n"},
		{"GET https://a/ HTTP/1.0\r\n\r\n", .out = "GET https://a/ 1.0 close <>\n"},
		{"POST http://a/rpc HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
		 "2\r\n{}\r\n0\r\n\r\n",
		 .out = "POST a /rpc 1.1 keep Host=localhost; Transfer-Encoding=chunked; <{}>\n"},
	};

	CHECK(vectors);
}

TEST(two_blank_lines_before_a_request_are_tolerated)
{
	static const struct vector vectors[] = {
		{"\r\n" GET "\r\n", .out = GOT_GET " <>\n"},
		{"\r\n\r\n" GET "\r\n\r\n\r\n" GET "\r\n", .out = GOT_GET " <>\n" GOT_GET " <>\n"},
		{"\r\n\r\n\r\n" GET "\r\n", .out = "! parse 400 Invalid request line: \n"},
		{"\n" GET "\r\n", .out = "! parse 400 Invalid request line: \n"},
		{"\r\n\r\n", .eof = true, .out = ""},
	};

	CHECK(vectors);
}

TEST(bad_request_lines_are_refused)
{
#define BAD(line)    "! parse 400 Invalid request line: " line "\n"
#define OLD(version) "! parse 505 HTTP version not supported: " version "\n"
	static const struct vector vectors[] = {
		{"GARBAGE\r\n", .out = BAD("GARBAGE")},
		{"GARBAGE\n", .out = BAD("GARBAGE")},
		{"GET /\r\n", .out = BAD("GET /")},
		{"GET  / HTTP/1.1\r\n", .out = BAD("GET  / HTTP/1.1")},
		{"GET /  HTTP/1.1\r\n", .out = BAD("GET /  HTTP/1.1")},
		{"GET / HTTP/1.1 \r\n", .out = BAD("GET / HTTP/1.1 ")},
		{" GET / HTTP/1.1\r\n", .out = BAD(" GET / HTTP/1.1")},
		{"GET\t/ HTTP/1.1\r\n", .out = BAD("GET?/ HTTP/1.1")},
		{"GET /\t HTTP/1.1\r\n", .out = BAD("GET /? HTTP/1.1")},
		{"GET /\x7f HTTP/1.1\r\n", .out = BAD("GET /? HTTP/1.1")},
		{"GET /\xc3\xa4 HTTP/1.1\r\n", .out = BAD("GET /?? HTTP/1.1")},
		{BYTES("GET /\0 HTTP/1.1\r\n"), .out = BAD("GET /? HTTP/1.1")},
		{"GET /\r HTTP/1.1\r\n", .out = BAD("GET /? HTTP/1.1")},
		{"G@T / HTTP/1.1\r\n", .out = BAD("G@T / HTTP/1.1")},
		{"GET / http/1.1\r\n", .out = BAD("GET / http/1.1")},
		{"GET / HTTP/1.10\r\n", .out = BAD("GET / HTTP/1.10")},
		{"GET / HTTP/1.1\r\r\n", .out = BAD("GET / HTTP/1.1?")},
		{"GET / HTTP/1.1\n" HOST "\r\n", .out = BAD("it must end in CRLF")},
		{"GET / HTTP/2.0\r\n", .out = OLD("HTTP/2.0")},
		{"GET / HTTP/1.2\r\n", .out = OLD("HTTP/1.2")},
		{"GET / HTTP/0.9\r\n", .out = OLD("HTTP/0.9")},
	};

	CHECK(vectors);
}

TEST(bad_header_lines_are_refused)
{
#define BAD_LINE(name)  "! parse 400 Invalid header line: " name "\n"
#define BAD_VALUE(name) "! parse 400 Invalid header value: " name "\n"
	static const struct vector vectors[] = {
		{GET "X : 1\r\n\r\n", .out = BAD_LINE("X")},
		{GET "X: 1\r\n folded\r\n\r\n", .out = BAD_LINE("")},
		{GET "X: 1\r\n\tfolded\r\n\r\n", .out = BAD_LINE("")},
		{GET " X: 1\r\n\r\n", .out = BAD_LINE("")},
		{GET ": 1\r\n\r\n", .out = BAD_LINE("")},
		{GET "secret\r\n\r\n", .out = BAD_LINE("secret")},
		{GET "X(Y): 1\r\n\r\n", .out = BAD_LINE("X")},
		{BYTES(GET "X\0: 1\r\n\r\n"), .out = BAD_LINE("X")},
		{BYTES(GET "X: a\0b\r\n\r\n"), .out = BAD_VALUE("X")},
		{GET "X: 0123456789\x1f\r\n\r\n", .out = BAD_VALUE("X")},
		{GET "X: 01234567890\x7f\r\n\r\n", .out = BAD_VALUE("X")},
		{GET "X: a\rContent-Length: 5\r\n\r\n", .out = BAD_VALUE("X")},
		{GET "X: 1\r\r\n\r\n", .out = BAD_VALUE("X")},
		{GET "X: 1\n\r\n", .out = BAD_LINE("it must end in CRLF")},
		{GET "\n", .out = BAD_LINE("it must end in CRLF")},
		{GET "X: 1\r\n\n", .out = BAD_LINE("it must end in CRLF")},
	};

	CHECK(vectors);
}

/* Values are checked eight bytes at a time, so every byte is tried at every place. */
TEST(no_control_character_hides_in_a_value)
{
	static const char in[] = GET "X: 012345678901234567\r\n\r\n";
	const size_t value_at = sizeof(GET "X: ") - 1;

	for (size_t at = 1; at < 17; at++) {
		for (int c = 0; c < 256; c++) {
			bool good = c == '\t' || (c >= 0x20 && c != 0x7f);
			char copy[sizeof(in)];
			struct frame frame;
			struct feed f;
			size_t used;

			memcpy(copy, in, sizeof(in));
			copy[value_at + at] = (char)c;
			feed_init(&f, &framing_http, &limits);
			assert_int_equal(framing_http.next(f.state, copy, sizeof(in) - 1, false,
							   &used, &frame),
					 good ? FRAME_MESSAGE : FRAME_REFUSED);
			feed_done(&f);
		}
	}
}

TEST(host_must_come_once)
{
	static const struct vector vectors[] = {
		{"GET / HTTP/1.1\r\n\r\n", .out = "! parse 400 Missing Host header\n"},
		{GET HOST "\r\n", .out = "! parse 400 Duplicate Host\n"},
		{"GET / HTTP/1.0\r\n" HOST "HOST: x\r\n\r\n",
		 .out = "! parse 400 Duplicate Host\n"},
		{"GET / HTTP/1.0\r\n\r\n", .out = "GET / 1.0 close <>\n"},
	};

	CHECK(vectors);
}

TEST(ambiguous_bodies_are_refused)
{
#define BAD_LENGTH(text)   "! parse 400 Invalid Content-Length: " text "\n"
#define BAD_ENCODING(text) "! parse 400 Invalid Transfer-Encoding: " text "\n"
	static const struct vector vectors[] = {
		{POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n1",
		 .out = "! parse 400 Duplicate Content-Length\n"},
		{POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		 .out = "! parse 400 both Content-Length and Transfer-Encoding are set\n"},
		{POST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
		 .out = "! parse 400 both Content-Length and Transfer-Encoding are set\n"},
		{POST "Content-Length: abc\r\n\r\n", .out = BAD_LENGTH("abc")},
		{POST "Content-Length: +5\r\n\r\n", .out = BAD_LENGTH("+5")},
		{POST "Content-Length: -1\r\n\r\n", .out = BAD_LENGTH("-1")},
		{POST "Content-Length: 1, 1\r\n\r\n", .out = BAD_LENGTH("1, 1")},
		{POST "Content-Length: 1 1\r\n\r\n", .out = BAD_LENGTH("1 1")},
		{POST "Content-Length: 0x1\r\n\r\n", .out = BAD_LENGTH("0x1")},
		{POST "Content-Length: 1.0\r\n\r\n", .out = BAD_LENGTH("1.0")},
		{POST "Content-Length:\r\n\r\n", .out = BAD_LENGTH("")},
		{POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		 .out = "! parse 400 Duplicate Transfer-Encoding\n"},
		{POST "Transfer-Encoding: chunked, identity\r\n\r\n",
		 .out = BAD_ENCODING("chunked, identity")},
		{POST "Transfer-Encoding: identity, chunked\r\n\r\n",
		 .out = BAD_ENCODING("identity, chunked")},
		{POST "Transfer-Encoding:\r\n\r\n", .out = BAD_ENCODING("")},
		{POST "Transfer-Encoding: xchunked\r\n\r\n",
		 .out = "! parse 501 Transfer-Encoding not supported: xchunked\n"},
		{POST "Transfer-Encoding: \x0b"
		      "chunked\r\n\r\n",
		 .out = BAD_VALUE("Transfer-Encoding")},
		{POST "Transfer-Encoding: gzip\r\n\r\n",
		 .out = "! parse 501 Transfer-Encoding not supported: gzip\n"},
		{POST "Transfer-Encoding : chunked\r\n\r\n", .out = BAD_LINE("Transfer-Encoding")},
		{"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		 .out = "! parse 400 Transfer-Encoding in HTTP/1.0\n"},
	};

	CHECK(vectors);
}

TEST(chunked_bodies_come_out_whole)
{
	/* more than half of what is allowed, in number and in bytes */
#define NINETY                                                                                     \
	"012345678901234567890123456789012345678901234"                                            \
	"567890123456789012345678901234567890123456789"
#define TRAILERS "A: " NINETY "\r\nB:\r\nC:\r\nD:\r\n"
	static const struct vector vectors[] = {
		{CHUNKED "0\r\n\r\n", .out = GOT_CHUNKED "<>\n"},
		{CHUNKED "2\r\n{}\r\n0\r\n\r\n", .out = GOT_CHUNKED "<{}>\n"},
		{CHUNKED "1\r\n{\r\n0a\r\n0123456789\r\nB\r\n\r\n\r\n\r\n\r\n\r\n}\r\n000\r\n\r\n",
		 .out = GOT_CHUNKED "<{0123456789\r\n\r\n\r\n\r\n\r\n}>\n"},
		{CHUNKED "1;a=b;c=\"d e\"\r\nx\r\n0;x\r\n\r\n", .out = GOT_CHUNKED "<x>\n"},
		{CHUNKED "1\r\nx\r\n0\r\nA: b\r\nContent-Length: 7\r\n\r\n",
		 .out = GOT_CHUNKED "<x>\n"},
		{CHUNKED "0\r\n" TRAILERS "\r\n" CHUNKED "0\r\n" TRAILERS "\r\n",
		 .out = GOT_CHUNKED "<>\n" GOT_CHUNKED "<>\n"},
		{POST "transfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n",
		 .out = GOT_POST " transfer-encoding=CHUNKED; <>\n"},
		{CHUNKED "0000000000000001\r\nx\r\n0\r\n\r\n", .out = GOT_CHUNKED "<x>\n"},
	};

	CHECK(vectors);
}

TEST(bad_chunks_are_refused)
{
#define BAD_SIZE      "! parse 400 Invalid chunk size\n"
#define NO_CRLF(what) "! parse 400 " what " does not end in CRLF\n"
	static const struct vector vectors[] = {
		{CHUNKED "1\nx\r\n0\r\n\r\n", .out = NO_CRLF("chunk size line")},
		{CHUNKED "1;a\nx\r\n0\r\n\r\n", .out = NO_CRLF("chunk size line")},
		{CHUNKED "\r\n", .out = BAD_SIZE},
		{CHUNKED "x\r\n", .out = BAD_SIZE},
		{CHUNKED "-1\r\n", .out = BAD_SIZE},
		{CHUNKED "+1\r\n", .out = BAD_SIZE},
		{CHUNKED "0x1\r\n", .out = BAD_SIZE},
		{CHUNKED " 1\r\n", .out = BAD_SIZE},
		{CHUNKED "1 \r\n", .out = BAD_SIZE},
		{CHUNKED "1 ;a\r\n", .out = BAD_SIZE},
		{CHUNKED "1;a\rb\r\n", .out = BAD_SIZE},
		{CHUNKED "00000000000000001\r\n", .out = BAD_SIZE},
		{CHUNKED "1\r\nxy\r\n", .out = "! parse 400 chunk is too long\n"},
		{CHUNKED "1\r\nx\n0\r\n\r\n", .out = NO_CRLF("chunk")},
		{CHUNKED "0\r\nbad trailer\r\n\r\n", .out = BAD_LINE("bad")},
		{CHUNKED "0\r\nA: b\n\r\n", .out = NO_CRLF("trailer")},
		{CHUNKED "0\r\n\n", .out = NO_CRLF("trailer")},
	};

	CHECK(vectors);
}

TEST(limits_of_the_head_are_exact)
{
#define TOO_LONG "! large 414 request line longer than 48 bytes\n"
#define TOO_MUCH "! large 431 headers larger than 160 bytes\n"
#define TEN      "0123456789"
	/* 17 bytes of Host, 143 of X */
#define X_143 "X: " TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "01234567"
	static const struct vector vectors[] = {
		{"GET /" TEN TEN TEN "0123 HTTP/1.1\r\n" HOST "\r\n",
		 .out = "GET /" TEN TEN TEN "0123 1.1 keep Host=localhost; <>\n"},
		{"GET /" TEN TEN TEN "01234 HTTP/1.1\r\n" HOST "\r\n", .out = TOO_LONG},
		{TEN TEN TEN TEN TEN, .out = TOO_LONG},
		{TEN TEN TEN TEN TEN "\n", .out = TOO_LONG},
		{GET X_143 "\r\n\r\n", .out = GOT_GET
				       " X=" TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
				       "01234567; <>\n"},
		{GET X_143 "8\r\n\r\n", .out = TOO_MUCH},
		{GET X_143 "890", .out = TOO_MUCH},
		{GET X_143 "\r\nY:", .out = TOO_MUCH},
		{GET "A:\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n",
		 .out = GOT_GET " A=; B=; C=; D=; E=; <>\n"},
		{GET "A:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:\r\n\r\n",
		 .out = "! large 431 more than 6 headers\n"},
		{CHUNKED "0\r\nA:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:\r\n\r\n",
		 .out = GOT_CHUNKED "<>\n"},
		{CHUNKED "0\r\nA:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:\r\nG:\r\n\r\n",
		 .out = "! large 431 more than 6 trailers\n"},
		{CHUNKED "0\r\nA:\r\n" X_143 TEN TEN, .out = "! large 431 trailer is too long\n"},
	};

	CHECK(vectors);
}

TEST(limit_of_the_body_is_exact)
{
#define BODY_64    TEN TEN TEN TEN TEN TEN "0123"
#define TOO_BIG(n) "! large 413 Request body too large: " n " > 64\n"
	static const struct vector vectors[] = {
		{POST "Content-Length: 64\r\n\r\n" BODY_64,
		 .out = GOT_POST " Content-Length=64; <" BODY_64 ">\n"},
		{POST "Content-Length: 65\r\n\r\n", .out = TOO_BIG("65")},
		{POST "Content-Length: 18446744073709551615\r\n\r\n",
		 .out = TOO_BIG("18446744073709551615")},
		{POST "Content-Length: 18446744073709551617\r\n\r\n",
		 .out = TOO_BIG("18446744073709551615")},
		{POST "Content-Length: 99999999999999999999999999999999999\r\n\r\n",
		 .out = TOO_BIG("18446744073709551615")},
		{CHUNKED "40\r\n" BODY_64 "\r\n0\r\n\r\n", .out = GOT_CHUNKED "<" BODY_64 ">\n"},
		{CHUNKED "41\r\n", .out = TOO_BIG("65")},
		{CHUNKED "3f\r\n" TEN TEN TEN TEN TEN TEN "012\r\n2\r\n", .out = TOO_BIG("65")},
		{CHUNKED "ffffffffffffffff\r\n", .out = TOO_BIG("18446744073709551615")},
		{CHUNKED "1\r\nx\r\nffffffffffffffff\r\n", .out = TOO_BIG("18446744073709551615")},
	};

	CHECK(vectors);
}

TEST(chunk_lines_are_bounded)
{
	char in[600];
	struct feed f;
	int n = snprintf(in, sizeof(in), "%s1;%0300d", CHUNKED, 0);

	feed_init(&f, &framing_http, &limits);
	feed_all(&f, in, (size_t)n, NULL, 0, false);
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, "! parse 400 chunk size line is too long\n");
	feed_done(&f);
}

TEST(an_early_end_is_refused)
{
#define INCOMPLETE "! parse 400 Incomplete request\n"
#define NO_LAST    "! parse 400 Incomplete body: the last chunk is missing\n"
	static const struct vector vectors[] = {
		{"", .eof = true, .out = ""},
		{GET "\r\n", .eof = true, .out = GOT_GET " <>\n"},
		{"G", .eof = true, .out = INCOMPLETE},
		{GET, .eof = true, .out = INCOMPLETE},
		{GET "\r", .eof = true, .out = INCOMPLETE},
		{POST "Content-Length: 50\r\n\r\nabc", .eof = true,
		 .out = "! parse 400 Incomplete body: expected 50, got 3\n"},
		{POST "Content-Length: 1\r\n\r\n", .eof = true,
		 .out = "! parse 400 Incomplete body: expected 1, got 0\n"},
		{CHUNKED, .eof = true, .out = NO_LAST},
		{CHUNKED "1\r\nx\r\n", .eof = true, .out = NO_LAST},
		{CHUNKED "1\r\nx\r\n0\r\n", .eof = true, .out = NO_LAST},
	};

	CHECK(vectors);
}

TEST(connection_header_decides_keep_alive)
{
#define V11(headers) "GET / HTTP/1.1\r\nHost:\r\n" headers "\r\n"
#define V10(headers) "GET / HTTP/1.0\r\n" headers "\r\n"
	static const struct {
		const char *in;
		bool keep;
		bool upgrade;
	} table[] = {
		{V11(""), true, false},
		{V11("Connection: keep-alive\r\n"), true, false},
		{V11("Connection: close\r\n"), false, false},
		{V11("connection: foo, CLOSE\r\n"), false, false},
		{V11("Connection: keep-alive, close\r\n"), false, false},
		{V11("Connection: close\r\nConnection: keep-alive\r\n"), false, false},
		{V11("Connection: closed\r\n"), true, false},
		{V11("Connection: Upgrade\r\nUpgrade: websocket\r\n"), true, true},
		{V10(""), false, false},
		{V10("Connection: keep-alive\r\n"), true, false},
		{V10("Connection: foo ,\tKeep-Alive\t,\r\n"), true, false},
		{V10("Connection: keep-alive\r\nConnection: close\r\n"), false, false},
		{V10("Connection: close\r\n"), false, false},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *in = table[i].in;
		struct frame frame;
		struct feed f;
		size_t used;

		feed_init(&f, &framing_http, &limits);
		assert_int_equal(framing_http.next(f.state, in, strlen(in), false, &used, &frame),
				 FRAME_MESSAGE);
		assert_int_equal(frame.http->keep_alive, table[i].keep);
		assert_int_equal(frame.http->upgrade, table[i].upgrade);
		feed_done(&f);
	}
}

static enum frame_kind first_kind(const char *in, struct feed *f)
{
	struct frame frame = {0};
	size_t used;
	enum frame_kind kind;

	feed_init(f, &framing_http, &limits);
	kind = framing_http.next(f->state, in, strlen(in), false, &used, &frame);
	if (kind == FRAME_HEAD) {
		assert_true(text_is(frame.http->target, "/rpc"));
		assert_int_equal(used, 0);
		kind = framing_http.next(f->state, in, strlen(in), false, &used, &frame);
		assert_int_not_equal(kind, FRAME_HEAD);
		kind = FRAME_HEAD;
	}
	return kind;
}

TEST(a_head_is_shown_once_before_its_body_is_waited_for)
{
	static const struct {
		const char *in;
		enum frame_kind kind;
	} table[] = {
		{POST "Content-Length: 2\r\n\r\n", FRAME_HEAD},
		{POST "Content-Length: 2\r\n\r\n{", FRAME_HEAD},
		{POST "Content-Length: 65\r\n\r\n", FRAME_HEAD}, /* before it is too large */
		{POST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", FRAME_HEAD},
		{CHUNKED, FRAME_HEAD},
		{CHUNKED "0\r\n\r\n", FRAME_HEAD},
		{POST "Content-Length: 2\r\n\r\n{}", FRAME_MESSAGE},
		{POST "\r\n", FRAME_MESSAGE},
		{POST "Content-Length: 2\r\n", FRAME_MORE},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct feed f;

		assert_int_equal(first_kind(table[i].in, &f), table[i].kind);
		feed_done(&f);
	}
}

TEST(every_request_that_waits_is_told_to_go_on)
{
	static const char head[] = POST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n";
	struct feed f;

	feed_init(&f, &framing_http, &limits);
	for (unsigned i = 1; i <= 3; i++) {
		feed_bytes(&f, head, sizeof(head) - 1, false);
		assert_int_equal(f.n_continue, i);
		feed_bytes(&f, "1", 1, false);
	}
	feed_done(&f);
}

static unsigned continues(const char *first, const char *then, const char *want)
{
	struct feed f;
	unsigned n;

	feed_init(&f, &framing_http, &limits);
	feed_bytes(&f, first, strlen(first), false);
	n = f.n_continue;
	feed_all(&f, then, strlen(then), (const unsigned char[]) {0}, 1, false);
	assert_int_equal(f.n_continue, n); /* asked once at most */
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, want);
	feed_done(&f);
	return n;
}

TEST(expect_is_answered_once_and_only_when_waited_for)
{
#define EXPECT                "Expect: 100-Continue\r\n"
#define EXPECTING             POST EXPECT "Content-Length: 2\r\n\r\n"
#define GOT_EXPECTING         GOT_POST " Expect=100-Continue; Content-Length=2; <{}>\n"
#define GOT_EXPECTING_CHUNKED GOT_POST " Expect=100-Continue; Transfer-Encoding=chunked; <{}>\n"
	assert_int_equal(continues(EXPECTING, "{}", GOT_EXPECTING), 1);
	assert_int_equal(continues(EXPECTING "{", "}", GOT_EXPECTING), 1);
	assert_int_equal(continues(EXPECTING "{}", "", GOT_EXPECTING), 0);
	assert_int_equal(continues(EXPECTING "{}" EXPECTING, "{}", GOT_EXPECTING GOT_EXPECTING), 1);
	assert_int_equal(continues(POST EXPECT "Transfer-Encoding: chunked\r\n\r\n",
				   "2\r\n{}\r\n0\r\n\r\n", GOT_EXPECTING_CHUNKED),
			 1);
	assert_int_equal(continues(POST EXPECT "Transfer-Encoding: chunked\r\n\r\n"
					       "2\r\n{}\r\n0\r\n\r\n",
				   "", GOT_EXPECTING_CHUNKED),
			 0);
	assert_int_equal(continues("POST / HTTP/1.0\r\n" EXPECT "Content-Length: 2\r\n\r\n", "{}",
				   "POST / 1.0 close Expect=100-Continue; Content-Length=2; "
				   "<{}>\n"),
			 0);
	assert_int_equal(continues(POST EXPECT "Content-Length: 65\r\n\r\n", "", TOO_BIG("65")), 0);
	assert_int_equal(continues(POST "Expect: tea\r\n\r\n", "",
				   "! parse 417 Expectation not supported: tea\n"),
			 0);
}

TEST(in_message_from_first_byte_to_last)
{
	struct feed f;

	feed_init(&f, &framing_http, &limits);
	assert_false(framing_http.in_message(f.state));
	feed_bytes(&f, "\r\n", 2, false);
	assert_false(framing_http.in_message(f.state));
	feed_bytes(&f, "P", 1, false);
	assert_true(framing_http.in_message(f.state));
	feed_bytes(&f, "OST / HTTP/1.0\r\nContent-Length: 1\r\n\r\n", 37, false);
	assert_true(framing_http.in_message(f.state));
	feed_bytes(&f, "x", 1, false);
	assert_false(framing_http.in_message(f.state));
	feed_bytes(&f, CHUNKED, sizeof(CHUNKED) - 1, false);
	assert_true(framing_http.in_message(f.state));
	feed_bytes(&f, "0\r\n\r\n", 5, false);
	assert_false(framing_http.in_message(f.state));
	feed_done(&f);
}

/* More than the header array starts with, in one byte pieces, so that all of them move. */
TEST(many_headers_follow_the_input)
{
	static const struct framing_limits wide = {
		.message = 64, .http_line = 64, .http_headers = 4096, .n_headers = 100};
	static const unsigned char one[] = {0};
	struct buf in, want;
	struct feed f;

	buf_init(&in, 1 << 16);
	buf_init(&want, 1 << 16);
	buf_add_str(&in, "GET / HTTP/1.0\r\n");
	buf_add_str(&want, "GET / 1.0 close");
	for (int i = 0; i < 100; i++) {
		buf_printf(&in, "Name-%d: value %d\r\n", i, i * i);
		buf_printf(&want, " Name-%d=value %d;", i, i * i);
	}
	buf_add_str(&in, "\r\n");
	buf_add_str(&want, " <>\n");
	feed_init(&f, &framing_http, &wide);
	feed_all(&f, in.data, in.len, one, 1, false);
	assert_int_equal(f.out.len, want.len);
	assert_memory_equal(f.out.data, want.data, want.len);
	feed_done(&f);
	buf_done(&in);
	buf_done(&want);
}

TEST(headers_are_found_in_any_case)
{
	static const char in[] = "GET / HTTP/1.0\r\nX-One: 1\r\nACCEPT: a\r\naccept: b\r\n\r\n";
	struct frame frame;
	struct feed f;
	size_t used;

	feed_init(&f, &framing_http, &limits);
	assert_int_equal(framing_http.next(f.state, in, sizeof(in) - 1, false, &used, &frame),
			 FRAME_MESSAGE);
	assert_true(text_is(http_header_find(frame.http, "x-one"), "1"));
	assert_true(text_is(http_header_find(frame.http, "Accept"), "a"));
	assert_null(http_header_find(frame.http, "X-On").data);
	assert_null(http_header_find(frame.http, "X-One-More").data);
	assert_int_equal(http_header_count(frame.http, "Accept"), 2);
	assert_int_equal(http_header_count(frame.http, "X-ONE"), 1);
	assert_int_equal(http_header_count(frame.http, "Host"), 0);
	feed_done(&f);
}

TEST(tokens_are_found_in_lists)
{
	assert_true(http_has_token(TEXT("close"), "close"));
	assert_true(http_has_token(TEXT("a, CLOSE"), "close"));
	assert_true(http_has_token(TEXT(" ,,\tclose\t,"), "close"));
	assert_false(http_has_token(TEXT("closed"), "close"));
	assert_false(http_has_token(TEXT("not close"), "close"));
	assert_false(http_has_token(TEXT("clos"), "close"));
	assert_false(http_has_token(TEXT(""), "close"));
	assert_false(http_has_token((struct text) {NULL, 0}, "close"));
}

TEST(only_loopback_hosts_are_loopback)
{
	static const char *const yes[] = {
		"localhost",   "LOCALHOST",       "localhost:8765",  "127.0.0.1",
		"127.0.0.1:1", "127.1.2.3",       "127.255.255.255", "[::1]",
		"[::1]:80",    "LocalHost:65535", "localhost:00",
	};
	static const char *const no[] = {
		"",
		"evil.com",
		"localhost.evil.com",
		"127.0.0.1.evil.com",
		"0.0.0.0",
		"[::]",
		"localhost:80:80",
		"localhost:",
		"127.1",
		"2130706433",
		"foo.local",
		"localhost.",
		"localhost:65536",
		"localhost:000080",
		"localhost:-1",
		"localhost: 80",
		"localhost:80 ",
		" localhost",
		"localhos",
		"::1",
		"[::1",
		"[::1]x",
		"[::1]:",
		"[::ffff:127.0.0.1]",
		"127.0.0.256",
		"127.0.0.01",
		"0177.0.0.1",
		"127.0.0.",
		"127.0.0.1.",
		"127.0.0.1.1",
		"127..0.1",
		"128.0.0.1",
		"10.0.0.1",
		"127.0.0.0001",
		"127.0.0.1:",
		"127.0.0.1:x",
		"user@localhost",
		"localhost@evil.com",
		"localhost:80@evil.com",
		"localhost/",
	};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!http_host_is_loopback(text_of(yes[i])))
			fail_msg("%s is loopback", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (http_host_is_loopback(text_of(no[i])))
			fail_msg("%s is not loopback", no[i]);
	assert_false(http_host_is_loopback((struct text) {NULL, 0}));
	assert_false(http_host_is_loopback((struct text) {"localhost\0.evil", 15}));
}

TEST(only_pages_of_loopback_have_a_loopback_origin)
{
	static const char *const yes[] = {
		"http://localhost:3000",
		"https://localhost",
		"http://127.0.0.1",
		"http://[::1]:1",
	};
	static const char *const no[] = {
		"",
		"null",
		"http://evil.com",
		"file://",
		"http://localhost@evil.com",
		"http://localhost.evil.com",
		"http://",
		"https://",
		"localhost",
		"//localhost",
		"ftp://localhost",
		"http:/localhost",
		"http://localhost/",
		"http://http://localhost",
		"http://localhost http://evil.com",
	};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!http_origin_is_loopback(text_of(yes[i])))
			fail_msg("%s is ours", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (http_origin_is_loopback(text_of(no[i])))
			fail_msg("%s is not ours", no[i]);
	assert_false(http_origin_is_loopback((struct text) {NULL, 0}));
}

static void check_response(const struct http_response *r, const char *body, const char *want)
{
	struct buf out;

	buf_init(&out, 4096);
	http_write_response(&out, r, body, strlen(body));
	buf_add_char(&out, '\0');
	assert_int_equal(out.err, 0);
	assert_string_equal(out.data, want);
	buf_done(&out);
}

TEST(responses_have_their_headers_in_order)
{
	check_response(&(struct http_response) {.status = 200, .keep_alive = true}, "{\"a\":1}",
		       "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
		       "Content-Length: 7\r\nConnection: keep-alive\r\n\r\n{\"a\":1}");
	check_response(&(struct http_response) {.status = 200}, "",
		       "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\n"
		       "Content-Length: 0\r\nConnection: close\r\n\r\n");
	check_response(&(struct http_response) {.status = 404, .extra = "Allow: POST\r\nX: y\r\n"},
		       "{}",
		       "HTTP/1.1 404 Not Found\r\n"
		       "Content-Type: application/json; charset=utf-8\r\n"
		       "Content-Length: 2\r\nConnection: close\r\nAllow: POST\r\nX: y\r\n\r\n{}");
	check_response(&(struct http_response) {.status = 200,
						.head_only = true,
						.content_type = "text/plain"},
		       "0123456789",
		       "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
		       "Content-Length: 10\r\nConnection: close\r\n\r\n");
}

TEST(continue_is_one_line_and_a_blank_one)
{
	struct buf out;

	buf_init(&out, 64);
	http_write_continue(&out);
	assert_int_equal(out.len, 25);
	assert_memory_equal(out.data, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	buf_done(&out);
}

TEST(every_status_has_a_reason)
{
	static const int statuses[] = {100, 200, 202, 400, 401, 403, 404, 405, 408, 413, 414,
				       415, 417, 421, 426, 429, 431, 500, 501, 503, 505};

	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		assert_string_not_equal(http_reason(statuses[i]), "Unknown");
	assert_string_equal(http_reason(500), "Internal Server Error");
	assert_string_equal(http_reason(299), "Unknown");
}
