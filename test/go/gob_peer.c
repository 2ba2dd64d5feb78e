/*
 * Our side of test_gob.py, over stdin and stdout:
 *
 *	gob_peer write    values of every kind, which gobpeer.go knows
 *	gob_peer read     a gob stream, printed as JSON lines
 *	gob_peer server   net/rpc: Agent.Search
 *	gob_peer client   net/rpc: calls Agent.Search and Agent.Echo, prints what it is told
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire/json.h"
#include "wire/netrpc.h"

#define FIELDS(list) .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

enum { MAX = 64 << 20, ECHO = 6, N_CALLS = 300 };

static const struct gob_shape complex_shape = {.kind = GOB_COMPLEX, .name = "complex128"};
static const struct gob_shape_field inner_fields[] = {
	{"Name", &gob_shape_string},
	{"N", &gob_shape_int},
};
static const struct gob_shape inner = {.kind = GOB_STRUCT, .name = "Inner", FIELDS(inner_fields)};
static const struct gob_shape inners = {.kind = GOB_SLICE, .name = "", .elem = &inner};
static const struct gob_shape three = {
	.kind = GOB_ARRAY, .name = "[3]int", .elem = &gob_shape_int, .len = 3};
static const struct gob_shape counts = {.kind = GOB_MAP,
					.name = "map[string]int",
					.key = &gob_shape_string,
					.elem = &gob_shape_int};
static const struct gob_shape by_int = {
	.kind = GOB_MAP, .name = "", .key = &gob_shape_int, .elem = &gob_shape_string};
static const struct gob_shape strings = {.kind = GOB_SLICE, .name = "", .elem = &gob_shape_string};

static const struct gob_shape_field everything_fields[] = {
	{"Bool", &gob_shape_bool},
	{"Int", &gob_shape_int64},
	{"Uint", &gob_shape_uint64},
	{"Float", &gob_shape_float64},
	{"Complex", &complex_shape},
	{"String", &gob_shape_string},
	{"Bytes", &gob_shape_bytes},
	{"List", &inners},
	{"Array", &three},
	{"Map", &counts},
	{"ByInt", &by_int},
	{"Inner", &inner},
	{"Any", &gob_shape_interface},
	{"Anys", &gob_shape_any_slice},
	{"Params", &gob_shape_any_map},
};
static const struct gob_shape everything = {
	.kind = GOB_STRUCT, .name = "Everything", FIELDS(everything_fields)};

static const struct gob_shape_field search_fields[] = {
	{"Query", &gob_shape_string},
	{"Limit", &gob_shape_int},
};
static const struct gob_shape search_args = {
	.kind = GOB_STRUCT, .name = "SearchArgs", .go = "main.SearchArgs", FIELDS(search_fields)};
static const struct gob_shape_field bad_fields[] = {{"Limit", &gob_shape_string}};
static const struct gob_shape bad_args = {
	.kind = GOB_STRUCT, .name = "BadArgs", .go = "main.BadArgs", FIELDS(bad_fields)};
static const struct gob_shape_field reply_fields[] = {
	{"Result", &gob_shape_string},
	{"Stats", &counts},
};
static const struct gob_shape reply = {
	.kind = GOB_STRUCT, .name = "Reply", .go = "main.Reply", FIELDS(reply_fields)};

static void fail(const char *what, int r)
{
	fprintf(stderr, "gob_peer: %s: %d\n", what, r);
	exit(1);
}

static void need(int r, const char *what)
{
	if (r != 0)
		fail(what, r);
}

static void send_all(struct buf *out)
{
	size_t at = 0;

	need(out->err, "output");
	while (at < out->len) {
		ssize_t n = write(STDOUT_FILENO, out->data + at, out->len - at);

		if (n <= 0)
			fail("write", errno);
		at += (size_t)n;
	}
	buf_clear(out);
}

/* In pieces of an odd size; false at the end. */
static bool receive(struct buf *in)
{
	char piece[997];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n < 0)
		fail("read", errno);
	buf_add(in, piece, (size_t)n);
	need(in->err, "input");
	return n > 0;
}

static const struct value *tree_of(struct arena *a, const char *json)
{
	struct value *v;

	need(json_read(a, json, strlen(json), &json_default_limits, &v, NULL), json);
	return v;
}

/* ---- values ---- */

static void put(struct gob_encoder *e, const struct gob_shape *shape, struct arena *a,
		const char *json)
{
	struct error error = {0};

	if (gob_put(e, shape, tree_of(a, json), &error) != 0)
		fail(error.text, 0);
}

static void put_field(struct gob_encoder *e, unsigned i, struct arena *a, const char *json)
{
	gob_field(e, i);
	put(e, everything_fields[i].shape, a, json);
}

