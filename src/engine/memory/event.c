#include "base/record.h"
#include "engine/event/event.h"
#include "engine/memory/inner.h"

#define MEMBER(kind, field) MEMBER_OF(struct memory, kind, field)

static const struct member members[] = {
	{"id", NULL, MEMBER(TEXT, id)},
	{"user", NULL, MEMBER(TEXT, owner), .absent = ABSENT_LEFT_OUT},
	{"chat", NULL, MEMBER(TEXT, chat), .absent = ABSENT_LEFT_OUT},
	{"category", NULL, MEMBER(TEXT, category)},
};

static const struct portrait in_events = PORTRAIT(struct memory, members);

int memory_publish(struct memories *m, struct arena *a, const char *type,
		   const struct memory *memory)
{
	struct event_new event = {.type = type};
	struct record data;

	if (!m->events)
		return 0;
	record_begin(&data, a);
	record_members(&data, &in_events, (struct selection) {0}, memory, 0);
	if (data.err != 0)
		return data.err;
	event.data = data.root;
	return event_add(m->events, &event);
}
