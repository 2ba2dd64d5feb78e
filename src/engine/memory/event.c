#include "engine/event/event.h"
#include "engine/memory/inner.h"

#define MEMBER(kind, field) MEMBER_OF(struct memory, kind, field)

static const struct member members[] = {
	{"id", NULL, MEMBER(TEXT, id)},
	{"user", NULL, MEMBER(TEXT, owner), .absent = ABSENT_LEFT_OUT},
	{"chat", NULL, MEMBER(TEXT, chat), .absent = ABSENT_LEFT_OUT},
	{"project", NULL, MEMBER(TEXT, project), .absent = ABSENT_LEFT_OUT},
	{"category", NULL, MEMBER(TEXT, category)},
	{"tool_use_id", NULL, MEMBER(TEXT, tool_use_id), .absent = ABSENT_LEFT_OUT},
};

static const struct portrait in_events = PORTRAIT(struct memory, members);

int memory_publish(struct memories *m, const char *type, const struct memory *memory)
{
	struct event_new event = {.type = type};
	struct event_data data;

	if (!m->events)
		return 0;
	event_data_begin(&data);
	packer_members(&data.members, &in_events, (struct selection) {0}, memory, 0);
	return event_add_data(m->events, &event, &data);
}
