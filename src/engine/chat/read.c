/* Conversations as they are in the store: made, listed, read. On the workers' threads. */
#include <string.h>
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/uuid.h"
#include "engine/chat/inner.h"
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
	static const struct chat_bounds none = {0};
	const struct chat_bounds *b = in->bounds ? in->bounds : &none;
	int64_t now = clock_utc_ms();
	struct conversation_row row = {
		.id = in->id,
		.agent = in->agent,
		.system = in->system,
		.parent = b->parent,
		.cwd = b->cwd,
		.preset = b->preset,
		.write_paths = b->write_paths,
		.disabled_tools = b->disabled_tools,
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

static struct chat_info info_of(const struct chat *chat, const struct conversation_row *row)
{
	const struct agent *agent = chat_roster(chat)->agent;

	return (struct chat_info) {
		.number = row->seq,
		.id = row->id,
		.agent = row->agent.data ? row->agent : text_of(agent ? agent->name : NULL),
		.has_system = row->system.data || chat->system[0] != '\0',
		.n_messages = row->n_messages,
		.created_ms = row->created_ms,
		.updated_ms = row->updated_ms,
		.ended_ms = row->ended_ms,
		.running = row->running,
		.wants_end = row->wants_end,
		.bounds = {.preset = (enum chat_preset)row->preset,
			   .parent = row->parent,
			   .cwd = row->cwd,
			   .write_paths = row->write_paths,
			   .disabled_tools = row->disabled_tools},
		.n_children = row->n_children,
	};
}

int chat_copy_infos(const struct chat *chat, struct arena *a, const struct conversation_row *rows,
		    unsigned n, struct chat_info **ret_infos)
{
	struct chat_info *infos = arena_alloc(a, (n + 1) * sizeof(infos[0]));

	if (!infos)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		infos[i] = info_of(chat, &rows[i]);
	*ret_infos = infos;
	return 0;
}

/* The one of those who name none, before anything was said in it. */
static struct chat_info unused_default(const struct chat *chat)
{
	const struct conversation_row row = {
		.id = TEXT(CHAT_DEFAULT),
		.created_ms = chat->started_ms,
		.updated_ms = chat->started_ms,
	};

	return info_of(chat, &row);
}

int chat_list(struct chat *chat, int lane, struct arena *a, int64_t offset, int64_t limit,
	      struct chat_info **ret_rows, unsigned *ret_n, int64_t *ret_total)
{
	struct connection *db = store_lane(chat->store, lane);
	int64_t from = page_offset(offset), total = 0;
	struct conversation_row *rows = NULL, row;
	struct chat_info *infos;
	bool used = false;
	unsigned n = 0;
	int r;

	r = store_conversation_find(db, TEXT(CHAT_DEFAULT), a, &row, &used);
	if (r == 0)
		r = store_conversation_list(db, chat_page_start(from), chat_page_limit(limit), a,
					    &rows, &n, &total);
	if (r == 0)
		r = chat_copy_infos(chat, a, rows, n, &infos);
	if (r != 0)
		return r;
	if (!used && from + n == total && n < chat_page_limit(limit))
		infos[n++] = unused_default(chat);
	*ret_rows = infos;
	*ret_n = n;
	*ret_total = total + !used;
	return 0;
}

int chat_want_end(struct chat *chat, struct text conversation, struct why *why)
{
	struct connection *db = store_writer(chat->store);
	int64_t now = clock_utc_ms();
	const struct conversation_row row = {
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

const char *turn_state_name(enum turn_state state)
{
	static const char *const names[] = {
		[TURN_RUNNING] = "running",         [TURN_DONE] = "done",
		[TURN_CANCELLED] = "cancelled",     [TURN_FAILED] = "failed",
		[TURN_INTERRUPTED] = "interrupted",
	};

	return names[state];
}

static enum chat_role chat_role(enum message_role role)
{
	switch (role) {
	case MESSAGE_USER:
		return CHAT_USER;
	case MESSAGE_ASSISTANT:
		return CHAT_ASSISTANT;
	case MESSAGE_TOOL:
		return CHAT_TOOL;
	}
	return CHAT_USER;
}

static int copy_messages(struct arena *a, const struct message_row *rows, unsigned n,
			 struct chat_message **ret_rows)
{
	struct chat_message *messages = arena_alloc(a, (n + 1) * sizeof(messages[0]));
	int r = messages ? 0 : -ENOMEM;

	for (unsigned i = 0; r == 0 && i < n; i++) {
		messages[i] = (struct chat_message) {
			.role = chat_role(rows[i].role),
			.text = rows[i].text,
			.call_id = rows[i].call_id,
			.failed = rows[i].failed,
			.n_calls = rows[i].n_calls,
			.tokens = rows[i].tokens,
			.created_ms = rows[i].created_ms,
			.state = turn_state_name(rows[i].turn_state),
		};
		r = chat_copy_calls(a, &rows[i], &messages[i].calls);
	}
	if (r == 0)
		*ret_rows = messages;
	return r;
}

int chat_page(struct connection *db, struct arena *a, int64_t seq, int64_t offset, int64_t limit,
	      struct chat_message **ret_rows, unsigned *ret_n, int64_t *ret_total)
{
	struct message_row *rows = NULL;
	unsigned n = 0;
	int r = store_message_list(db, seq, page_offset(offset), chat_page_limit(limit), PAGE_BYTES,
				   a, &rows, &n, ret_total);

	if (r == 0)
		r = copy_messages(a, rows, n, ret_rows);
	if (r == 0)
		*ret_n = n;
	return r;
}

int chat_messages(struct chat *chat, int lane, struct arena *a, struct text conversation,
		  bool must_exist, int64_t offset, int64_t limit, struct chat_message **ret_rows,
		  unsigned *ret_n, int64_t *ret_total, struct why *why)
{
	struct connection *db = store_lane(chat->store, lane);
	struct text id = conversation.data ? conversation : TEXT(CHAT_DEFAULT);
	struct conversation_row row;
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
