#include "mcp/track.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "mcp/session.h"

static void forget(struct mcp_track *t, struct track_event *e)
{
	list_remove(&e->link);
	t->bytes -= sizeof(*e) + e->len;
	t->session->mcp->track_bytes -= sizeof(*e) + e->len;
	free(e);
}

static struct track_event *oldest(const struct mcp_track *t)
{
	struct list *first = list_first(&t->events);

	return first ? list_entry(first, struct track_event, link) : NULL;
}

static void track_free(struct mcp_track *t)
{
	struct track_event *e;

	while ((e = oldest(t)))
		forget(t, e);
	list_remove(&t->link);
	t->session->mcp->track_bytes -= sizeof(*t);
	t->session->n_tracks--;
	free(t);
}

void tracks_free(struct mcp_session *s)
{
	struct list *first;

	while ((first = list_first(&s->tracks)))
		track_free(list_entry(first, struct mcp_track, link));
}

/* Only one whose answer has been made may go: a call points to the others. */
static void track_make_room(struct mcp_session *s)
{
	if (s->n_tracks < MCP_TRACKS_MAX)
		return;
	list_for_each (at, following, &s->tracks) {
		struct mcp_track *t = list_entry(at, struct mcp_track, link);

		if (t->call || t->carrier)
			continue;
		track_free(t);
		return;
	}
}

struct mcp_track *track_new(struct mcp_call *mc)
{
	struct mcp_session *s = mc->session;
	struct mcp_track *t;

	track_make_room(s);
	if (s->n_tracks >= MCP_TRACKS_MAX || s->mcp->track_bytes + sizeof(*t) > MCP_TRACKS_BYTES)
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	s->mcp->track_bytes += sizeof(*t);
	t->session = s;
	t->number = ++s->mcp->last_number;
	t->call = mc;
	t->carrier = mc;
	list_init(&t->events);
	list_append(&s->tracks, &t->link);
	s->n_tracks++;
	return t;
}

void track_next_id(const struct mcp_track *t, char *out, size_t size)
{
	snprintf(out, size, "%llu.%llu", (unsigned long long)t->number,
		 (unsigned long long)t->n_events);
}

static void track_keep(struct mcp_track *t, struct text message)
{
	struct mcp *m = t->session->mcp;
	size_t n = sizeof(struct track_event) + message.len;
	struct track_event *e;

	while (t->bytes + n > MCP_TRACK_BYTES && (e = oldest(t)))
		forget(t, e);
	if (m->track_bytes + n > MCP_TRACKS_BYTES)
		return;
	e = malloc(n);
	if (!e)
		return;
	e->number = t->n_events;
	e->len = message.len;
	memcpy(e->data, message.data, message.len);
	t->bytes += n;
	m->track_bytes += n;
	list_append(&t->events, &e->link);
}

/* The call that owns the track keeps its pointer without carrying it; any other call points to the
 * track only while it carries it. Every change of the carrier goes through here, so that no call
 * keeps a pointer to a track that no longer knows of it. */
static struct mcp_call *set_carrier(struct mcp_track *t, struct mcp_call *carrier)
{
	struct mcp_call *previous = t->carrier;

	if (previous && previous != t->call)
		previous->track = NULL;
	t->carrier = carrier;
	if (carrier)
		carrier->track = t;
	return previous;
}

static int carry(struct mcp_track *t, uint64_t number, struct text message)
{
	CLEANUP(buf_donep) struct buf out = {0};
	struct call *c = t->carrier ? t->carrier->call : NULL;
	bool own = t->carrier == t->call;
	char id[48];
	int r;

	if (!c || !c->client || !c->streaming)
		return -ENOTCONN;
	snprintf(id, sizeof(id), "%llu.%llu", (unsigned long long)t->number,
		 (unsigned long long)number);
	buf_init(&out, 2 * message.len + 256);
	mcp_event_add(&out, text_of(id), message);
	r = out.err != 0 ? out.err : call_stream(c, out.data, out.len);
	if (r == 0)
		return 0;
	/* The client lacks this event, so its connection must not carry any later one. A GET has
	 * nothing else to carry: it ends, and its client can resume. */
	(void)set_carrier(t, NULL);
	if (!own)
		(void)call_reply(c);
	return r;
}

int track_add(struct mcp_track *t, struct text message)
{
	t->n_events++;
	track_keep(t, message);
	return carry(t, t->n_events, message);
}

void track_end(struct mcp_track *t)
{
	struct mcp_call *own = t->call;
	struct mcp_call *carrier = set_carrier(t, NULL);
	bool delivered = carrier && carrier->call->client;

	own->track = NULL;
	t->ended = true;
	t->call = NULL;
	if (delivered)
		track_free(t);
	if (carrier && carrier != own)
		(void)call_reply(carrier->call);
}

void track_dropped(struct mcp_track *t, struct mcp_call *carrier)
{
	if (t->carrier == carrier)
		(void)set_carrier(t, NULL);
}

struct mcp_track *track_find(struct mcp_session *s, struct text last_id, uint64_t *ret_after)
{
	unsigned long long number;
	unsigned long long after;
	char id[48];

	if (last_id.len >= sizeof(id))
		return NULL;
	memcpy(id, last_id.data, last_id.len);
	id[last_id.len] = '\0';
	if (sscanf(id, "%llu.%llu", &number, &after) != 2)
		return NULL;
	list_for_each (at, following, &s->tracks) {
		struct mcp_track *t = list_entry(at, struct mcp_track, link);

		if (t->number == number) {
			*ret_after = after;
			return t;
		}
	}
	return NULL;
}

static int replay(struct mcp_track *t, uint64_t after)
{
	list_for_each (at, following, &t->events) {
		struct track_event *e = list_entry(at, struct track_event, link);
		int r = e->number > after ? carry(t, e->number, (struct text) {e->data, e->len})
					  : 0;

		if (r != 0)
			return r;
	}
	return 0;
}

void track_resume(struct mcp_track *t, struct mcp_call *carrier, uint64_t after)
{
	struct mcp_call *own = t->call;
	struct mcp_call *previous = set_carrier(t, carrier);

	if (replay(t, after) == 0 && t->ended) {
		(void)set_carrier(t, NULL);
		track_free(t);
	}
	/* The previous connection may have broken without anybody noticing. Its next request may
	 * run now and resume the same track, so nothing is read of the track afterwards. */
	if (previous && previous != own)
		(void)call_reply(previous->call);
}
