/*
 * What one message costs our codec, as peers/gob has it for Go's: a call read, and an answer
 * written, on a connection that knows the types already. Prints one line of JSON: nanoseconds.
 *
 *	gob_codec SECONDS STATS CHAT    the last two as peer_gob form prints them
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "now.h"
#include "wire/netrpc.h"

enum { BYTES_MAX = 1 << 20, SEQ = 100000 };

#define FIELDS(list) .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

static const struct gob_shape stats = {
	.kind = GOB_MAP, .name = "", .key = &gob_shape_string, .elem = &gob_shape_int};
static const struct gob_shape_field stats_reply_fields[] = {{"Stats", &stats}};
static const struct gob_shape stats_reply = {
	.kind = GOB_STRUCT, .name = "StatsReply", FIELDS(stats_reply_fields)};

static const struct gob_shape_field message_fields[] = {{"Role", &gob_shape_string},
							{"Content", &gob_shape_string}};
static const struct gob_shape message = {
	.kind = GOB_STRUCT, .name = "Message", FIELDS(message_fields)};
static const struct gob_shape messages = {.kind = GOB_SLICE, .name = "", .elem = &message};
static const struct gob_shape_field chat_args_fields[] = {{"Messages", &messages}};
static const struct gob_shape chat_args = {
	.kind = GOB_STRUCT, .name = "ChatArgs", FIELDS(chat_args_fields)};
static const struct gob_shape_field chat_reply_fields[] = {{"Content", &gob_shape_string}};
static const struct gob_shape chat_reply = {
	.kind = GOB_STRUCT, .name = "ChatReply", FIELDS(chat_reply_fields)};

static const struct {
	const char *key;
	int64_t n;
} counts[] = {
	{"messages", 150}, {"memories", 12}, {"files", 3}, {"sessions", 2}, {"tools_calls", 40}};

static void fail(const char *what)
{
	fprintf(stderr, "gob_codec: %s\n", what);
	exit(1);
}

/* ---- reading ---- */

struct reading {
	struct netrpc_reader reader;
	struct arena arena;
	struct buf call;
	const struct gob_shape *shape;
};

static void read_once(void *arg)
{
	struct reading *r = arg;
	struct netrpc_message m;
	size_t used = 0;

	arena_reset(&r->arena);
	if (netrpc_next(&r->reader, &r->arena, r->call.data, r->call.len, false, &used, &m) !=
		    NETRPC_MESSAGE ||
	    used != r->call.len || netrpc_fit(&r->reader, &m, r->shape, NULL) != 0)
		fail("a call is not read");
}

static void add_hex(struct buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i + 1 < len; i += 2) {
		char byte[3] = {text[i], text[i + 1], 0};

		buf_add_char(out, (char)strtoul(byte, NULL, 16));
	}
}

/* "METHOD PROLOGUE BODY": the definitions are read here, a call is what is read again. */
static void reading_init(struct reading *r, const char *form, const struct gob_shape *shape)
{
	const char *prologue = strchr(form, ' ');
	const char *body = prologue ? strchr(prologue + 1, ' ') : NULL;
	struct netrpc_message m;
	size_t used = 0;

	if (!body)
		fail("that is no form");
	netrpc_reader_init(&r->reader, NETRPC_SERVER, &gob_default_limits);
	arena_init(&r->arena, BYTES_MAX);
	buf_init(&r->call, BYTES_MAX);
	r->shape = shape;
	add_hex(&r->call, prologue + 1, (size_t)(body - prologue) - 1);
	if (netrpc_next(&r->reader, &r->arena, r->call.data, r->call.len, false, &used, &m) !=
		    NETRPC_MORE ||
	    used != r->call.len)
		fail("the definitions are not read");
	buf_clear(&r->call);
	/* Request{ServiceMethod, Seq} of a type 65, as Go numbers it. */
	buf_add_char(&r->call, (char)(2 + 2 + (prologue - form) + 1 + 4 + 1));
	buf_add(&r->call, "\xff\x82\x01", 3);
	buf_add_char(&r->call, (char)(prologue - form));
	buf_add(&r->call, form, (size_t)(prologue - form));
	buf_add(&r->call, "\x01\xfd\x01\x86\xa0\x00", 6);
	add_hex(&r->call, body + 1, strcspn(body + 1, "\n"));
}

static void reading_done(struct reading *r)
{
	netrpc_reader_done(&r->reader);
	arena_done(&r->arena);
	buf_done(&r->call);
}

/* ---- writing ---- */

struct writing {
	struct netrpc_writer writer;
	struct buf out;
};

static void write_stats(void *arg)
{
	struct writing *w = arg;
	struct gob_encoder *e;

	buf_clear(&w->out);
	e = netrpc_answer(&w->writer, &w->out, TEXT("RPCService.Stats"), SEQ, &stats_reply);
	gob_begin_struct(e);
	gob_field(e, 0);
	gob_begin_map(e, sizeof(counts) / sizeof(counts[0]));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		gob_text(e, text_of(counts[i].key));
		gob_int(e, counts[i].n);
	}
	gob_end_map(e);
	gob_end_struct(e);
	if (netrpc_end(&w->writer, &w->out) != 0)
		fail("an answer is not written");
}

static void write_chat(void *arg)
{
	struct writing *w = arg;
	struct gob_encoder *e;

	buf_clear(&w->out);
	e = netrpc_answer(&w->writer, &w->out, TEXT("RPCService.Chat"), SEQ, &chat_reply);
	gob_begin_struct(e);
	gob_field(e, 0);
	gob_text(e, TEXT("You told me that your name is Alice."));
	gob_end_struct(e);
	if (netrpc_end(&w->writer, &w->out) != 0)
		fail("an answer is not written");
}

/* ---- time ---- */

/* The time of one run, from as many as fill the time. */
static double each(double seconds, void (*run)(void *arg), void *arg)
{
	for (uint64_t n = 1000;; n *= 2) {
		uint64_t begun = now_ns();
		uint64_t took;

		for (uint64_t i = 0; i < n; i++)
			run(arg);
		took = now_ns() - begun;
		if ((double)took >= seconds / 2 * 1e9)
			return (double)took / (double)n;
	}
}

int main(int argc, char **argv)
{
	double seconds = argc == 4 ? strtod(argv[1], NULL) : 0;
	struct reading stats_call, chat_call;
	struct writing w;

	if (seconds <= 0) {
		fprintf(stderr, "usage: gob_codec SECONDS STATS CHAT\n");
		return 2;
	}
	reading_init(&stats_call, argv[2], &gob_shape_empty_struct);
	reading_init(&chat_call, argv[3], &chat_args);
	netrpc_writer_init(&w.writer, BYTES_MAX);
	buf_init(&w.out, BYTES_MAX);
	printf("{\"decode Stats\":%.1f,", each(seconds, read_once, &stats_call));
	printf("\"decode Chat\":%.1f,", each(seconds, read_once, &chat_call));
	printf("\"encode Stats\":%.1f,", each(seconds, write_stats, &w));
	printf("\"encode Chat\":%.1f}\n", each(seconds, write_chat, &w));
	reading_done(&stats_call);
	reading_done(&chat_call);
	netrpc_writer_done(&w.writer);
	buf_done(&w.out);
	return 0;
}
