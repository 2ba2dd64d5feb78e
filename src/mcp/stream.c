/*
 * What a client is told while its call runs: as lines on its connection, or over HTTP as events of a
 * stream, which begins with the first of them.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "call/client.h"
#include "mcp/inner.h"
#include "mcp/track.h"

/* JSON text has line breaks only between its tokens; an event's data ends with one. */
static void add_flat(struct buf *out, struct text json)
{
	size_t at = out->len;

	buf_add(out, json.data, json.len);
	for (; out->err == 0 && at < out->len; at++) {
		if (out->data[at] == '\n' || out->data[at] == '\r')
			out->data[at] = ' ';
	}
}

void mcp_event_add(struct buf *out, struct text id, struct text message)
{
	buf_add_str(out, "event: message\n");
	if (id.data) {
		buf_add_str(out, "id: ");
		buf_add(out, id.data, id.len);
		buf_add_char(out, '\n');
	}
	buf_add_str(out, "data: ");
	add_flat(out, message);
	buf_add_str(out, "\n\n");
}

/* An event without data gives the client something to come back with, if the stream breaks before
 * anything was told. Older clients would take it for a message. */
static void prime(struct mcp_call *mc)
{
	char event[96];
	char id[48];
	int n;

	if (!mc->session || !mc->row || strcmp(mc->version, mcp_newest_legacy()) != 0)
		return;
	mc->track = track_new(mc);
	if (!mc->track)
		return;
	track_next_id(mc->track, id, sizeof(id));
	n = snprintf(event, sizeof(event), "id: %s\nretry: 500\ndata: \n\n", id);
	(void)call_stream(mc->call, event, (size_t)n);
}

/* ---- signs of life ---- */

/* Some clients give up a stream on which nothing has come for minutes. */
static void keep_alive(void *arg)
{
	struct mcp *m = arg;

	list_for_each (at, following, &m->streams) {
		struct mcp_call *mc = list_entry(at, struct mcp_call, stream_link);

		(void)call_stream(mc->call, ":\n\n", 3);
	}
}

/* Without memory for the clock it is silent. */
static void stream_begun(struct mcp_call *mc)
{
	struct mcp *m = mc->mcp;

	if (!m->keep_alive && timer_new(mc->call->server->loop, keep_alive, m, &m->keep_alive) != 0)
		m->keep_alive = NULL;
	if (m->keep_alive && list_empty(&m->streams))
		timer_repeat(m->keep_alive, m->opts.keep_alive_ms);
	list_append(&m->streams, &mc->stream_link);
}

void mcp_stream_ended(struct mcp_call *mc)
{
	struct mcp *m = mc->mcp;

	if (list_empty(&mc->stream_link))
		return;
	list_remove(&mc->stream_link);
	if (m->keep_alive && list_empty(&m->streams))
		timer_stop(m->keep_alive);
}

int mcp_stream(struct mcp_call *mc)
{
	struct call *c = mc->call;
	bool watched = c->watched || !mc->row;
	int r;

	if (c->streaming)
		return 0;
	if (!mc->http || !mc->takes_events || (c->method->where != ON_LOOP && !c->waits))
		return -ENOTSUP;
	r = call_stream_begin_with(c, 200, "text/event-stream",
				   "Cache-Control: no-cache, no-transform\r\n"
				   "X-Accel-Buffering: no\r\n");
	/* A legacy client that loses its connection has not cancelled anything. */
	c->watched = watched;
	if (r == 0)
		stream_begun(mc);
	if (r == 0 && mc->era == MCP_LEGACY)
		prime(mc);
	return r;
}

static int send_event(struct mcp_call *mc, struct text message)
{
	CLEANUP(buf_donep) struct buf out = {0};
	int r = mcp_stream(mc);

	if (r != 0)
		return r;
	if (mc->track)
		return track_add(mc->track, message);
	buf_init(&out, message.len + 256);
	mcp_event_add(&out, (struct text) {0}, message);
	return out.err != 0 ? out.err : call_stream(mc->call, out.data, out.len);
}

int mcp_tell(struct mcp_call *mc, struct text message)
{
	struct client *s = mc->call->client;

	if (mc->http)
		return mc->track ? track_add(mc->track, message)
		       : s       ? send_event(mc, message)
				 : -ENOTCONN;
	return s ? client_notify(s, message.data, message.len) : -ENOTCONN;
}

void mcp_hang_up(struct call *c)
{
	struct mcp_call *mc = opened(c);

	if (!mc->http || mc->era != MCP_LEGACY || mcp_stream(mc) != 0 || !mc->track)
		return;
	track_dropped(mc->track, mc);
	mcp_stream_ended(mc);
	client_let_go(c);
}
