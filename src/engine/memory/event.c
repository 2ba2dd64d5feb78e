#include "base/record.h"
#include "engine/event/event.h"
#include "engine/memory/inner.h"

int memory_publish(struct memories *m, struct arena *a, const char *type,
		   const struct memory_row *row)
{
	struct event_new event = {.type = type};
	struct record data;

	if (!m->events)
		return 0;
	record_begin(&data, a);
	record_text(&data, "id", row->id);
	if (row->owner.data)
		record_text(&data, "user", row->owner);
	if (row->chat.data)
		record_text(&data, "chat", row->chat);
	record_text(&data, "category", row->category);
	if (data.err != 0)
		return data.err;
	event.data = data.root;
	return event_add(m->events, &event);
}
