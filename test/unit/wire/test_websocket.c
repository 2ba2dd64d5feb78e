/* WebSocket frames of a client, cut at every place; what we send; how it begins. */
#include "check.h"

#include <errno.h>

#include "../websocket_feed.h"
#include "wire/http/http1.h"

enum { LIMIT = 200 };

/* ---- frames of a client ---- */

struct frame {
	unsigned first; /* fin, reserved bits, opcode */
	const char *data;
	size_t len;
	bool bare; /* not masked */
};

static void add_frame(struct buf *b, const struct frame *f)
{
	static const unsigned char mask[] = {0x37, 0xfa, 0x21, 0x3d};

	buf_add_char(b, (char)f->first);
	if (f->len < 126) {
		buf_add_char(b, (char)(f->len | (f->bare ? 0 : 0x80)));
	} else {
		buf_add_char(b, (char)(126 | (f->bare ? 0 : 0x80)));
		buf_add_char(b, (char)(f->len >> 8));
		buf_add_char(b, (char)(f->len & 0xff));
	}
	if (!f->bare)
		buf_add(b, mask, 4);
	for (size_t i = 0; i < f->len; i++)
		buf_add_char(b, (char)(f->data[i] ^ (f->bare ? 0 : mask[i % 4])));
}

#define FRAME(first_byte, literal)                                                                 \
	{                                                                                          \
		.first = (first_byte), .data = (literal), .len = sizeof(literal) - 1               \
	}
#define A10  "aaaaaaaaaa"
#define A50  A10 A10 A10 A10 A10
#define A100 A50 A50

static const struct {
	struct frame frames[5];
	const char *out;
} vectors[] = {
	{{FRAME(0x81, "Hello")}, "<t:Hello>"},
	{{FRAME(0x81, "")}, "<t:>"},
	{{FRAME(0x82, "\xff\xfe")}, "<b:\xff\xfe>"},
	{{FRAME(0x81, "one"), FRAME(0x82, "two")}, "<t:one><b:two>"},
	{{FRAME(0x01, "Hel"), FRAME(0x80, "lo")}, "<t:Hello>"},
	{{FRAME(0x01, ""), FRAME(0x00, ""), FRAME(0x00, "a"), FRAME(0x80, "")}, "<t:a>"},
	/* a control frame within a message, and a character that two frames share */
	{{FRAME(0x01, "\xc3"), FRAME(0x89, "p"), FRAME(0x80, "\xa9")}, "<t:\xc3\xa9>"},
	{{FRAME(0x8a, "nobody asked"), FRAME(0x81, "x")}, "<t:x>"},
	/* 126 bytes and more have a longer head */
	{{FRAME(0x81, A100 A50)}, "<t:" A100 A50 ">"},
	{{FRAME(0x81, A100 A100)}, "<t:" A100 A100 ">"},
	/* the limit, in one frame and in several */
	{{FRAME(0x81, A100 A100 "a")}, "! 1009"},
	{{FRAME(0x01, A100), FRAME(0x00, A100), FRAME(0x80, "a")}, "! 1009"},
	{{FRAME(0x01, A100), FRAME(0x00, A100), FRAME(0x80, "")}, "<t:" A100 A100 ">"},
	/* the end */
	{{FRAME(0x88, "")}, "! 1005"},
	{{FRAME(0x88, "\x03\xe8")}, "! 1000"},
	{{FRAME(0x88, "\x03\xe9going")}, "! 1001"},
	{{FRAME(0x88, "\x0f\xa0mine")}, "! 4000"},
	{{FRAME(0x88, "\x03\xe8"), FRAME(0x81, "late")}, "! 1000"},
	{{FRAME(0x01, "cut"), FRAME(0x88, "\x03\xe8")}, "! 1000"},
	{{FRAME(0x88, "\x03")}, "! 1002"},
	{{FRAME(0x88, "\x03\xed")}, "! 1002"}, /* 1005 and 1006 are not for the wire */
	{{FRAME(0x88, "\x03\xee")}, "! 1002"},
	{{FRAME(0x88, "\x03\xec")}, "! 1002"},
	{{FRAME(0x88, "\x03\xf7")}, "! 1002"}, /* 1015 */
	{{FRAME(0x88, "\x00\x00")}, "! 1002"},
	{{FRAME(0x88, "\x07\xd0")}, "! 1002"}, /* 2000 */
	{{FRAME(0x88, "\xff\xff")}, "! 1002"},
	{{FRAME(0x88, "\x03\xe8\xff")}, "! 1007"},
	/* what is no text */
	{{FRAME(0x81, "\xff")}, "! 1007"},
	{{FRAME(0x81, "\xc3")}, "! 1007"},
	{{FRAME(0x81, "\xc0\xaf")}, "! 1007"},
	{{FRAME(0x81, "\xed\xa0\x80")}, "! 1007"},
	{{FRAME(0x01, "a\xf4\x90"), FRAME(0x80, "\x80\x80")}, "! 1007"},
	/* what is no frame of a client */
	{{{.first = 0x81, .data = "x", .len = 1, .bare = true}}, "! 1002"},
	{{{.first = 0x89, .data = "", .len = 0, .bare = true}}, "! 1002"},
	{{FRAME(0xc1, "x")}, "! 1002"},
	{{FRAME(0xa1, "x")}, "! 1002"},
	{{FRAME(0x91, "x")}, "! 1002"},
	{{FRAME(0x83, "x")}, "! 1002"},
	{{FRAME(0x87, "x")}, "! 1002"},
	{{FRAME(0x8b, "x")}, "! 1002"},
	{{FRAME(0x8f, "x")}, "! 1002"},
	{{FRAME(0x80, "x")}, "! 1002"},
	{{FRAME(0x01, "x"), FRAME(0x81, "y")}, "! 1002"},
	{{FRAME(0x81, "x"), FRAME(0x80, "y")}, "<t:x>! 1002"},
	{{FRAME(0x09, "x")}, "! 1002"},
	{{FRAME(0x08, "")}, "! 1002"},
	{{FRAME(0x89, A100 A10 A10 "123456")}, "! 1002"},
	{{FRAME(0x88, A100 A100)}, "! 1002"},
};

