/* Asking: checks whether a question is allowed, makes a turn with a copy of it, and ends a turn
 * from outside. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#include "engine/chat/inner.h"

/* ---- checking ---- */

int chat_check_room(struct chat *chat, struct text id, struct error *error)
{
	const struct live_conversation *c = conversation_find(chat, id);

	if (chat->records.stopping)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (chat->n_errands >= CHAT_TURNS_MAX)
		return refuse(error, REFUSE_LIMIT, "too many turns are running (limit %d)",
			      CHAT_TURNS_MAX);
	if (chat->bytes >= CHAT_BYTES_MAX)
		return refuse(error, REFUSE_LIMIT,
			      "running turns use too much memory (limit %d bytes)", CHAT_BYTES_MAX);
	if (c && c->destroy)
		return refuse(error, REFUSE_CONFLICT, "conversation '%s' is being deleted", c->id);
	if (c && c->n_waiting >= CHAT_WAITING_MAX)
		return refuse(error, REFUSE_LIMIT,
			      "too many turns are waiting in this conversation (limit %d)",
			      CHAT_WAITING_MAX);
	return 0;
}

/* A provider accepts one result per call. */
static int check_results(const struct chat_ask *ask, struct error *error)
{
	if (ask->n_results > AGENT_CALLS_MAX)
		return refuse_field(error, "tool_results", "too many tool results (limit %d)",
				    AGENT_CALLS_MAX);
	for (unsigned i = 1; i < ask->n_results; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (text_equal(ask->results[i].call_id, ask->results[k].call_id))
				return refuse_field(
					error, "tool_results",
					"duplicate result for tool call '%.*s'",
					TEXT_ARGS(text_cut(ask->results[i].call_id, 100)));
		}
	}
	return 0;
}

/* No agent of ours made these calls, and each is looked up among the results: their number is
 * limited here. */
static int check_history(const struct chat_ask *ask, struct error *error)
{
	for (unsigned i = 0; i < ask->n_history; i++) {
		if (ask->history[i].n_calls > AGENT_CALLS_MAX)
			return refuse_field(error, "history",
					    "too many tool calls in one message (limit %d)",
					    AGENT_CALLS_MAX);
	}
	return 0;
}

static int check_content(const struct chat_ask *ask, struct error *error)
{
	int r;

	if (ask->request_id.len > CHAT_ID_MAX)
		return refuse_field(error, "request_id", "request_id is longer than %d bytes",
				    CHAT_ID_MAX);
	if (!ask->content.data && ask->n_results == 0)
		return refuse_field(error, "content", "content is required");
	if (ask->content.len > CHAT_TEXT_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "content is larger than %d bytes",
			      CHAT_TEXT_MAX);
	/* Facts may be drawn from it, and are kept for whom it names. */
	r = check_results(ask, error) ?: check_history(ask, error) ?: memory_check_names(&ask->by, error);
	if (r == 0 && ask->n_tools > AGENT_TOOLS_MAX)
		return refuse_field(error, "tools", "too many tools (limit %d)", AGENT_TOOLS_MAX);
	return r;
}

/* NULL for a compaction: nobody has an id for it. */
static struct chat_turn *as_turn(struct errand *e)
{
	return e->ops == &turn_ops ? turn_of(e) : NULL;
}

static struct chat_turn *find_turn(const struct live_conversation *c, struct text request_id)
{
	struct chat_turn *t = c->running ? as_turn(c->running) : NULL;

	if (t && text_equal(t->ask.request_id, request_id))
		return t;
	list_for_each (at, following, &c->waiting) {
		t = as_turn(list_entry(at, struct errand, link));
		if (t && text_equal(t->ask.request_id, request_id))
			return t;
	}
	return NULL;
}

static int check_ask(struct chat *chat, const struct chat_ask *ask, struct text id,
		     struct error *error)
{
	const struct live_conversation *c;
	int r = chat_check_id(id, "conversation", error) ?: check_content(ask, error);

	if (r == 0 && ask->agent.data)
		r = chat_check_agent(chat, ask->agent, "agent", error);
	if (r == 0)
		r = chat_check_room(chat, id, error);
	if (r != 0)
		return r;
	c = conversation_find(chat, id);
	if (c && ask->request_id.data && find_turn(c, ask->request_id))
		return refuse_field(error, "request_id", "request_id is already in progress: %.*s",
				    TEXT_ARGS(ask->request_id));
	return 0;
}

/* ---- copying ---- */

static int copy_tools(struct arena *a, struct chat_ask *ask)
{
	struct agent_tool *tools = arena_zalloc(a, ask->n_tools * sizeof(tools[0]));

	if (!tools)
		return -ENOMEM;
	for (unsigned i = 0; i < ask->n_tools; i++) {
		if (arena_copy_text(a, ask->tools[i].name, &tools[i].name) != 0 ||
		    arena_copy_text(a, ask->tools[i].description, &tools[i].description) != 0 ||
		    arena_copy_text(a, ask->tools[i].schema, &tools[i].schema) != 0)
			return -ENOMEM;
	}
	ask->tools = tools;
	return 0;
}

