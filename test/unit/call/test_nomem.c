/*
 * Every allocation fails in turn, once alone and once with all that follow: a
 * server is made, listens, is talked to
 * in every framing and goes again. It may refuse, drop or close, but never
 * crash, hang, leak, or send what is no whole answer; and once there is memory
 * again, it serves on.
 */
#include "check.h"

#include <sys/un.h>

#include "../call_world.h"
#include "call/http.h"
#include "failing/nomem.h"
#include "tempdir.h"

/* ---- the server ---- */

struct text_in {
	struct text text;
};

static const struct field text_fields[] = {
	{.name = "text", .type = FIELD_STRING, .required = true},
};

static struct done handle_echo(struct call *c)
{
	const struct text_in *in = c->in;

	json_text(call_result(c), in->text);
	return call_reply(c);
}

static struct done handle_after(struct call *c)
{
	return call_after(c, 0, handle_echo);
}

static struct done handle_stream(struct call *c)
{
	const struct text_in *in = c->in;

	(void)call_stream_begin(c, 200, "text/plain");
	(void)call_stream(c, in->text.data, in->text.len);
	return call_stream_end(c);
}

static struct done handle_shout(struct call *c)
{
	server_notify_all(c->server, TEXT("shout"), TEXT("[]"), NULL);
	return call_reply(c);
}

#define IN .fields = text_fields, .n_fields = 1, .in_size = sizeof(struct text_in)

static const struct method methods[] = {
	{.name = "echo", .handle = handle_echo, IN},
	{.name = "read", .handle = handle_echo, IN, .where = READER},
	{.name = "write", .handle = handle_echo, IN, .where = WRITER},
	{.name = "after", .handle = handle_after, IN, .flags = METHOD_LATER},
	{.name = "shout", .handle = handle_shout, IN},
};

#define ROW                                                                                        \
	{                                                                                          \
		-32000, "words", WORDS_BOTH, 0                                                     \
	}

static const struct error_row errors[N_REFUSALS] = {
	ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW, ROW,
};

static const char *const paths[] = {"/", NULL};

static const struct http_route routes[] = {
	{"GET", "/echo/*", {.name = "echo", .handle = handle_echo, IN}},
	{"POST", "/echo", {.name = "echo", .handle = handle_echo, IN, .where = READER}},
	{"GET", "/stream", {.name = "stream", .handle = handle_stream, IN}},
};

static const struct dialect dialect = {
	.name = "nomem",
	.message_max = 1 << 20,
	.errors = errors,
	.methods = methods,
	.n_methods = sizeof(methods) / sizeof(methods[0]),
	.http_paths = paths,
	.http_silent_status = 200,
	.http_routes = routes,
	.n_http_routes = 3,
};

/* ---- what is said to it ---- */

#define CALL(method, id)                                                                           \
	"{\"jsonrpc\":\"2.0\",\"method\":\"" method                                                \
	"\",\"params\":{\"text\":\"caf\\u00e9\"},\"id\":" id "}"

/* A line conversation: pipelined, so that calls wait, with a batch. */
static const char line_text[] = CALL("after", "1") "\n" CALL("echo", "2") "\n" CALL(
	"absent",
	"3") "\n"
	     "[" CALL("echo", "4") "," CALL("read", "5") "," CALL("after", "6") ",1]\n" CALL(
		     "write", "7") "\n" CALL("shout",
					     "8") "\n" CALL("rpc.cancel",
							    "9") "\n" CALL("rpc.discover",
									   "10") "\nnonsense\n";

#define CHUNK CALL("echo", "1")

static const char http_text[] =
	"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
	"46\r\n" CHUNK "\r\n0\r\n\r\n"
	"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}"
	"GET /echo/here?text=caf%C3%A9 HTTP/1.1\r\nHost: localhost\r\n\r\n"
	"GET /stream?text=caf%C3%A9&other=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
	"POST /echo?more=1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n"
	"{\"text\":\"a\"}"
	"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70\r\nConnection: "
	"close\r\n\r\n" CALL("read", "2");

static void check_json(const char *text, size_t len)
{
	struct value *root = NULL;
	struct arena a;
	int r;

	nomem_spared = true;
	arena_init(&a, 16 << 20);
	r = json_read(&a, text, len, &json_default_limits, &root, NULL);
	if (r != 0)
		fail_msg("allocation %u: no JSON: %.*s", nomem_at(), (int)len, text);
	arena_done(&a);
	nomem_spared = false;
}

static unsigned check_lines(const struct dialer *c)
{
	size_t at = 0;
	unsigned n = 0;

	while (at < c->in.len) {
		const char *line = c->in.data + at;
		const char *newline = memchr(line, '\n', c->in.len - at);

		if (!newline)
			fail_msg("half a line: %.*s", (int)(c->in.len - at), line);
		check_json(line, (size_t)(newline - line));
		at += (size_t)(newline - line) + 1;
		n++;
	}
	return n;
}

