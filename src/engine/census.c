#include "engine/census.h"

#include "engine/event/event.h"
#include "engine/services.h"
#include "store/chat.h"
#include "store/memory.h"
#include "store/store.h"

bool census_at_hand(const struct services *s, struct census *ret)
{
	if (!s->census.taken || s->census.as_of != event_last(s))
		return false;
	*ret = s->census;
	return true;
}

int census_take(struct services *s, int lane, struct census *ret)
{
	struct connection *c = store_lane(s->store, lane);
	struct store_chat_totals chat;
	/* Before the counts: what comes meanwhile makes them old. */
	int64_t as_of = event_last(s);
	const struct store_scope everything = {.everything = true};
	struct store_memory_stats memories;
	int r = store_chat_totals(c, &chat);

	if (r == 0)
		r = store_memory_count(c, &everything, 0, &memories);
	if (r != 0)
		return r;
	*ret = (struct census) {
		.taken = s->events != NULL, /* without a log nobody knows when it is old */
		.as_of = as_of,
		.conversations = chat.n_conversations,
		.messages = chat.n_messages,
		.tool_calls = chat.n_calls,
		.memories = memories.n_all,
	};
	return 0;
}

void census_keep(struct services *s, const struct census *c)
{
	s->census = *c;
}
