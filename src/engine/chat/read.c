/* Conversations as they are in the store: made, listed, read. On the workers' threads. */
#include <string.h>
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

enum { PAGE_BYTES = 8 << 20, DEFAULT_PAGE = 200 };

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

static int check_new(struct chat *chat, const struct chat_new *in, struct why *why)
{
	int r = in->id.data ? chat_check_id(in->id, "agent_id", why) : 0;

	if (r != 0)
		return r;
	if (in->system.len > CHAT_TEXT_MAX)
		return refuse(why, REFUSE_TOO_LARGE, "system_prompt is larger than %d bytes",
			      CHAT_TEXT_MAX);
	if (in->system.len > 0 && memchr(in->system.data, '\0', in->system.len))
		return refuse_field(why, "system_prompt", "system_prompt has a NUL character");
	return in->agent.data ? chat_check_agent(chat, in->agent, "model", why) : 0;
}

int chat_create(struct chat *chat, struct arena *a, const struct chat_new *in, struct text *ret_id,
		struct why *why)
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
	int r = check_new(chat, in, why);

	if (r == 0 && !in->id.data)
		r = make_id(a, &row.id);
	if (r != 0)
		return r;
	r = store_conversation_add(store_writer(chat->store), &row, &row.seq);
	if (r == -EEXIST)
		return refuse_field(why, "agent_id", "Agent already exists: %.*s",
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

unsigned chat_page_limit(int64_t limit)
{
	if (limit <= 0)
		return DEFAULT_PAGE;
	return limit < CHAT_PAGE_MAX ? (unsigned)limit : CHAT_PAGE_MAX;
}

static int64_t page_offset(int64_t offset)
{
	return offset > 0 ? offset : 0;
}

unsigned chat_page_start(int64_t offset)
{
	int64_t from = page_offset(offset);

	return from < UINT32_MAX ? (unsigned)from : UINT32_MAX;
}

void chat_name_agents(const struct chat *chat, struct conversation *rows, unsigned n)
{
	const struct agent *agent = chat_roster(chat)->agent;

	for (unsigned i = 0; agent && i < n; i++) {
		if (!rows[i].agent.data)
			rows[i].agent = text_of(agent->name);
	}
}

/* The one of those who name none, before anything was said in it, behind the others. */
static int add_default(const struct chat *chat, struct arena *a, struct conversation **rows,
		       unsigned *n)
{
	struct conversation *all = arena_alloc(a, (*n + 1) * sizeof(all[0]));

	if (!all)
		return -ENOMEM;
	if (*n > 0)
		memcpy(all, *rows, *n * sizeof(all[0]));
	all[(*n)++] = (struct conversation) {
		.id = TEXT(CHAT_DEFAULT),
		.created_ms = chat->started_ms,
		.updated_ms = chat->started_ms,
	};
	*rows = all;
	return 0;
}

int chat_list(struct chat *chat, int lane, struct arena *a, int64_t offset, int64_t limit,
	      struct conversation **ret_rows, unsigned *ret_n, int64_t *ret_total)
{
	struct connection *db = store_lane(chat->store, lane);
	int64_t from = page_offset(offset), total = 0;
	struct conversation *rows = NULL, row;
	bool used = false;
	unsigned n = 0;
	int r;

	r = store_conversation_find(db, TEXT(CHAT_DEFAULT), a, &row, &used);
	if (r == 0)
		r = store_conversation_list(db, chat_page_start(from), chat_page_limit(limit), a,
					    &rows, &n, &total);
	if (r == 0 && !used && from + n == total && n < chat_page_limit(limit))
		r = add_default(chat, a, &rows, &n);
	if (r != 0)
		return r;
	chat_name_agents(chat, rows, n);
	*ret_rows = rows;
	*ret_n = n;
	*ret_total = total + !used;
	return 0;
}

int chat_want_end(struct chat *chat, struct text conversation, struct why *why)
{
	struct connection *db = store_writer(chat->store);
	int64_t now = clock_utc_ms();
	const struct conversation row = {
		.id = conversation, .created_ms = now, .updated_ms = now, .wants_end = true};
	int64_t seq;
	bool found;
	int r = chat_check_id(conversation, "agent_id", why);

	if (r == 0)
		r = store_conversation_want_end(db, conversation, &found);
	if (r != 0 || found)
		return r;
	if (!text_is(conversation, CHAT_DEFAULT))
		return refuse(why, REFUSE_NOT_FOUND, "there is no conversation '%.*s'",
			      TEXT_ARGS(conversation));
	r = store_conversation_add(db, &row, &seq);
	if (r == 0)
		r = chat_publish(chat, "chat.created", conversation);
	if (r == 0)
		chat->noted = true;
	return r;
}

int chat_page(struct connection *db, struct arena *a, int64_t seq, int64_t offset, int64_t limit,
	      struct message **ret_rows, unsigned *ret_n, int64_t *ret_total)
{
	return store_message_list(db, seq, page_offset(offset), chat_page_limit(limit), PAGE_BYTES,
				  a, ret_rows, ret_n, ret_total);
}

int chat_messages(struct chat *chat, int lane, struct arena *a, struct text conversation,
		  bool must_exist, int64_t offset, int64_t limit, struct message **ret_rows,
		  unsigned *ret_n, int64_t *ret_total, struct why *why)
{
	struct connection *db = store_lane(chat->store, lane);
	struct text id = conversation.data ? conversation : TEXT(CHAT_DEFAULT);
	struct conversation row;
	bool found;
	int r = chat_check_id(id, "agent_id", why);

	if (r == 0)
		r = store_conversation_find(db, id, a, &row, &found);
	if (r != 0)
		return r;
	*ret_total = 0;
	if (!found && must_exist)
		return refuse(why, REFUSE_NOT_FOUND, "there is no conversation '%.*s'",
			      TEXT_ARGS(id));
	if (found)
		return chat_page(db, a, row.seq, offset, limit, ret_rows, ret_n, ret_total);
	*ret_rows = NULL;
	*ret_n = 0;
	return 0;
}