/* Go 1.19 cannot skip an interface that holds nothing: a value to be skipped has none. */
static void put_full(struct gob_encoder *e, struct arena *a, bool with_nil)
{
	gob_begin_struct(e);
	put_field(e, 0, a, "true");
	put_field(e, 1, a, "-9223372036854775808");
	put_field(e, 2, a, "18446744073709551615");
	put_field(e, 3, a, "-0.1");
	gob_field(e, 4);
	gob_complex(e, 1, -2);
	gob_field(e, 5);
	gob_text(e, TEXT("gr\xc3\xbc\xc3\x9f"
			 "e\0\xff"));
	gob_field(e, 6);
	gob_text(e, TEXT("\0\1\xff"));
	put_field(e, 7, a, "[{\"Name\":\"a\",\"N\":1},{},{\"Name\":\"c\",\"N\":-3}]");
	put_field(e, 8, a, "[0,128,-129]");
	put_field(e, 9, a, "{\"\":0,\"x\":300}");
	gob_field(e, 10);
	gob_begin_map(e, 2);
	gob_int(e, -1);
	gob_text(e, TEXT("neg"));
	gob_int(e, 0);
	gob_text(e, TEXT(""));
	gob_end_map(e);
	put_field(e, 11, a, "{\"Name\":\"in\",\"N\":64}");
	put_field(e, 12, a, with_nil ? "{\"k\":[\"one\",2,3.5,true,null,{}]}" : "{\"k\":[1,{}]}");
	put_field(e, 13, a, with_nil ? "[null,false,0,\"\",[],[[\"deep\"]]]" : "[[\"deep\"],-1]");
	put_field(e, 14, a,
		  with_nil ? "{\"n\":null,\"s\":\"text\",\"m\":{\"x\":1.5}}" : "{\"s\":1}");
	gob_end_struct(e);
}

static void write_value(struct gob_encoder *e, const struct gob_shape *shape, struct arena *a,
			const char *json, struct buf *out)
{
	gob_begin(e, shape);
	put(e, shape, a, json);
	need(gob_end(e, out), "gob_end");
}

static void write_full(struct gob_encoder *e, struct arena *a, bool with_nil, struct buf *out)
{
	gob_begin(e, &everything);
	put_full(e, a, with_nil);
	need(gob_end(e, out), "gob_end");
}

static void write_values(struct arena *a)
{
	struct gob_encoder e;
	struct buf out;

	buf_init(&out, MAX);
	gob_encoder_init(&e, GOB_MESSAGE_MAX);
	for (int round = 0; round < 2; round++) {
		write_full(&e, a, true, &out);
		write_value(&e, &everything, a, "{}", &out);
		/* to be read with fewer fields, and to be skipped */
		write_full(&e, a, false, &out);
		write_full(&e, a, false, &out);
		write_value(&e, &gob_shape_int, a, "-129", &out);
		write_value(&e, &gob_shape_string, a, "\"\"", &out);
		write_value(&e, &strings, a, "[\"\",\"x\"]", &out);
	}
	send_all(&out);
	gob_encoder_done(&e);
	buf_done(&out);
}

static void print_json(const struct value *v)
{
	struct buf line;
	struct json j = json_writer(&line);

	buf_init(&line, MAX);
	json_value(&j, v);
	buf_add_char(&line, '\n');
	need(line.err, "line");
	fwrite(line.data, 1, line.len, stdout);
	buf_done(&line);
}

static void read_values(struct arena *a)
{
	struct gob_decoder d;
	struct gob_value value;
	struct buf in;
	enum gob_said said;
	bool more;

	buf_init(&in, MAX);
	gob_decoder_init(&d, &gob_default_limits);
	do {
		more = receive(&in);
		do {
			size_t used;

			said = gob_next(&d, a, in.data, in.len, !more, &used, &value);
			buf_consume(&in, used);
			if (said == GOB_VALUE)
				print_json(value.value);
			else if (said != GOB_MORE)
				fail(value.error.text, value.error.code);
		} while (said == GOB_VALUE);
	} while (more);
	gob_decoder_done(&d);
	buf_done(&in);
}

/* ---- net/rpc ---- */

struct rpc {
	struct netrpc_reader reader;
	struct netrpc_writer writer;
	struct buf in;
	struct buf out;
	struct arena *arena;
};

static void rpc_init(struct rpc *r, enum netrpc_side side, struct arena *a)
{
	netrpc_reader_init(&r->reader, side, &gob_default_limits);
	netrpc_writer_init(&r->writer, GOB_MESSAGE_MAX);
	buf_init(&r->in, MAX);
	buf_init(&r->out, MAX);
	r->arena = a;
}

static void rpc_done(struct rpc *r)
{
	netrpc_reader_done(&r->reader);
	netrpc_writer_done(&r->writer);
	buf_done(&r->in);
	buf_done(&r->out);
}