enum { N_VECTORS = sizeof(vectors) / sizeof(vectors[0]) };

static void make(size_t i, struct buf *b)
{
	buf_init(b, 1 << 20);
	for (size_t k = 0; k < 5 && vectors[i].frames[k].data; k++)
		add_frame(b, &vectors[i].frames[k]);
	assert_int_equal(b->err, 0);
}

static void check(const char *in, size_t len, const unsigned char *sizes, size_t n_sizes,
		  const char *out)
{
	struct websocket_feed f;

	websocket_feed_init(&f, LIMIT);
	websocket_feed_all(&f, in, len, sizes, n_sizes);
	buf_add_char(&f.out, '\0');
	assert_string_equal(f.out.data, out);
	websocket_feed_done(&f);
}

TEST(messages_come_out_whole)
{
	for (size_t i = 0; i < N_VECTORS; i++) {
		struct buf b;

		make(i, &b);
		check(b.data, b.len, NULL, 0, vectors[i].out);
		buf_done(&b);
	}
}

TEST(messages_come_out_the_same_cut_at_every_place)
{
	for (size_t i = 0; i < N_VECTORS; i++) {
		struct buf b;

		make(i, &b);
		for (size_t cut = 1; cut < b.len; cut++) {
			const unsigned char sizes[] = {(unsigned char)(cut - 1), 255, 255};

			check(b.data, b.len, sizes, 3, vectors[i].out);
		}
		check(b.data, b.len, (const unsigned char[]) {0}, 1, vectors[i].out);
		buf_done(&b);
	}
}

/* ---- one end, bytes as they come ---- */

static void expect_reply(struct websocket_feed *f, const char *bytes, size_t len)
{
	assert_int_equal(f->reply.len, len);
	assert_memory_equal(f->reply.data, bytes, len);
	buf_clear(&f->reply);
}

static void push_frame(struct websocket_feed *f, const struct frame *frame)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	add_frame(&b, frame);
	websocket_feed_push(f, b.data, b.len);
	buf_done(&b);
}

TEST(a_ping_is_answered_with_what_it_brought)
{
	struct websocket_feed f;

	websocket_feed_init(&f, LIMIT);
	push_frame(&f, &(struct frame)FRAME(0x89, "are you there"));
	expect_reply(&f,
		     "\x8a\x0d"
		     "are you there",
		     15);
	push_frame(&f, &(struct frame)FRAME(0x89, ""));
	expect_reply(&f, "\x8a\x00", 2);
	websocket_feed_done(&f);
}

TEST(of_a_flood_of_pings_the_last_is_answered)
{
	struct websocket_feed f;
	struct buf b;

	websocket_feed_init(&f, LIMIT);
	buf_init(&b, 1 << 20);
	for (int i = 0; i < 10000; i++)
		add_frame(&b, &(struct frame)FRAME(0x89, "x"));
	add_frame(&b, &(struct frame)FRAME(0x89, "last"));
	websocket_feed_push(&f, b.data, b.len);
	expect_reply(&f, "\x8a\x04last", 6);
	buf_done(&b);
	websocket_feed_done(&f);
}

