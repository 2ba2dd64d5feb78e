#include "engine/chat/census.h"

#include "engine/chat/inner.h"
#include "engine/event/event.h"
#include "store/memory.h"
#include "store/chat.h"
#include "store/store.h"

bool census_at_hand(const struct chat *chat, struct census *ret)
{
	if (!chat->census.taken || chat->census.as_of != event_last(chat->events))
		return false;
	*ret = chat->census;
	return true;
}

int census_take(struct chat *chat, int lane, struct census *ret)
{
	struct connection *db = store_lane(chat->store, lane);
	const struct store_scope everything = {.everything = true};
	/* Read it before the counts: anything that arrives in between makes them stale. */
	int64_t as_of = event_last(chat->events);
	struct memory_totals memories;
	struct store_chat_totals said;
	int r = store_chat_totals(db, &said) ?: store_memory_count(db, &everything, 0, &memories);

	if (r != 0)
		return r;
	*ret = (struct census) {
		.taken = chat->events != NULL, /* without a log nobody can tell when it is stale */
		.as_of = as_of,
		.conversations = said.n_conversations,
		.messages = said.n_messages,
		.tool_calls = said.n_calls,
		.memories = memories.all,
	};
	return 0;
}

void census_keep(struct chat *chat, const struct census *c)
{
	chat->census = *c;
}
