/*
 * MCP of both eras: bytes of a client, in pieces, over lines or HTTP, to a server with tools that
 * answer at once, later, on a thread, and ask. Every line must be JSON, and when the client has left
 * nothing of it may be left.
 *
 * The input's first byte steers: 0x01 is HTTP, 0x02 a list that changes before the end, 0x04 the end
 * of the stream behind the last byte, 0x08 a call of `slow` that is answered; the upper four bits are
 * the size of the pieces, 0 for all at once.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "../mcp_world.h"

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

static void feed(struct dialer *c, struct world *w, const uint8_t *data, size_t size, size_t piece)
{
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

/* What waits for a client that has left, or for nobody, ends here. */
static void end_detached(struct world *w)
{
	if (slow_call && !slow_call->client)
		end_slow();
	list_for_each (at, following, &w->server->detached)
		call_cancel(list_entry(at, struct call, link));
}

static void come_to_rest(struct dialer *c, struct world *w)
{
	end_detached(w);
	for (unsigned i = 0; w->server->n_clients > 0 || w->server->n_calls > 0; i++) {
		FEED_CHECK(i < 100000 && world_turn(w, NULL));
		dialer_read(c);
		end_detached(w);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mcp_world *m = the_world();
	struct dialer c;
	uint8_t how;

	if (size == 0)
		return 0;
	how = data[0];
	m->w.endpoint->framing = how & 0x01 ? SPEAKS_HTTP : SPEAKS_LINE;
	FEED_CHECK(dialer_init(&c, &m->w) == 0);
	feed(&c, &m->w, data + 1, size - 1, how >> 4 ? (size_t)(how >> 4) * 16 : size);
	if (how & 0x02) {
		mcp_changed(m->mcp, MCP_TOOLS | MCP_PROMPTS | MCP_RESOURCES);
		mcp_updated(m->mcp, TEXT("w://fixed"));
	}
	if (how & 0x08)
		end_slow();
	world_settle(&m->w);
	dialer_read(&c);
	if (how & 0x04)
		shutdown(c.fd, SHUT_WR);
	world_settle(&m->w);
	dialer_read(&c);
	if (!(how & 0x01))
		check_lines(&c.in);
	close(c.fd);
	c.fd = -1;
	come_to_rest(&c, &m->w);
	dialer_done(&c);
	FEED_CHECK(m->w.server->n_calls == 0 && list_empty(&m->w.server->detached));
	return 0;
}