TEST(a_close_is_answered_with_its_code)
{
	struct websocket_feed f;

	websocket_feed_init(&f, LIMIT);
	push_frame(&f, &(struct frame)FRAME(0x88, "\x0f\xa0why"));
	expect_reply(&f, "\x88\x02\x0f\xa0", 4);
	assert_true(f.over);
	push_frame(&f, &(struct frame)FRAME(0x89, "anybody"));
	assert_int_equal(f.reply.len, 0);
	websocket_feed_done(&f);

	websocket_feed_init(&f, LIMIT);
	push_frame(&f, &(struct frame)FRAME(0x88, ""));
	expect_reply(&f, "\x88\x00", 2);
	websocket_feed_done(&f);
}

TEST(a_long_frame_is_refused_before_it_has_come)
{
	/* 2^62 bytes are announced, one comes */
	static const char in[] = "\x82\xff\x40\0\0\0\0\0\0\0mask!";
	struct websocket_feed f;

	websocket_feed_init(&f, LIMIT);
	websocket_feed_push(&f, in, sizeof(in) - 1);
	assert_true(f.over);
	assert_int_equal(websocket_code(f.w), WEBSOCKET_TOO_LARGE);
	assert_memory_equal(f.reply.data + 2, "\x03\xf1", 2);
	websocket_feed_done(&f);
}

/* Its length tells; neither its mask nor a byte of it must have come. */
TEST(a_long_frame_is_refused_by_its_head)
{
	static const struct {
		const char *in;
		size_t len;
		unsigned code;
	} table[] = {
		{"\x82\xff\x40\0\0\0\0\0\0\0", 10, WEBSOCKET_TOO_LARGE},
		{"\x81\xfe\0\xc9", 4, WEBSOCKET_TOO_LARGE},                /* 201 */
		{"\x81\xfe\0\xc8", 4, WEBSOCKET_ABNORMAL},                 /* 200 */
		{"\x01\x81mask\0\x80\xfe\0\xc8", 11, WEBSOCKET_TOO_LARGE}, /* 1 + 200 */
		{"\x81\x7e\0\xc8", 4, WEBSOCKET_PROTOCOL},                 /* unmasked */
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct websocket_feed f;

		websocket_feed_init(&f, LIMIT);
		websocket_feed_push(&f, table[i].in, table[i].len);
		assert_int_equal(websocket_code(f.w), table[i].code);
		websocket_feed_done(&f);
	}
}

TEST(lengths_in_more_bytes_than_needed_are_refused)
{
	static const char *const in[] = {"\x81\xfe\0\x01mask!", "\x81\xff\0\0\0\0\0\0\0\x01mask!",
					 "\x81\xff\x80\0\0\0\0\0\0\0mask!"};
	static const size_t len[] = {9, 15, 15};

	for (size_t i = 0; i < 3; i++)
		check(in[i], len[i], NULL, 0, "! 1002");
}

TEST(a_message_of_many_small_frames_costs_its_bytes)
{
	struct websocket_feed f;

	websocket_feed_init(&f, 100000);
	push_frame(&f, &(struct frame)FRAME(0x01, "a"));
	for (int i = 1; i < 100000; i++) {
		push_frame(&f, &(struct frame)FRAME(0x00, "a"));
		push_frame(&f, &(struct frame)FRAME(0x00, ""));
	}
	assert_false(f.over);
	push_frame(&f, &(struct frame)FRAME(0x80, ""));
	assert_int_equal(f.out.len, 100000 + 4);
	push_frame(&f, &(struct frame)FRAME(0x81, "again"));
	assert_memory_equal(f.out.data + 100004, "<t:again>", 9);
	websocket_feed_done(&f);
}

/* ---- what we send ---- */

