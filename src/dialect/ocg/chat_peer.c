/*
 * What a connection has asked: its conversations, and what led to its last tool calls.
 *
 * A gateway may have all its users on one connection, asking side by side, and may send
 * results without the answer that asked for them. Its messages show neither.
 */
#include <errno.h>
#include <stdlib.h>

#include "call/call.h"
#include "call/client.h"
#include "dialect/ocg/ocg.h"

enum {
	CHAINS_MAX = 8, /* of one connection */
	CHAIN_BYTES_MAX = 16 << 10,
};

struct ocg_peer {
	struct client_hook hook;
	struct list talks;
	struct list chains;
	unsigned n_chains;
};

static void chain_free(struct ocg_chain *chain)
{
	list_remove(&chain->link);
	arena_done(&chain->arena);
	free(chain);
}

static void peer_gone(struct client_hook *h)
{
	struct ocg_peer *p = list_entry(h, struct ocg_peer, hook);

	list_for_each (at, following, &p->chains)
		chain_free(list_entry(at, struct ocg_chain, link));
	list_for_each (at, following, &p->talks)
		free(list_entry(at, struct ocg_talk, link));
	free(p);
}

struct ocg_peer *ocg_peer_of(struct call *c)
{
	struct client_hook *found = client_find_hook(c->client, peer_gone);
	struct ocg_peer *p;

	if (found)
		return list_entry(found, struct ocg_peer, hook);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	list_init(&p->talks);
	list_init(&p->chains);
	p->hook.closed = peer_gone;
	client_add_hook(c->client, &p->hook);
	return p;
}

const struct list *ocg_peer_chains(const struct ocg_peer *p)
{
	return &p->chains;
}

/* ---- conversations ---- */

static struct ocg_talk *find_free(const struct ocg_peer *p, struct text name)
{
	struct ocg_talk *first = NULL;

	list_for_each (at, following, &p->talks) {
		struct ocg_talk *t = list_entry(at, struct ocg_talk, link);

		if (t->busy)
			continue;
		if (text_is(name, t->name))
			return t;
		if (!first)
			first = t;
	}
	return first;
}

struct ocg_talk *ocg_peer_talk(struct ocg_peer *p, struct chat *chat, struct text name)
{
	struct ocg_talk *t = find_free(p, name);

	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			return NULL;
		chat_new_name(chat, t->name);
		list_append(&p->talks, &t->link);
	}
	t->busy = true;
	return t;
}

/* ---- what led to tool calls ---- */

int ocg_copy_messages(struct arena *a, const struct message *from, unsigned n, struct message *to)
{
	for (unsigned i = 0; i < n; i++) {
		to[i] = from[i];
		if (message_copy(a, &to[i]) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* Returns where the question begins. With results, it stands before the calls that they answer. */
static unsigned question_at(const struct chat_ask *ask)
{
	unsigned i = ask->n_history;

	if (ask->n_results == 0)
		return i;
	while (i > 0 && ask->history[--i].role != MESSAGE_USER)
		;
	return i;
}

/* Lists everything since the question, as sent and answered. `to` must have room for it. */
static unsigned list_chain(const struct chat_ask *ask, const struct chat_answer *answer,
			   struct message *to)
{
	unsigned n = 0;

	for (unsigned i = question_at(ask); i < ask->n_history; i++)
		to[n++] = ask->history[i];
	for (unsigned i = 0; i < ask->n_results; i++)
		to[n++] = (struct message) {.role = MESSAGE_TOOL,
					    .text = ask->results[i].text,
					    .call_id = ask->results[i].call_id,
					    .failed = ask->results[i].failed};
	if (ask->content.data)
		to[n++] = (struct message) {.role = MESSAGE_USER, .text = ask->content};
	to[n++] = (struct message) {.role = MESSAGE_ASSISTANT,
				    .text = answer->content,
				    .calls = answer->calls,
				    .n_calls = answer->n_calls};
	return n;
}

static int fill_chain(struct ocg_chain *chain, const struct message *said, unsigned n,
		      struct text conversation)
{
	arena_init(&chain->arena, CHAIN_BYTES_MAX);
	chain->conversation = conversation;
	chain->n_said = n;
	chain->said = arena_alloc(&chain->arena, n * sizeof(said[0]));
	if (!chain->said ||
	    arena_copy_text(&chain->arena, chain->conversation, &chain->conversation) != 0)
		return -ENOMEM;
	return ocg_copy_messages(&chain->arena, said, n, chain->said);
}

/* If the chain is too large, only the question and the answer are kept; if that fails, nothing. */
static struct ocg_chain *chain_new(struct message *said, unsigned n, struct text conversation)
{
	struct ocg_chain *chain = calloc(1, sizeof(*chain));
	int r;

	if (!chain)
		return NULL;
	list_init(&chain->link);
	r = fill_chain(chain, said, n, conversation);
	if (r != 0 && n > 2) {
		arena_done(&chain->arena);
		said[1] = said[n - 1];
		r = fill_chain(chain, said, 2, conversation);
	}
	if (r == 0)
		return chain;
	chain_free(chain);
	return NULL;
}

static void remember(struct ocg_peer *p, const struct chat_ask *ask, const struct chat_answer *a)
{
	struct message *said = calloc(ask->n_history + ask->n_results + 2, sizeof(*said));
	struct ocg_chain *chain =
		said ? chain_new(said, list_chain(ask, a, said), ask->conversation) : NULL;

	free(said);
	if (!chain)
		return;
	list_append(p->chains.next, &chain->link); /* as the first */
	if (++p->n_chains > CHAINS_MAX) {
		chain_free(list_entry(p->chains.prev, struct ocg_chain, link));
		p->n_chains--;
	}
}

void ocg_peer_answered(struct ocg_peer *p, const struct chat_ask *ask, const struct chat_answer *a)
{
	list_for_each (at, following, &p->talks) {
		struct ocg_talk *t = list_entry(at, struct ocg_talk, link);

		if (text_is(ask->conversation, t->name))
			t->busy = false;
	}
	if (a->result == 0 && a->n_calls > 0)
		remember(p, ask, a);
}
