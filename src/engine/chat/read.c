/* Conversations in the store: creating, listing and reading them. Runs on the workers'
 * threads. */
#include <string.h>
#include <errno.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "engine/chat/inner.h"
#include "engine/event/event.h"
#include "store/chat.h"
#include "store/memory.h"
#include "store/store.h"

enum {
	PAGE_BYTES = 8 << 20,
	DEFAULT_PAGE = 200,
};

static int make_id(struct arena *a, struct text *ret_id)
{
	char uuid[UUID_LEN + 1];
	int r = uuid4(uuid);

	if (r != 0)
		return r;
	ret_id->data = arena_copy(a, uuid, 8);
	ret_id->len = 8;
	return ret_id->data ? 0 : -ENOMEM;
}

static int check_new(struct chat *chat, const struct chat_new *in, struct error *error)
{
	int r = in->id.data ? chat_check_id(in->id, "agent_id", error) : 0;

	if (r != 0)
		return r;
	if (in->system.len > CHAT_TEXT_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "system_prompt is larger than %d bytes",
			      CHAT_TEXT_MAX);
	if (text_find(in->system, '\0'))
		return refuse_field(error, "system_prompt", "system_prompt has a NUL byte");
	return in->agent.data ? chat_check_agent(chat, in->agent, "model", error) : 0;
}

int chat_create(struct chat *chat, struct arena *a, const struct chat_new *in, struct text *ret_id,
		struct error *error)
{
	int64_t now = clock_utc_ms();
	struct conversation row = {
		.id = in->id,
		.agent = in->agent,
		.system = in->system,
		.bounds = in->bounds ? *in->bounds : (struct bounds) {0},
		.created_ms = now,
		.updated_ms = now,
	};
	int r = check_new(chat, in, error);

	if (r == 0 && !in->id.data)
		r = make_id(a, &row.id);
	if (r != 0)
		return r;
	r = store_conversation_add(store_writer(chat->opts.store), &row, &row.seq);
	if (r == -EEXIST)
		return refuse_field(error, "agent_id", "Agent already exists: %.*s",
				    TEXT_ARGS(row.id));
	if (r == 0)
		r = chat_publish(chat, "chat.created", row.id);
	if (r != 0)
		return r;
	chat->noted = true;
	*ret_id = row.id;
	return 0;
}

void chat_committed(struct chat *chat)
{
	if (!chat || !chat->noted)
		return;
	chat->noted = false;
	atomic_fetch_add(&chat->made, 1);
}

int chat_want_end(struct chat *chat, struct text conversation, struct error *error)
{
	struct connection *db = store_writer(chat->opts.store);
	int64_t now = clock_utc_ms();
	const struct conversation row = {
		.id = conversation, .created_ms = now, .updated_ms = now, .wants_end = true};
	int64_t seq;
	bool found;
	int r = chat_check_id(conversation, "agent_id", error)
			?: store_conversation_want_end(db, conversation, &found);

	if (r != 0 || found)
		return r;
	if (!text_is(conversation, CHAT_DEFAULT))
		return refuse(error, REFUSE_NOT_FOUND, "conversation not found: '%.*s'",
			      TEXT_ARGS(conversation));
	r = store_conversation_add(db, &row, &seq)
		    ?: chat_publish(chat, "chat.created", conversation);
	if (r == 0)
		chat->noted = true;
	return r;
}

/* ---- listing ---- */

static unsigned page_limit(int64_t limit)
{
	if (limit <= 0)
		return DEFAULT_PAGE;
	return limit < CHAT_PAGE_MAX ? (unsigned)limit : CHAT_PAGE_MAX;
}

static int64_t page_offset(int64_t offset)
{
	return offset > 0 ? offset : 0;
}

static unsigned page_start(int64_t offset)
{
	int64_t from = page_offset(offset);

	return from < UINT32_MAX ? (unsigned)from : UINT32_MAX;
}

static void name_agents(const struct chat *chat, struct conversation_page *page)
{
	const struct agent *agent = chat_roster(chat)->agent;

	for (unsigned i = 0; agent && i < page->n; i++) {
		if (!page->rows[i].agent.data)
			page->rows[i].agent = text_of(agent->name);
	}
}