TEST(what_we_send_is_one_bare_frame)
{
	struct websocket *w;
	struct buf out;
	char *large = calloc(1, 70000);

	assert_non_null(large);
	assert_int_equal(websocket_new(LIMIT, &w), 0);
	buf_init(&out, 1 << 20);
	assert_int_equal(websocket_write(w, &out, true, TEXT("Hello")), 0);
	assert_int_equal(out.len, 7);
	assert_memory_equal(out.data, "\x81\x05Hello", 7);
	buf_clear(&out);
	assert_int_equal(websocket_write(w, &out, false, (struct text) {large, 126}), 0);
	assert_int_equal(out.len, 130);
	assert_memory_equal(out.data, "\x82\x7e\x00\x7e", 4);
	buf_clear(&out);
	assert_int_equal(websocket_write(w, &out, false, (struct text) {large, 70000}), 0);
	assert_int_equal(out.len, 70010);
	assert_memory_equal(out.data, "\x82\x7f\0\0\0\0\0\x01\x11\x70", 10);
	buf_clear(&out);
	assert_int_equal(websocket_write(w, &out, true, TEXT("")), 0);
	assert_int_equal(websocket_write_ping(w, &out), 0);
	assert_memory_equal(out.data, "\x81\x00\x89\x00", 4);
	buf_done(&out);
	websocket_free(w);
	free(large);
}

TEST(what_does_not_fit_leaves_no_half_frame)
{
	struct websocket *w;
	struct buf out;

	assert_int_equal(websocket_new(LIMIT, &w), 0);
	buf_init(&out, 20);
	assert_int_equal(websocket_write(w, &out, true, TEXT("more than twenty bytes")), -EMSGSIZE);
	assert_int_equal(out.len, 0);
	buf_clear(&out);
	assert_int_equal(websocket_write(w, &out, true, TEXT("short")), 0);
	assert_memory_equal(out.data, "\x81\x05short", 7);
	buf_done(&out);
	websocket_free(w);
}

TEST(after_our_close_nothing_follows)
{
	struct websocket_feed f;

	websocket_feed_init(&f, LIMIT);
	assert_int_equal(
		websocket_write_close(f.w, &f.reply, WEBSOCKET_GOING_AWAY, "the daemon stops"), 0);
	expect_reply(&f, "\x88\x12\x03\xe9the daemon stops", 20);
	assert_int_equal(websocket_write(f.w, &f.reply, true, TEXT("x")), -EPIPE);
	assert_int_equal(websocket_write_ping(f.w, &f.reply), -EPIPE);
	push_frame(&f, &(struct frame)FRAME(0x81, "x"));
	assert_int_equal(f.reply.len, 0);
	assert_true(f.over);
	websocket_feed_done(&f);
}

TEST(a_long_reason_is_cut_at_a_character)
{
	struct websocket_feed f;
	char reason[200];

	memset(reason, 'a', 122);
	strcpy(reason + 122, "\xc3\xa9 and more");
	websocket_feed_init(&f, LIMIT);
	assert_int_equal(websocket_write_close(f.w, &f.reply, WEBSOCKET_POLICY, reason), 0);
	assert_int_equal(f.reply.len, 2 + 2 + 122);
	websocket_feed_done(&f);
}

/* ---- how it begins ---- */

static int accept_with(const char *version, const char *key, const char *key2, char *ret)
{
	const struct http_header headers[] = {
		{TEXT("Host"), TEXT("localhost")},
		{TEXT("sec-websocket-version"), text_of(version)},
		{TEXT("SEC-WEBSOCKET-KEY"), text_of(key)},
		{TEXT("Sec-WebSocket-Key"), text_of(key2)},
	};
	const struct http_request r = {.headers = headers, .n_headers = key2 ? 4 : 3};
	struct error error;

	return websocket_accept(&r, ret, &error);
}

TEST(the_key_of_the_rfc_is_accepted_as_there)
{
	char accept[WEBSOCKET_ACCEPT_LEN + 1];

	assert_int_equal(accept_with("13", "dGhlIHNhbXBsZSBub25jZQ==", NULL, accept), 0);
	assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(other_versions_and_keys_are_refused)
{
	static const char *const keys[] = {"",
					   "dGhlIHNhbXBsZSBub25jZQ",
					   "dGhlIHNhbXBsZSBub25jZQ= ",
					   "dGhlIHNhbXBsZSBub25j",
					   "dGhlIHNhbXBsZSBub25jZXh4",
					   "dGhlIHNhb$BsZSBub25jZQ=="};
	char accept[WEBSOCKET_ACCEPT_LEN + 1];

	assert_int_equal(accept_with("8", "dGhlIHNhbXBsZSBub25jZQ==", NULL, accept), REFUSE_METHOD);
	assert_int_equal(accept_with("", "dGhlIHNhbXBsZSBub25jZQ==", NULL, accept), REFUSE_METHOD);
	assert_int_equal(
		accept_with("13", "dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ==", accept),
		REFUSE_REQUEST);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(accept_with("13", keys[i], NULL, accept), REFUSE_REQUEST);
}