/* False at the end of the stream. */
static bool rpc_next(struct rpc *r, struct netrpc_message *ret)
{
	bool more = true;

	for (;;) {
		size_t used;
		enum netrpc_kind kind =
			netrpc_next(&r->reader, r->arena, r->in.data, r->in.len, !more, &used, ret);

		buf_consume(&r->in, used);
		if (kind == NETRPC_REFUSED)
			fail(ret->body_error->text, ret->body_error->code);
		if (kind == NETRPC_MESSAGE)
			return true;
		if (!more)
			return false;
		send_all(&r->out);
		more = receive(&r->in);
	}
}

static int find_method(struct text method, struct error *error)
{
	struct text service, name;
	int e = netrpc_split(method, &service, &name, error);

	if (e != 0)
		return e;
	if (!text_is(service, "Agent"))
		return netrpc_no_service(method, error);
	return text_is(name, "Search") ? 0 : netrpc_no_method(method, error);
}

static void answer(struct rpc *r, const struct netrpc_message *m)
{
	struct text query = value_text(value_find(m->body, "Query"));
	struct gob_encoder *e = netrpc_answer(&r->writer, &r->out, m->method, m->seq, &reply);
	int64_t limit = 0;
	char result[100];
	int n;

	value_int(value_find(m->body, "Limit"), &limit);
	n = snprintf(result, sizeof(result), "%.*s %lld", TEXT_ARGS(query), (long long)limit);
	gob_begin_struct(e);
	gob_field(e, 0);
	gob_text(e, (struct text) {.data = result, .len = (size_t)n});
	gob_field(e, 1);
	gob_begin_map(e, 1);
	gob_text(e, TEXT("limit"));
	gob_int(e, limit);
	gob_end_map(e);
	gob_end_struct(e);
	need(netrpc_end(&r->writer, &r->out), "netrpc_end");
}

static void serve(struct arena *a)
{
	struct netrpc_message m;
	struct rpc r;

	rpc_init(&r, NETRPC_SERVER, a);
	while (rpc_next(&r, &m)) {
		struct error error = {0};
		int e = find_method(m.method, &error);

		if (e == 0)
			e = netrpc_fit(&r.reader, &m, &search_args, &error);
		if (e == 0 && value_text(value_find(m.body, "Query")).len == 0)
			e = refuse(&error, REFUSE_PARAMS, "query is required");
		if (e == 0)
			answer(&r, &m);
		else
			need(netrpc_error(&r.writer, &r.out, m.method, m.seq, text_of(error.text)),
			     "netrpc_error");
		arena_reset(a);
	}
	send_all(&r.out);
	rpc_done(&r);
}

static void ask(struct rpc *r, const char *method, uint64_t seq, const struct gob_shape *shape,
		const char *json)
{
	struct gob_encoder *e = netrpc_call(&r->writer, &r->out, text_of(method), seq, shape);

	if (json)
		put(e, shape, r->arena, json);
	else
		put_full(e, r->arena, seq == ECHO);
	need(netrpc_end(&r->writer, &r->out), "netrpc_end");
}

static void ask_all(struct rpc *r)
{
	ask(r, "Agent.Search", 0, &search_args, "{\"Query\":\"q\",\"Limit\":5}");
	ask(r, "Agent.Search", 1, &bad_args, "{\"Limit\":\"5\"}");
	ask(r, "Agent.Search", 2, &gob_shape_string, "\"text\"");
	ask(r, "Agent.Nope", 3, &everything, NULL);
	ask(r, "Search", 4, &gob_shape_empty_struct, "{}");
	ask(r, "Agent.Search", 5, &search_args, "{}");
	ask(r, "Agent.Echo", ECHO, &everything, NULL);
	for (uint64_t i = ECHO + 1; i < N_CALLS; i++)
		ask(r, "Agent.Search", i, &search_args, "{\"Query\":\"many\",\"Limit\":1}");
}

/* A line for each answer, in the order in which they come; the test sorts them. */
static void call(struct arena *a)
{
	struct netrpc_message m;
	struct rpc r;

	rpc_init(&r, NETRPC_CLIENT, a);
	ask_all(&r);
	for (int i = 0; i < N_CALLS && rpc_next(&r, &m); i++) {
		fprintf(stderr, "%llu\t%.*s\t%.*s\t", (unsigned long long)m.seq,
			TEXT_ARGS(m.method), TEXT_ARGS(m.error));
		if (!m.body)
			fail(m.body_error->text, m.body_error->code);
		buf_clear(&r.out);
		json_value(&(struct json) {.out = &r.out}, m.body);
		fprintf(stderr, "%.*s\n", (int)r.out.len, r.out.data);
		buf_clear(&r.out);
		arena_reset(a);
	}
	rpc_done(&r);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct arena a;

	arena_init(&a, MAX);
	if (strcmp(what, "write") == 0)
		write_values(&a);
	else if (strcmp(what, "read") == 0)
		read_values(&a);
	else if (strcmp(what, "server") == 0)
		serve(&a);
	else if (strcmp(what, "client") == 0)
		call(&a);
	else
		fail("write, read, server or client", argc);
	arena_done(&a);
	return 0;
}
