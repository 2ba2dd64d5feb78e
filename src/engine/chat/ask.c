/* A question on its way: a turn with a copy of all that was asked. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "engine/chat/inner.h"

struct chat_turn *turn_new(struct chat *chat, struct text conversation)
{
	struct chat_turn *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	list_init(&t->link);
	arena_init(&t->arena, CHAT_ARENA_MAX);
	arena_init(&t->job.context, CHAT_ARENA_MAX);
	buf_init(&t->text, CHAT_TEXT_MAX);
	t->usage = AGENT_NO_USAGE;
	list_init(&t->telling);
	t->name.data = arena_copy(&t->arena, conversation.data, conversation.len);
	t->name.len = conversation.len;
	if (!t->name.data) {
		free(t);
		return NULL;
	}
	t->chat = chat;
	chat->n_turns++;
	return t;
}

void turn_free(struct chat *chat, struct chat_turn *t)
{
	chat->n_turns--;
	chat->bytes -= t->bytes;
	timer_free(t->timer);
	list_remove(&t->telling);
	arena_done(&t->arena);
	arena_done(&t->job.context);
	buf_done(&t->text);
	free(t->job.piece);
	free(t);
}

int64_t tool_tokens(const struct agent_tool *tool)
{
	return message_tokens(tool->name) + chat_estimate(tool->description) +
	       chat_estimate(tool->schema);
}

static int copy_tools(struct chat_turn *t, const struct chat_ask *ask)
{
	struct agent_tool *tools = arena_zalloc(&t->arena, ask->n_tools * sizeof(tools[0]));

	if (!tools)
		return -ENOMEM;
	for (unsigned i = 0; i < ask->n_tools; i++) {
		const struct agent_tool *from = &ask->tools[i];

		if (arena_copy_text(&t->arena, from->name, &tools[i].name) != 0 ||
		    arena_copy_text(&t->arena, from->description, &tools[i].description) != 0 ||
		    arena_copy_text(&t->arena, from->schema, &tools[i].schema) != 0)
			return -ENOMEM;
		t->tool_tokens += tool_tokens(from);
	}
	t->tools = tools;
	t->n_tools = ask->n_tools;
	return 0;
}

static int copy_results(struct chat_turn *t, const struct chat_ask *ask)
{
	struct chat_result *results = arena_zalloc(&t->arena, ask->n_results * sizeof(results[0]));

	if (!results)
		return -ENOMEM;
	for (unsigned i = 0; i < ask->n_results; i++) {
		results[i].failed = ask->results[i].failed;
		if (arena_copy_text(&t->arena, ask->results[i].call_id, &results[i].call_id) != 0 ||
		    arena_copy_text(&t->arena, ask->results[i].text, &results[i].text) != 0)
			return -ENOMEM;
	}
	t->results = results;
	t->n_results = ask->n_results;
	return 0;
}

static int copy_message_calls(struct arena *a, struct agent_message *m)
{
	struct agent_call *calls;

	if (m->n_calls == 0)
		return 0;
	calls = arena_zalloc(a, m->n_calls * sizeof(calls[0]));
	if (!calls)
		return -ENOMEM;
	for (unsigned i = 0; i < m->n_calls; i++) {
		if (arena_copy_text(a, m->calls[i].id, &calls[i].id) != 0 ||
		    arena_copy_text(a, m->calls[i].name, &calls[i].name) != 0 ||
		    arena_copy_text(a, m->calls[i].arguments, &calls[i].arguments) != 0)
			return -ENOMEM;
	}
	m->calls = calls;
	return 0;
}

static int copy_history(struct chat_turn *t, const struct chat_ask *ask)
{
	struct agent_message *history =
		arena_zalloc(&t->arena, (ask->n_history + 1) * sizeof(history[0]));

	if (!history)
		return -ENOMEM;
	for (unsigned i = 0; i < ask->n_history; i++) {
		history[i] = ask->history[i];
		if (arena_copy_text(&t->arena, history[i].text, &history[i].text) != 0 ||
		    arena_copy_text(&t->arena, history[i].call_id, &history[i].call_id) != 0 ||
		    copy_message_calls(&t->arena, &history[i]) != 0)
			return -ENOMEM;
	}
	t->own_history = true;
	t->history = history;
	t->n_history = ask->n_history;
	return arena_copy_text(&t->arena, ask->system, &t->system);
}

int chat_new_request(char out[CHAT_REQUEST_LEN + 1])
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return -EIO;
	snprintf(out, CHAT_REQUEST_LEN + 1, "%016" PRIx64, n);
	return 0;
}

static int make_request_id(struct chat_turn *t)
{
	char text[CHAT_REQUEST_LEN + 1];
	int r = chat_new_request(text);

	return r != 0 ? r : arena_copy_text(&t->arena, text_of(text), &t->request_id);
}

static int copy_ask(struct chat_turn *t, const struct chat_ask *ask)
{
	int r = arena_copy_text(&t->arena, ask->request_id, &t->request_id);

	if (r == 0 && !ask->request_id.data)
		r = make_request_id(t);
	if (r == 0)
		r = arena_copy_text(&t->arena,
				    ask->request_name.data ? ask->request_name : t->request_id,
				    &t->request_name);
	if (r == 0)
		r = arena_copy_text(&t->arena, ask->content, &t->content);
	if (r == 0)
		r = arena_copy_text(&t->arena, ask->by.user, &t->by.user);
	if (r == 0)
		r = arena_copy_text(&t->arena, ask->by.chat, &t->by.chat);
	if (r == 0 && ask->n_tools > 0)
		r = copy_tools(t, ask);
	if (r == 0)
		r = arena_copy_text(&t->arena, ask->shape.tool_choice, &t->shape.tool_choice);
	if (r == 0)
		r = arena_copy_text(&t->arena, ask->shape.response_format,
				    &t->shape.response_format);
	if (r == 0 && ask->n_results > 0)
		r = copy_results(t, ask);
	if (r == 0 && ask->own_history)
		r = copy_history(t, ask);
	return r;
}

void turn_weigh(struct chat_turn *t, size_t bytes)
{
	t->bytes += bytes;
	t->chat->bytes += bytes;
}

int turn_new_ask(struct chat *chat, struct text conversation, const struct chat_ask *ask,
		 const struct chat_sink *sink, struct chat_turn **ret_turn)
{
	struct chat_turn *t = turn_new(chat, conversation);
	int r;

	if (!t)
		return -ENOMEM;
	r = copy_ask(t, ask);
	if (r != 0) {
		turn_free(chat, t);
		return r;
	}
	/* The call that asks holds it as well. */
	turn_weigh(t, 2 * t->arena.used);
	t->sink = *sink;
	t->must_exist = ask->must_exist;
	t->agent = ask->agent.data ? chat_find_agent(chat, ask->agent) : NULL;
	*ret_turn = t;
	return 0;
}

void turn_queue(struct chat_turn *t, struct conversation *c)
{
	t->conversation = c;
	list_append(&c->waiting, &t->link);
	c->n_waiting++;
}
