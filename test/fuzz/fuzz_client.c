/*
 * The whole way: bytes of a client, in pieces, through a server with threads,
 * timers and batches. It must answer in JSON, come to rest, and let go of the
 * client.
 *
 * The input's first byte steers: its low two bits are the framing (recognised,
 * line, length, http), 0x04 asks for calls side by side, 0x08 for the end of the
 * stream behind the last byte and 0x10 for leaving without reading; the next
 * three bits are the number of sizes that follow, as in fuzz_framing.h.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../call_world.h"
#include "../feed.h"
#include "call/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct echo_in {
	const struct value *value;
	struct text text;
	int64_t n;
};

static const struct field fields[] = {
	{.name = "value", .type = FIELD_ANY, .offset = offsetof(struct echo_in, value)},
	{.name = "text", .type = FIELD_STRING, .offset = offsetof(struct echo_in, text)},
	{.name = "n", .type = FIELD_INT, .offset = offsetof(struct echo_in, n)},
};

static struct done handle_echo(struct call *c)
{
	const struct echo_in *in = c->in;
	struct json *j = call_result(c);

	json_begin_array(j);
	json_value(j, in->value);
	json_text(j, in->text);
	json_int(j, in->n);
	json_end_array(j);
	return call_reply(c);
}

static struct done handle_after(struct call *c)
{
	return call_after(c, 0, handle_echo);
}

static struct done handle_refuse(struct call *c)
{
	const struct echo_in *in = c->in;
	enum refusal code = (enum refusal)(1 + (uint64_t)in->n % (N_REFUSALS - 1));

	return call_fail(c, refuse(&c->error, code, "%.*s", TEXT_ARGS(in->text)));
}

static struct done handle_shout(struct call *c)
{
	const struct echo_in *in = c->in;
	unsigned n;

	(void)server_notify_all(c->server, in->text, (struct text) {0}, &n);
	return call_reply(c);
}

#define IN .fields = fields, .n_fields = 3, .in_size = sizeof(struct echo_in)

static const struct method methods[] = {
	{.name = "ping", .handle = handle_echo, IN},
	{.name = "read", .handle = handle_echo, IN, .where = READER},
	{.name = "write", .handle = handle_echo, IN, .where = WRITER},
	{.name = "after", .handle = handle_after, IN, .flags = METHOD_LATER},
	{.name = "refuse", .handle = handle_refuse, IN},
	{.name = "shout", .handle = handle_shout, IN},
};

/* ---- HTTP that is no JSON-RPC ---- */

static struct done end_stream(struct call *c)
{
	const struct echo_in *in = c->in;

	(void)call_stream(c, in->text.data, in->text.len);
	return in->n > 0 ? call_fail(c, REFUSE_LIMIT) : call_stream_end(c);
}

static struct done handle_stream(struct call *c)
{
	if (call_stream_begin(c, 200, "text/plain") != 0)
		abort();
	(void)call_stream(c, "first", 5);
	return call_after(c, 0, end_stream);
}

static void echo_bytes(struct upgraded *u, const char *data, size_t len)
{
	(void)upgraded_write(u, data, len);
	if (data[0] == 'e')
		upgraded_end(u);
}

static void echo_closed(struct upgraded *u)
{
	free(u);
}

static int take_over(struct client *s, const struct upgrade_request *r, struct error *error)
{
	static const struct upgraded_ops ops = {.on_bytes = echo_bytes, .on_closed = echo_closed};
	struct upgraded *u;

	if (r->query.len > 0)
		return refuse(error, REFUSE_REQUEST, "%.*s", TEXT_ARGS(r->query));
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	client_upgrade(s, u, &ops, "websocket", NULL);
	return 0;
}

static const struct http_route routes[] = {
	{"GET", "/q", {.name = "q", .handle = handle_echo, IN}},
	{"POST", "/q/*", {.name = "q", .handle = handle_echo, IN, .where = READER}},
	{"GET", "/r", {.name = "r", .handle = handle_refuse, IN}},
	{"GET", "/s", {.name = "s", .handle = handle_stream, IN, .flags = METHOD_LATER}},
	{"GET", "/w", {.name = "w"}, .flags = ROUTE_UPGRADE, .upgrade = take_over},
};

