/*
 * Which part of a conversation is sent to its agent: the summary, and the newest turns that
 * fit into the budget. Only numbers are held here; the texts are in the store.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/chat/inner.h"

int64_t chat_estimate(struct text t)
{
	int64_t characters = 0;

	/* Counts the bytes that start a character: all except continuation bytes. */
	for (size_t i = 0; i < t.len; i++)
		characters += ((unsigned char)t.data[i] & 0xc0) != 0x80;
	return characters < 4 ? 1 : characters / 4;
}

int64_t message_tokens(struct text t)
{
	return chat_estimate(t) + CHAT_MESSAGE_TOKENS;
}

int64_t tool_tokens(const struct agent_tool *tool)
{
	return message_tokens(tool->name) + chat_estimate(tool->description) +
	       chat_estimate(tool->schema);
}

int64_t system_tokens(const struct live_conversation *c)
{
	return c->system ? c->own_system_tokens : c->chat->system_tokens;
}

int64_t available_tokens(const struct agent *a)
{
	return a ? a->budget - a->reserve : INT64_MAX;
}

static int64_t fixed_tokens(const struct live_conversation *c, int64_t tool_tokens)
{
	return system_tokens(c) + c->summary_tokens + tool_tokens;
}

static void drop_oldest(struct live_conversation *c)
{
	c->turn_tokens -= c->turns[c->first].tokens;
	c->first++;
	c->n_turns--;
}

/* The newest turn is always sent: there is nothing else to answer. If it brought results, the
 * turns with their calls are sent, too, back to the question. */
static unsigned n_always_sent(const struct live_conversation *c)
{
	int64_t tokens = 0;

	for (unsigned n = 0; n < c->n_turns; n++) {
		const struct turn_weight *w = &c->turns[c->first + c->n_turns - 1 - n];

		tokens += w->tokens;
		if (n > 0 && tokens > TURN_CHAIN_TOKENS)
			return n;
		if (!w->continues)
			return n + 1;
	}
	return c->n_turns;
}

static void trim(struct live_conversation *c)
{
	int64_t room = available_tokens(conversation_agent(c)) - fixed_tokens(c, c->tool_tokens);
	unsigned least = n_always_sent(c);

	while (c->n_turns > least && c->turn_tokens > room)
		drop_oldest(c);
}

static int chat_window_make_room(struct live_conversation *c)
{
	struct turn_weight *turns;
	unsigned cap;

	if (c->first + c->n_turns < c->cap)
		return 0;
	if (c->first > 0) {
		memmove(c->turns, c->turns + c->first, c->n_turns * sizeof(c->turns[0]));
		c->first = 0;
		return 0;
	}
	cap = c->cap ? c->cap * 2 : 8;
	turns = reallocarray(c->turns, cap, sizeof(turns[0]));
	if (!turns)
		return -ENOMEM;
	c->turns = turns;
	c->cap = cap;
	return 0;
}

int window_add(struct live_conversation *c, const struct turn_weight *w)
{
	int r = chat_window_make_room(c);

	if (r != 0)
		return r;
	c->turns[c->first + c->n_turns++] = *w;
	c->turn_tokens += w->tokens;
	c->n_messages += w->n_messages;
	trim(c);
	return 0;
}

void window_grow(struct live_conversation *c, int64_t tokens, int64_t n_messages)
{
	struct turn_weight *newest;

	if (c->n_turns == 0)
		return;
	newest = &c->turns[c->first + c->n_turns - 1];
	newest->tokens += tokens;
	newest->n_messages += n_messages;
	c->turn_tokens += tokens;
	c->n_messages += n_messages;
	trim(c);
}

void window_set(struct live_conversation *c, const struct turn_weight *weights, unsigned n)
{
	c->first = 0;
	c->n_turns = 0;
	c->turn_tokens = 0;
	for (unsigned i = 0; i < n; i++) {
		/* What does not fit into memory is treated as if it did not fit into the budget. */
		if (chat_window_make_room(c) != 0)
			return;
		c->turns[c->n_turns++] = weights[i];
		c->turn_tokens += weights[i].tokens;
	}
	trim(c);
}

void window_drop_to(struct live_conversation *c, int64_t turn)
{
	while (c->n_turns > 0 && c->turns[c->first].turn <= turn)
		drop_oldest(c);
}

int64_t window_from(const struct live_conversation *c, const struct agent *a, int64_t tool_tokens,
		    int64_t *ret_tokens)
{
	int64_t room = available_tokens(a) - fixed_tokens(c, tool_tokens);
	unsigned least = n_always_sent(c);
	int64_t tokens = 0;
	int64_t from = 0;

	for (unsigned i = c->n_turns; i > 0; i--) {
		const struct turn_weight *w = &c->turns[c->first + i - 1];

		if (c->n_turns - i >= least && tokens + w->tokens > room)
			break;
		tokens += w->tokens;
		from = w->turn;
	}
	*ret_tokens = tokens;
	return from;
}

/* Where the part that must be sent starts: at the question whose calls the results belong to. */
static unsigned always_sent_from(const struct chat_ask *ask)
{
	unsigned i = ask->n_history;

	if (ask->n_results == 0)
		return i;
	while (i > 0 && ask->history[--i].role != MESSAGE_USER)
		;
	return i;
}

void window_cut_history(struct chat_ask *ask, int64_t room, int64_t *ret_tokens)
{
	const struct message *history = ask->history;
	unsigned always = always_sent_from(ask);
	unsigned from = ask->n_history;
	int64_t tokens = 0;

	while (from > always ||
	       (from > 0 && tokens + message_tokens(history[from - 1].text) <= room))
		tokens += message_tokens(history[--from].text);
	/* The rest starts with a question, if there is one: some providers require that. */
	while (from > 0 && from < always && history[from].role != MESSAGE_USER)
		tokens -= message_tokens(history[from++].text);
	ask->history += from;
	ask->n_history -= from;
	*ret_tokens = tokens;
}

void window_count(const struct live_conversation *c, struct chat_counts *ret)
{
	const struct agent *a = conversation_agent(c);

	*ret = (struct chat_counts) {
		.n_messages = c->n_messages,
		.has_system = system_tokens(c) > 0,
		.system = system_tokens(c),
		.tools = c->tool_tokens,
		.messages = c->turn_tokens + c->summary_tokens,
		.budget = a ? a->budget : 0,
		.available = a ? a->budget - a->reserve : 0,
		.running = c->running != NULL,
	};
	ret->total = ret->system + ret->tools + ret->messages;
}