static int copy_results(struct arena *a, struct chat_ask *ask)
{
	struct chat_result *results = arena_zalloc(a, ask->n_results * sizeof(results[0]));

	if (!results)
		return -ENOMEM;
	for (unsigned i = 0; i < ask->n_results; i++) {
		results[i].failed = ask->results[i].failed;
		if (arena_copy_text(a, ask->results[i].call_id, &results[i].call_id) != 0 ||
		    arena_copy_text(a, ask->results[i].text, &results[i].text) != 0)
			return -ENOMEM;
	}
	ask->results = results;
	return 0;
}

static int copy_history(struct arena *a, struct chat_ask *ask)
{
	struct message *history = arena_zalloc(a, ask->n_history * sizeof(history[0]));

	if (!history)
		return -ENOMEM;
	for (unsigned i = 0; i < ask->n_history; i++) {
		history[i] = ask->history[i];
		if (message_copy(a, &history[i]) != 0)
			return -ENOMEM;
	}
	ask->history = history;
	return 0;
}

int chat_new_request(char out[CHAT_REQUEST_LEN + 1])
{
	uint64_t n;

	if (getrandom(&n, sizeof(n), 0) != sizeof(n))
		return -EIO;
	snprintf(out, CHAT_REQUEST_LEN + 1, "%016" PRIx64, n);
	return 0;
}

static int copy_texts(struct arena *a, struct chat_ask *ask)
{
	struct text *const texts[] = {
		&ask->conversation,
		&ask->request_id,
		&ask->request_name,
		&ask->agent,
		&ask->content,
		&ask->shape.tool_choice,
		&ask->shape.response_format,
		&ask->by.user,
		&ask->by.chat,
		&ask->by.chat_type,
		&ask->system,
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (arena_copy_text(a, *texts[i], texts[i]) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* Afterwards it points to nothing that belongs to the asker. */
static int copy_ask(struct arena *a, struct chat_ask *ask)
{
	char made[CHAT_REQUEST_LEN + 1];
	int r = 0;

	if (!ask->request_id.data) {
		r = chat_new_request(made);
		ask->request_id = text_of(made);
	}
	if (!ask->request_name.data)
		ask->request_name = ask->request_id;
	if (r == 0)
		r = copy_texts(a, ask) ?:
			copy_tools(a, ask) ?:
			copy_results(a, ask) ?:
			copy_history(a, ask);
	return r;
}

static int new_turn(struct chat *chat, const struct chat_ask *ask, struct text id,
		    const struct chat_sink *sink, struct chat_turn **ret_turn)
{
	struct chat_turn *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	errand_init(&t->errand, chat, &turn_ops);
	list_init(&t->telling);
	t->sink = *sink;
	t->ask = *ask;
	t->ask.conversation = id;
	r = copy_ask(&t->errand.arena, &t->ask);
	if (r != 0) {
		turn_free(t);
		return r;
	}
	/* The call that asks holds it, too. */
	errand_weigh(&t->errand, 2 * t->errand.arena.used);
	t->errand.agent = ask->agent.data ? chat_find_agent(chat, ask->agent) : NULL;
	*ret_turn = t;
	return 0;
}

/* ---- the interface ---- */

int chat_send(struct chat *chat, const struct chat_ask *ask, const struct chat_sink *sink,
	      struct chat_turn **ret_turn, struct error *error)
{
	struct text id = ask->conversation.data ? ask->conversation : TEXT(CHAT_DEFAULT);
	struct live_conversation *c;
	struct chat_turn *t;
	int r = check_ask(chat, ask, id, error) ?: new_turn(chat, ask, id, sink, &t);

	if (r != 0)
		return r;
	c = conversation_get(chat, id);
	if (!c) {
		turn_free(t);
		return -ENOMEM;
	}
	errand_queue(&t->errand, c);
	*ret_turn = t;
	return 0;
}

struct text chat_turn_request(const struct chat_turn *t)
{
	return t->ask.request_id;
}

void chat_turn_forget(struct chat_turn *t)
{
	t->sink = (struct chat_sink) {0};
}

void chat_turn_cancel(struct chat_turn *t)
{
	errand_cancel(&t->errand);
}

static bool cancel_in(struct live_conversation *c, struct text request_id)
{
	struct chat_turn *t = find_turn(c, request_id);

	/* The whole answer is there; it is only on its way to the store. */
	if (!t || t->ending)
		return false;
	errand_cancel(&t->errand);
	return true;
}

bool chat_cancel(struct chat *chat, struct text conversation, struct text request_id)
{
	if (conversation.data) {
		struct live_conversation *c = conversation_find(chat, conversation);

		return c && cancel_in(c, request_id);
	}
	list_for_each (at, following, &chat->conversations) {
		if (cancel_in(list_entry(at, struct live_conversation, link), request_id))
			return true;
	}
	return false;
}