static unsigned check_lengths(const struct dialer *c)
{
	const unsigned char *p = (const unsigned char *)c->in.data;
	size_t at = 0;
	unsigned n = 0;

	while (at < c->in.len) {
		size_t len;

		assert_true(c->in.len - at >= 4);
		len = (size_t)p[at] << 24 | (size_t)p[at + 1] << 16 | (size_t)p[at + 2] << 8 |
		      p[at + 3];
		assert_true(c->in.len - at - 4 >= len);
		check_json(c->in.data + at + 4, len);
		at += 4 + len;
		n++;
	}
	return n;
}

/* Reads with memory of its own: the client is not what is tested. */
static void read_all(struct dialer *c, struct world *w)
{
	while (!c->eof) {
		if (!world_turn(w, c))
			fail_msg("allocation %u: the server neither answers nor closes",
				 nomem_at());
		nomem_spared = true;
		dialer_read(c);
		nomem_spared = false;
	}
}

/* Says it all, then that nothing follows; takes what comes until the end. */
static bool say(struct world *w, struct dialer *c, const void *text, size_t len)
{
	const char *data = text;
	size_t half = len / 2;

	/* in two pieces, so that one must be kept */
	if (dialer_init(c, w) != 0)
		return false;
	if (dialer_send_n(c, w, data, half)) {
		world_settle(w);
		dialer_send_n(c, w, data + half, len - half);
	}
	shutdown(c->fd, SHUT_WR);
	read_all(c, w);
	return true;
}

static unsigned talk_line(struct world *w)
{
	struct dialer c;
	unsigned n = 0;

	if (say(w, &c, line_text, sizeof(line_text) - 1))
		n = check_lines(&c);
	dialer_done(&c);
	return n;
}

static unsigned talk_length(struct world *w)
{
	static const char first[] = CALL("read", "1");
	char text[200] = {0, 0, 0, sizeof(first) - 1};
	struct dialer c;
	unsigned n = 0;

	memcpy(text + 4, first, sizeof(first) - 1);
	if (say(w, &c, text, 4 + sizeof(first) - 1))
		n = check_lengths(&c);
	dialer_done(&c);
	return n;
}

static unsigned talk_http(struct world *w)
{
	struct dialer c;
	unsigned n = 0;

	if (say(w, &c, http_text, sizeof(http_text) - 1)) {
		const char *at = c.in.data;

		for (; at && (at = memmem(at, (size_t)(c.in.data + c.in.len - at), "HTTP/1.1 ", 9));
		     at++)
			n++;
	}
	dialer_done(&c);
	return n;
}

/* A Unix socket beside the pairs, and a client that connects to it. */
static unsigned talk_socket(struct world *w, const char *dir)
{
	struct endpoint_opts opts = {
		.dialect = &dialect, .registry = w->registry, .framing = SPEAKS_LINE, .fd = -1};
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	struct endpoint *e = NULL;
	struct dialer c = {0};
	unsigned n = 0;

	snprintf(opts.address.path, sizeof(opts.address.path), "%s/s", dir);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s/s", dir);
	if (server_listen(w->server, &opts, &e, NULL) != 0)
		return 0;
	buf_init(&c.in, 1 << 20);
	c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(c.fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(send(c.fd, CALL("echo", "1") "\n", 71, MSG_NOSIGNAL), 71);
	shutdown(c.fd, SHUT_WR);
	read_all(&c, w);
	n = check_lines(&c);
	dialer_done(&c);
	return n;
}

struct counts {
	unsigned line, length, http, socket;
};

/* The whole scene; false when not even the server could be made. */
static bool scene(const char *dir, struct counts *ret)
{
	struct server_opts opts = {
		.limits = default_limits, .workers = {.n_readers = 1}, .version = "0"};
	struct world w;

	if (world_init(&w, &dialect, &opts) != 0)
		return false;
	ret->line = talk_line(&w);
	ret->length = talk_length(&w);
	ret->http = talk_http(&w);
	ret->socket = talk_socket(&w, dir);
	if (nomem_failed()) {
		/* once there is memory again, all is well */
		nomem_stop();
		assert_int_equal(talk_line(&w), 9);
		assert_int_equal(talk_length(&w), 1);
		assert_int_equal(talk_http(&w), 6);
	}
	server_stop(w.server);
	world_settle(&w);
	world_done(&w);
	return true;
}

static void fail_in_turn(bool all)
{
	struct counts counts;
	char dir[TEMPDIR_MAX];
	bool through = false;
	unsigned n = 0;

	tempdir_make(dir);
	while (!through) {
		counts = (struct counts) {0};
		nomem_fail(++n, all);
		scene(dir, &counts);
		nomem_stop();
		through = !nomem_failed();
		assert_true(n < 100000);
	}
	print_message("%u allocations\n", n - 1);
	assert_true(n > 30);
	assert_int_equal(counts.line, 9);
	assert_int_equal(counts.length, 1);
	assert_int_equal(counts.http, 6);
	assert_int_equal(counts.socket, 1);
	tempdir_remove(dir);
}

TEST(every_allocation_may_fail)
{
	fail_in_turn(false);
}

TEST(every_allocation_may_be_the_last)
{
	fail_in_turn(true);
}
