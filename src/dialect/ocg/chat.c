/* Chat: a question over a connection, in one of that connection's own conversations. */
#include <errno.h>

#include "base/cleanup.h"
#include "call/call.h"
#include "call/server.h"
#include "dialect/chat_wire.h"
#include "dialect/engine.h"
#include "dialect/ocg/ocg.h"

/* A question until it is answered; lives in the call's arena. */
struct ocg_chat_asked {
	struct call *call;
	struct chat_ask ask;
};

static void write_calls(struct json *j, const struct chat_answer *a)
{
	json_member_array(j, "Tools");
	for (unsigned i = 0; i < a->n_calls; i++) {
		json_begin_object(j);
		json_member_text(j, "ID", a->calls[i].id);
		json_member_str(j, "Type", "function");
		json_member_object(j, "Function");
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

/* The original puts the same words into the answer's text, where a program cannot tell them from
 * what an agent says. */
static void fail_chat(struct call *c, const struct chat_answer *a)
{
	CLEANUP(buf_donep) struct buf text;

	buf_init(&text, 8 << 10);
	if (a->outcome != AGENT_FAILED || !a->error_text) {
		if (a->result > 0 && a->error)
			c->error = *a->error;
		(void)call_fail(c, a->result);
		return;
	}
	buf_printf(&text, "API error: %s", a->error_text);
	(void)call_fail_with(c, c->dialect->errors[REFUSE_INTERNAL].code,
			     (struct text) {.data = text.data, .len = text.len}, (struct text) {0});
}

/* Answering comes last, because it may bring the connection's next question. */
static void chat_done(void *arg, const struct chat_answer *a)
{
	const struct ocg_chat_asked *asked = arg;
	struct call *c = asked->call;
	struct ocg_peer *p = c->client ? ocg_peer_of(c) : NULL;

	if (p)
		ocg_peer_answered(p, &asked->ask, a);
	if (a->outcome == AGENT_CANCELLED) {
		(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
	} else if (a->result != 0) {
		fail_chat(c, a);
	} else {
		write_reply(call_result(c), a);
		(void)call_reply(c);
	}
}

static void chat_cancelled(struct call *c, void *arg)
{
	if (c->state)
		chat_turn_cancel(c->state);
}

/* Clients on a port without a token may hear common memories, but nobody's own. */
static struct memory_asker quoted_to(const struct call *c)
{
	struct memory_asker by = ocg_asker(c);

	if (!by.user.data && c->endpoint->tcp && !c->endpoint->token[0])
		by.user = TEXT("ocg");
	return by;
}

static int read_ask(struct call *c, struct chat_ask *ask)
{
	struct ocg_talk *talk;
	struct ocg_peer *p;
	int r;

	if (!chat_agent(call_chat(c), (struct text) {0}))
		return refuse(&c->error, REFUSE_UNAVAILABLE, "agent not initialized");
	p = ocg_peer_of(c);
	if (!p)
		return -ENOMEM;
	r = ocg_chat_read(&c->arena, c->in, ocg_peer_chains(p), ask)
		    ?: chat_wire_ask_id(&c->arena, NULL, ask);
	if (r != 0)
		return r;
	ask->by = quoted_to(c);
	talk = ocg_peer_talk(p, call_chat(c), ask->conversation);
	if (!talk)
		return -ENOMEM;
	ask->conversation = text_of(talk->name);
	return 0;
}

struct done ocg_chat(struct call *c)
{
	struct ocg_chat_asked *asked = arena_zalloc(&c->arena, sizeof(*asked));
	const struct chat_sink sink = {.on_done = chat_done, .arg = asked};
	struct chat_turn *turn = NULL;
	int r;

	if (!asked)
		return call_fail(c, -ENOMEM);
	asked->call = c;
	r = read_ask(c, &asked->ask);
	if (r != 0)
		return call_fail(c, r);
	(void)call_later(c, chat_cancelled, NULL);
	r = chat_send(call_chat(c), &asked->ask, &sink, &turn, &c->error);
	if (r != 0) {
		ocg_peer_answered(ocg_peer_of(c), &asked->ask,
				  &(const struct chat_answer) {.result = r});
		return call_fail(c, r);
	}
	c->state = turn;
	return call_settled(c);
}