/* Adds the default conversation after the others while nothing has been said in it yet. */
static int add_default(const struct chat *chat, struct arena *a, struct conversation_page *page)
{
	struct conversation *all = arena_alloc(a, (page->n + 1) * sizeof(all[0]));

	if (!all)
		return -ENOMEM;
	if (page->n > 0)
		memcpy(all, page->rows, page->n * sizeof(all[0]));
	all[page->n++] = (struct conversation) {
		.id = TEXT(CHAT_DEFAULT),
		.created_ms = chat->started_ms,
		.updated_ms = chat->started_ms,
	};
	page->rows = all;
	return 0;
}

int chat_list(struct chat *chat, int lane, struct arena *a, struct conversation_page *page)
{
	struct connection *db = store_lane(chat->opts.store, lane);
	unsigned limit = page_limit(page->limit);
	struct conversation row;
	bool used = false;
	int r = store_conversation_find(db, TEXT(CHAT_DEFAULT), a, &row, &used)
			?: store_conversation_list(db, page_start(page->offset), limit, a,
						   &page->rows, &page->n, &page->total);

	if (r == 0 && !used && page->n < limit &&
	    page_offset(page->offset) + page->n == page->total)
		r = add_default(chat, a, page);
	if (r != 0)
		return r;
	page->total += !used;
	name_agents(chat, page);
	return 0;
}

int chat_list_ended(struct chat *chat, int lane, struct arena *a, struct text id,
		    struct conversation_page *page)
{
	int r = store_conversation_list_ended(store_lane(chat->opts.store, lane), id,
					      page_start(page->offset), page_limit(page->limit), a,
					      &page->rows, &page->n, &page->total);

	if (r == 0)
		name_agents(chat, page);
	return r;
}

/* ---- reading ---- */

static int read_page(struct connection *db, struct arena *a, int64_t seq, struct message_page *page)
{
	return store_message_list(db, seq, page_offset(page->offset), page_limit(page->limit),
				  PAGE_BYTES, a, &page->rows, &page->n, &page->total);
}

int chat_messages(struct chat *chat, int lane, struct arena *a, struct text conversation,
		  bool must_exist, struct message_page *page, struct error *error)
{
	struct connection *db = store_lane(chat->opts.store, lane);
	struct text id = conversation.data ? conversation : TEXT(CHAT_DEFAULT);
	struct conversation row;
	bool found;
	int r = chat_check_id(id, "agent_id", error)
			?: store_conversation_find(db, id, a, &row, &found);

	if (r != 0)
		return r;
	if (found)
		return read_page(db, a, row.seq, page);
	if (must_exist)
		return refuse(error, REFUSE_NOT_FOUND, "conversation not found: '%.*s'",
			      TEXT_ARGS(id));
	*page = (struct message_page) {.offset = page->offset, .limit = page->limit};
	return 0;
}

int conversation_find_ended(struct connection *db, struct arena *a, int64_t number,
			    struct conversation *ret_row, struct error *error)
{
	bool found = false;
	int r = store_conversation_find_ended(db, number, a, ret_row, &found);

	if (r == 0 && !found)
		return refuse(error, REFUSE_NOT_FOUND, "ended conversation not found: %lld",
			      (long long)number);
	return r;
}

int chat_messages_ended(struct chat *chat, int lane, struct arena *a, int64_t number,
			struct text *ret_id, struct message_page *page, struct error *error)
{
	struct connection *db = store_lane(chat->opts.store, lane);
	struct conversation row;
	int r = conversation_find_ended(db, a, number, &row, error);

	if (r != 0)
		return r;
	*ret_id = row.id;
	return read_page(db, a, row.seq, page);
}

/* ---- the total counts ---- */

bool census_at_hand(const struct chat *chat, struct census *ret)
{
	if (!chat->census.taken || chat->census.as_of != event_last(chat->opts.events))
		return false;
	*ret = chat->census;
	return true;
}

int census_take(struct chat *chat, int lane, struct census *ret)
{
	struct connection *db = store_lane(chat->opts.store, lane);
	const struct store_scope everything = {.everything = true};
	/* Read it before the counts: anything that arrives in between makes them stale. */
	int64_t as_of = event_last(chat->opts.events);
	struct memory_totals memories;
	struct store_chat_totals said;
	int r = store_chat_totals(db, &said) ?: store_memory_count(db, &everything, 0, &memories);

	if (r != 0)
		return r;
	*ret = (struct census) {
		.taken = chat->opts.events !=
			 NULL, /* without a log nobody can tell when it is stale */
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