static const struct error_row errors[N_REFUSALS] = {
	[REFUSE_PARSE] = {-32700, "Parse error", WORDS_ONLY, 400},
	[REFUSE_REQUEST] = {-32600, "Invalid Request", WORDS_ONLY, 400},
	[REFUSE_METHOD] = {-32601, "Method not found", WORDS_BOTH, 0},
	[REFUSE_PARAMS] = {-32602, "Invalid params", WORDS_BOTH, 0},
	[REFUSE_INTERNAL] = {-32603, "Internal error", WORDS_BOTH, 0},
	[REFUSE_NOT_FOUND] = {1, "1", WORDS_TEXT, 0},
	[REFUSE_CONFLICT] = {2, "2", WORDS_TEXT, 0},
	[REFUSE_LIMIT] = {3, "3", WORDS_TEXT, 0},
	[REFUSE_TOO_LARGE] = {4, "4", WORDS_BOTH, 0},
	[REFUSE_UNAVAILABLE] = {5, "5", WORDS_TEXT, 0},
	[REFUSE_FORBIDDEN] = {6, "6", WORDS_TEXT, 0},
	[REFUSE_TIMEOUT] = {7, "7", WORDS_TEXT, 0},
	[REFUSE_CANCELLED] = {8, "8", WORDS_TEXT, 0},
	[REFUSE_STOPPING] = {9, "9", WORDS_TEXT, 0},
};

static const char *const paths[] = {"/", NULL};

#define DIALECT                                                                                    \
	.name = "fuzz", .message_max = 1000, .errors = errors, .methods = methods,                 \
	.n_methods = sizeof(methods) / sizeof(methods[0]), .http_paths = paths,                    \
	.http_silent_status = 200, .http_routes = routes,                                          \
	.n_http_routes = sizeof(routes) / sizeof(routes[0])

static const struct dialect dialects[2] = {{DIALECT}, {DIALECT, .concurrent = true}};

/* Made once: what one client leaves behind, another may meet. */
static struct world *the_world(void)
{
	static struct world w;
	struct server_opts opts = {.limits = default_limits, .workers = {.n_readers = 2}};

	if (w.server)
		return &w;
	opts.limits.waiting = 4;
	opts.limits.queue_bytes = 4096;
	opts.limits.reply_bytes = 4096;
	opts.limits.json_depth = 20;
	opts.limits.batch = 10;
	opts.version = "0";
	FEED_CHECK(world_init(&w, &dialects[0], &opts) == 0);
	return &w;
}

/* Every line is one JSON text; every length-prefixed message too. */
static void check_json(const char *text, size_t len)
{
	static const struct json_limits wide = {.depth = 100, .values = 100000};
	struct value *root = NULL;
	struct arena a;

	arena_init(&a, 16 << 20);
	FEED_CHECK(json_read(&a, text, len, &wide, &root, NULL) == 0);
	arena_done(&a);
}

static void check_lines(const struct buf *in)
{
	const char *at = in->len > 0 ? in->data : "";
	const char *end = at + in->len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		FEED_CHECK(newline);
		check_json(at, (size_t)(newline - at));
		at = newline + 1;
	}
}

static void feed_pieces(struct dialer *c, struct world *w, const uint8_t *sizes, size_t n_sizes,
			const uint8_t *data, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; at < size; i++) {
		size_t n = n_sizes > 0 ? (size_t)sizes[i % n_sizes] + 1 : size;

		if (n > size - at)
			n = size - at;
		/* a server that has heard enough may close */
		if (send(c->fd, data + at, n, MSG_NOSIGNAL) < 0)
			return;
		at += n;
		world_settle(w);
	}
}

static void come_to_rest(struct dialer *c, struct world *w, bool read)
{
	world_settle(w);
	while (w->server->n_calls > 0) {
		FEED_CHECK(world_turn(w, NULL));
		if (read)
			dialer_read(c);
	}
	world_settle(w);
	if (read) {
		dialer_read(c);
		world_settle(w);
		dialer_read(c);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world *w = the_world();
	struct dialer c;
	size_t n_sizes;

	if (size == 0 || size < 1 + (size_t)(data[0] >> 5))
		return 0;
	n_sizes = data[0] >> 5;
	w->endpoint->dialect = &dialects[data[0] & 0x04 ? 1 : 0];
	w->endpoint->framing = (enum framing_choice)(data[0] & 3);
	FEED_CHECK(dialer_init(&c, w) == 0);
	feed_pieces(&c, w, data + 1, n_sizes, data + 1 + n_sizes, size - 1 - n_sizes);
	if (data[0] & 0x08)
		shutdown(c.fd, SHUT_WR);
	come_to_rest(&c, w, !(data[0] & 0x10));
	if ((data[0] & 3) == SPEAKS_LINE)
		check_lines(&c.in);
	dialer_done(&c);
	come_to_rest(&c, w, false);
	while (w->server->n_clients > 0)
		FEED_CHECK(world_turn(w, NULL));
	FEED_CHECK(w->server->n_calls == 0 && list_empty(&w->server->detached));
	return 0;
}
