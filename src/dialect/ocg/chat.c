/* Chat: a question over a connection, which is a conversation of its own. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "call/server.h"
#include "call/session.h"
#include "dialect/chat_wire.h"
#include "dialect/ocg/ocg.h"

/* What a connection is known by, from its first question on. */
struct peer_chat {
	struct session_hook hook;
	char name[CHAT_ID_MAX + 1];
};

static void peer_gone(struct session_hook *h)
{
	free(list_entry(h, struct peer_chat, hook));
}

static const struct peer_chat *peer_chat_of(struct call *c)
{
	struct session_hook *found = session_find_hook(c->session, peer_gone);
	struct peer_chat *p;

	if (found)
		return list_entry(found, struct peer_chat, hook);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->hook.closed = peer_gone;
	chat_new_name(call_services(c), p->name);
	session_add_hook(c->session, &p->hook);
	return p;
}

static void write_calls(struct json *j, const struct chat_answer *a)
{
	json_key(j, "Tools");
	json_begin_array(j);
	for (unsigned i = 0; i < a->n_calls; i++) {
		json_begin_object(j);
		json_member_text(j, "ID", a->calls[i].id);
		json_member_str(j, "Type", "function");
		json_key(j, "Function");
		json_begin_object(j);
		json_member_text(j, "Name", a->calls[i].name);
		json_member_text(j, "Arguments", a->calls[i].arguments);
		json_end_object(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void write_reply(struct json *j, const struct chat_answer *a)
{
	json_begin_object(j);
	json_member_text(j, "Content", a->content.data ? a->content : TEXT(""));
	if (a->n_calls > 0)
		write_calls(j, a);
	json_end_object(j);
}

/* The words of the original, which had them in the answer's text: there a program could not tell
 * them from what an agent says. */
static void fail_chat(struct call *c, const struct chat_answer *a)
{
	CLEANUP(buf_donep) struct buf words;

	buf_init(&words, 8 << 10);
	if (a->outcome != AGENT_FAILED || !a->error_text) {
		if (a->result > 0 && a->why)
			c->why = *a->why;
		(void)call_fail(c, a->result);
		return;
	}
	buf_printf(&words, "API error: %s", a->error_text);
	(void)call_fail_with(c, c->dialect->errors[REFUSE_INTERNAL].code,
			     (struct text) {.data = words.data, .len = words.len},
			     (struct text) {0});
}

static void chat_done(void *arg, const struct chat_answer *a)
{
	struct call *c = arg;

	if (a->outcome == AGENT_CANCELLED) {
		(void)call_fail(c, refuse(&c->why, REFUSE_CANCELLED, "cancelled"));
	} else if (a->result != 0) {
		fail_chat(c, a);
	} else {
		write_reply(call_result(c), a);
		(void)call_reply(c);
	}
}

static void chat_cancelled(struct call *c, void *arg)
{
	(void)arg;
	if (c->state)
		chat_turn_cancel(c->state);
}

/* Whoever comes over a port without a token hears what is common, and nobody's own. */
static struct memory_asker quoted_to(const struct call *c)
{
	struct memory_asker by = ocg_asker(c);

	if (!by.user.data && c->endpoint->tcp && !c->endpoint->token[0])
		by.user = TEXT("ocg");
	return by;
}

static int read_ask(struct call *c, struct chat_ask *ask)
{
	const struct peer_chat *p;
	int r;

	if (!chat_agent(call_services(c), (struct text) {0}))
		return refuse(&c->why, REFUSE_UNAVAILABLE, "agent not initialized");
	r = ocg_chat_read(&c->arena, c->in, ask);
	if (r != 0)
		return r;
	p = peer_chat_of(c);
	if (!p)
		return -ENOMEM;
	ask->conversation = text_of(p->name);
	ask->by = quoted_to(c);
	return chat_wire_ask_id(&c->arena, NULL, ask);
}

struct done ocg_chat(struct call *c)
{
	const struct chat_sink sink = {.on_done = chat_done, .arg = c};
	struct chat_turn *turn = NULL;
	struct chat_ask ask;
	int r = read_ask(c, &ask);

	if (r != 0)
		return call_fail(c, r);
	(void)call_later(c, chat_cancelled, NULL);
	r = chat_send(call_services(c), &ask, &sink, &turn, &c->why);
	if (r != 0)
		return call_fail(c, r);
	c->state = turn;
	return call_settled(c);
}
