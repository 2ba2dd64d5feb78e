/*
 * What a client is told while its call runs: as lines on its connection, or over HTTP as events of a
 * stream, which begins with the first of them.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "call/client.h"
#include "mcp/inner.h"
#include "mcp/session.h"
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

int mcp_stream(struct mcp_call *mc)
{
	struct call *c = mc->call;
	bool watched = c->watched || !mc->row;
	int r;

	if (c->streaming)
		return 0;
	if (!mc->http || !mc->takes_events || c->method->where != ON_LOOP)
		return -ENOTSUP;
	r = call_stream_begin_with(c, 200, "text/event-stream",
				   "Cache-Control: no-cache, no-transform\r\n"
				   "X-Accel-Buffering: no\r\n");
	/* A legacy client that loses its connection has not cancelled anything. */
	c->watched = watched;
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
	client_let_go(c);
}
