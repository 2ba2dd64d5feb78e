#include "engine/memory/event.h"

#include "base/record.h"
#include "engine/event/event.h"
#include "engine/services.h"
#include "store/memory.h"

int memory_publish(struct services *s, struct arena *a, const char *type,
		   const struct memory_row *row)
{
	struct event_new event = {.type = type};
	struct record data;

	if (!s->events)
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
	return event_add(s->events, &event);
}
