/* What the log says of conversations: that they and their turns start and end, never what was
 * said. Runs on the writer's thread. */
#include "engine/chat/inner.h"
#include "engine/event/event.h"

static int chat_event_add(struct chat *chat, const char *type, struct text conversation,
			  struct event_data *d)
{
	struct event_new event = {.type = type, .session = conversation};

	return event_add_data(chat->opts.events, &event, d);
}

int chat_publish(struct chat *chat, const char *type, struct text conversation)
{
	struct event_data d;

	event_data_begin(&d);
	packer_text(&d.members, "conversation", conversation);
	return chat_event_add(chat, type, conversation, &d);
}

#define COUNT(name)                                                                                \
	{                                                                                          \
#name, NULL, MEMBER_OF(struct agent_usage, INT, name), 0, NONE_IS_NEGATIVE,        \
			ABSENT_LEFT_OUT                                                            \
	}

static const struct member counts[] = {COUNT(input), COUNT(output), COUNT(cache_read),
				       COUNT(cache_written)};

static const struct schema usage = SCHEMA(struct agent_usage, counts);

static void say_end(struct packer *p, const struct agent_usage *n, const char *state)
{
	struct packer tokens;

	packer_text(p, "state", text_of(state));
	packer_key(p, "tokens");
	packer_begin(&tokens, p->out);
	packer_members(&tokens, &usage, (struct selection) {0}, n, 0);
	packer_end(&tokens);
}

int chat_publish_turn(const struct chat_turn *t, const char *ended)
{
	struct event_data d;
	struct packer *p = &d.members;

	event_data_begin(&d);
	packer_text(p, "conversation", t->ask.conversation);
	packer_text(p, "request_id", t->ask.request_name);
	packer_text(p, "agent", text_of(t->errand.agent->name));
	if (ended)
		say_end(p, &t->errand.end.usage, ended);
	return chat_event_add(t->errand.chat, ended ? "chat.turn.ended" : "chat.turn.started",
			      t->ask.conversation, &d);
}
