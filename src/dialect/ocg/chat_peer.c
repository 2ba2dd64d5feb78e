/*
 * What a connection has asked: its conversations.
 *
 * A gateway may have all its users on one connection, and what they ask runs side by side.
 */
#include <stdlib.h>

#include "call/server.h"
#include "call/session.h"
#include "dialect/ocg/ocg.h"

struct ocg_peer {
	struct session_hook hook;
	struct list talks;
};

static void peer_gone(struct session_hook *h)
{
	struct ocg_peer *p = list_entry(h, struct ocg_peer, hook);

	list_for_each (at, following, &p->talks)
		free(list_entry(at, struct ocg_talk, link));
	free(p);
}

struct ocg_peer *ocg_peer_of(struct call *c)
{
	struct session_hook *found = session_find_hook(c->session, peer_gone);
	struct ocg_peer *p;

	if (found)
		return list_entry(found, struct ocg_peer, hook);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	list_init(&p->talks);
	p->hook.closed = peer_gone;
	session_add_hook(c->session, &p->hook);
	return p;
}

static struct ocg_talk *find_free(const struct ocg_peer *p)
{
	list_for_each (at, following, &p->talks) {
		struct ocg_talk *t = list_entry(at, struct ocg_talk, link);

		if (!t->busy)
			return t;
	}
	return NULL;
}

struct ocg_talk *ocg_peer_talk(struct ocg_peer *p, struct services *s)
{
	struct ocg_talk *t = find_free(p);

	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return NULL;
		chat_new_name(s, t->name);
		list_append(&p->talks, &t->link);
	}
	t->busy = true;
	return t;
}

void ocg_peer_answered(struct ocg_peer *p, const struct chat_ask *ask)
{
	list_for_each (at, following, &p->talks) {
		struct ocg_talk *t = list_entry(at, struct ocg_talk, link);

		if (text_is(ask->conversation, t->name))
			t->busy = false;
	}
}
