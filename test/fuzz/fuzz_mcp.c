/*
 * MCP of both eras: bytes of a client, in pieces, over lines or HTTP, to a server with tools that
 * answer at once, later, on a thread, and ask. Every line must be JSON, and when the client has left
 * nothing of it may be left.
 *
 * The input's first byte steers: 0x01 is HTTP, 0x02 a list that changes before the end, 0x04 the end
 * of the stream behind the last byte, 0x08 a call of `slow` that is answered; the upper four bits are
 * the size of the pieces, 0 for all at once.
 *
 * Over HTTP, bytes that UTF-8 never has are orders to the harness: see enum order. With them an
 * input can open several connections, name its own session, and resume its own streams.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "../mcp_world.h"
#include "mcp/session.h"

enum order {
	ORDER_SESSION = 0xf5, /* stands for the id of the session used last */
	ORDER_TRACK,          /* stands for the number of the last stream that can be resumed */
	ORDER_CLOSE,          /* the connection closes; its next byte opens another */
	ORDER_PROGRESS,       /* `slow` reports progress, more than a queue holds */
	ORDER_END,            /* `slow` ends */
	ORDER_CHANGED,        /* a list changes */
	ORDER_CLIENT = 0xfc,  /* to 0xff: the connection that the following bytes belong to */
};

enum { N_CLIENTS = 4 };

struct clients {
	struct dialer all[N_CLIENTS];
	unsigned at;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Made once: what one client leaves behind, another may meet. */
static struct mcp_world *the_world(void)
{
	static struct mcp_world m;
	struct server_opts opts = {
		.limits = default_limits, .workers = {.n_readers = 1}, .version = "0"};

	if (m.mcp)
		return &m;
	opts.limits.queue_bytes = 4096;
	opts.limits.json_depth = 20;
	FEED_CHECK(mcp_world_init_with(&m, &opts) == 0);
	return &m;
}

static void check_lines(const struct buf *in)
{
	static const struct json_limits wide = {.depth = 100, .values = 100000};
	const char *at = in->len > 0 ? in->data : "";
	const char *end = at + in->len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct value *root = NULL;
		struct arena a;

		FEED_CHECK(newline);
		arena_init(&a, 16 << 20);
		FEED_CHECK(json_read(&a, at, (size_t)(newline - at), &wide, &root, NULL) == 0);
		arena_done(&a);
		at = newline + 1;
	}
}

static void feed(struct dialer *c, struct world *w, const void *bytes, size_t size, size_t piece)
{
	const char *data = bytes;

	if (c->fd < 0)
		FEED_CHECK(dialer_init(c, w) == 0);
	for (size_t at = 0; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		if (send(c->fd, data + at, n, MSG_NOSIGNAL) < 0)
			return;
		world_settle(w);
	}
}

static void end_slow(void)
{
	struct call *c = slow_call;

	slow_call = NULL;
	if (!c)
		return;
	mcp_progress(c, 2, 2, "ended");
	mcp_hang_up(c);
	mcp_text(c, TEXT("ended"));
	(void)call_reply(c);
}

static void report_progress(void)
{
	static char big[8192];

	memset(big, 'x', sizeof(big) - 1);
	if (slow_call)
		mcp_progress(slow_call, opened(slow_call)->progress + 1, 0, big);
}

static void feed_session(struct clients *all, struct mcp_world *m)
{
	struct mcp_session *s =
		list_empty(&m->mcp->sessions)
			? NULL
			: list_entry(m->mcp->sessions.prev, struct mcp_session, link);

	if (s)
		feed(&all->all[all->at], &m->w, s->id, strlen(s->id), SESSION_ID);
}

static void feed_track(struct clients *all, struct mcp_world *m)
{
	char number[24];
	int n = snprintf(number, sizeof(number), "%llu", (unsigned long long)m->mcp->last_number);

	feed(&all->all[all->at], &m->w, number, (size_t)n, (size_t)n);
}

static void follow(struct clients *all, struct mcp_world *m, uint8_t order)
{
	struct dialer *c = &all->all[all->at];

	if (order >= ORDER_CLIENT)
		all->at = order - ORDER_CLIENT;
	else if (order == ORDER_SESSION)
		feed_session(all, m);
	else if (order == ORDER_TRACK)
		feed_track(all, m);
	else if (order == ORDER_CLOSE)
		dialer_done(c);
	else if (order == ORDER_PROGRESS)
		report_progress();
	else if (order == ORDER_END)
		end_slow();
	else if (order == ORDER_CHANGED)
		mcp_changed(m->mcp, MCP_TOOLS);
	world_settle(&m->w);
}

static void feed_orders(struct clients *all, struct mcp_world *m, const uint8_t *data, size_t size,
			size_t piece)
{
	size_t n;

	for (size_t at = 0; at < size; at += n) {
		n = 0;
		while (at + n < size && data[at + n] < ORDER_SESSION)
			n++;
		if (n > 0)
			feed(&all->all[all->at], &m->w, data + at, n, piece);
		if (at + n < size)
			follow(all, m, data[at + n++]);
	}
}

/* What waits for a client that has left, or for nobody, ends here. */
static void end_detached(struct world *w)
{
	if (slow_call && !slow_call->client)
		end_slow();
	list_for_each (at, following, &w->server->detached)
		call_cancel(list_entry(at, struct call, link));
}

static void come_to_rest(struct world *w)
{
	end_detached(w);
	for (unsigned i = 0; w->server->n_clients > 0 || w->server->n_calls > 0; i++) {
		FEED_CHECK(i < 100000 && world_turn(w, NULL));
		end_detached(w);
	}
}

static void hang_up(struct clients *all, struct world *w, uint8_t how)
{
	for (unsigned i = 0; i < N_CLIENTS; i++) {
		struct dialer *c = &all->all[i];

		dialer_read(c);
		if ((how & 0x04) && c->fd >= 0)
			shutdown(c->fd, SHUT_WR);
		world_settle(w);
		dialer_read(c);
		if (!(how & 0x01))
			check_lines(&c->in);
		dialer_done(c);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mcp_world *m = the_world();
	struct clients all = {.at = 0};
	size_t piece;
	uint8_t how;

	if (size == 0)
		return 0;
	how = data[0];
	piece = how >> 4 ? (size_t)(how >> 4) * 16 : size;
	m->w.endpoint->framing = how & 0x01 ? SPEAKS_HTTP : SPEAKS_LINE;
	for (unsigned i = 0; i < N_CLIENTS; i++)
		all.all[i].fd = -1;
	if (how & 0x01)
		feed_orders(&all, m, data + 1, size - 1, piece);
	else
		feed(&all.all[0], &m->w, data + 1, size - 1, piece);
	if (how & 0x02) {
		mcp_changed(m->mcp, MCP_TOOLS | MCP_PROMPTS | MCP_RESOURCES);
		mcp_updated(m->mcp, TEXT("w://fixed"));
	}
	if (how & 0x08)
		end_slow();
	world_settle(&m->w);
	hang_up(&all, &m->w, how);
	come_to_rest(&m->w);
	FEED_CHECK(m->w.server->n_calls == 0 && list_empty(&m->w.server->detached));
	return 0;
}
