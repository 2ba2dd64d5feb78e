/* What the log says of conversations: that they begin and end, and so their turns; never what
 * was said. On the writer's thread. */
#include "base/record.h"
#include "engine/chat/inner.h"
#include "engine/event/event.h"

enum { DATA_MAX = 64 << 10 };

static int add(struct chat *chat, const char *type, struct text conversation,
	       const struct record *data)
{
	const struct event_new event = {.type = type, .session = conversation, .data = data->root};

	return data->err != 0 ? data->err : event_add(chat->events, &event);
}

int chat_publish(struct chat *chat, const char *type, struct text conversation)
{
	struct record data;
	struct arena a;
	int r;

	arena_init(&a, DATA_MAX);
	record_begin(&data, &a);
	record_text(&data, "conversation", conversation);
	r = add(chat, type, conversation, &data);
	arena_done(&a);
	return r;
}

static void record_count(struct record *r, const char *key, int64_t n)
{
	if (n >= 0)
		record_int(r, key, n);
}

static void record_end(struct record *data, const struct agent_usage *n, const char *state)
{
	struct record tokens;

	record_begin(&tokens, data->arena);
	record_count(&tokens, "input", n->input);
	record_count(&tokens, "output", n->output);
	record_count(&tokens, "cache_read", n->cache_read);
	record_count(&tokens, "cache_written", n->cache_written);
	record_text(data, "state", text_of(state));
	if (tokens.err == 0)
		record_value(data, "tokens", tokens.root);
}

int chat_publish_turn(const struct chat_turn *t, const char *ended)
{
	struct record data;
	struct arena a;
	int r;

	arena_init(&a, DATA_MAX);
	record_begin(&data, &a);
	record_text(&data, "conversation", t->ask.conversation);
	record_text(&data, "request_id", t->ask.request_name);
	record_text(&data, "agent", text_of(t->errand.agent->name));
	if (ended)
		record_end(&data, &t->errand.end.usage, ended);
	r = add(t->errand.chat, ended ? "chat.turn.ended" : "chat.turn.started",
		t->ask.conversation, &data);
	arena_done(&a);
	return r;
}
