#include "model/chat.h"

#include <errno.h>

static const char *const preset_names[] = {
	[PRESET_UNSAID] = NULL, [PRESET_TRUSTED] = "trusted", [PRESET_SANDBOXED] = "sandboxed"};

#define MEMBER(kind, field) MEMBER_OF(struct conversation, kind, field)

/* clang-format off */
static const struct member members[] = {
	{"number", "seq", MEMBER(INT, seq), MEMBER_MADE},
	{"conversation", "id", MEMBER(TEXT, id)},
	{"agent", "agent", MEMBER(TEXT, agent)},
	{NULL, "system", MEMBER(TEXT, system), CONVERSATION_LONG},
	{"messages", "n_messages", MEMBER(INT, n_messages), MEMBER_MADE},
	{"created_at", "created_ms", MEMBER(TIME, created_ms), MEMBER_OFFSET},
	{"updated_at", "updated_ms", MEMBER(TIME, updated_ms), MEMBER_OFFSET},
	{"ended_at", "ended_ms", MEMBER(TIME, ended_ms), MEMBER_MADE | MEMBER_NULLABLE | MEMBER_OFFSET,
		NONE_IS_ZERO},
	{NULL, "summary", MEMBER(TEXT, summary), CONVERSATION_LONG},
	{NULL, "summary_tokens", MEMBER(INT, summary_tokens)},
	{NULL, "summary_turn", MEMBER(INT, summary_turn)},
	{NULL, "parent", MEMBER(TEXT, bounds.parent)},
	{NULL, "cwd", MEMBER(TEXT, bounds.cwd)},
	{NULL, "preset", MEMBER(ENUM, bounds.preset), 0, MEMBER_NAMES(preset_names)},
	{NULL, "write_paths", MEMBER(TEXT, bounds.write_paths)},
	{NULL, "disabled_tools", MEMBER(TEXT, bounds.disabled_tools)},
	{NULL, "wants_end", MEMBER(BOOL, wants_end)},
};
/* clang-format on */

const struct schema conversation_schema = SCHEMA(struct conversation, members);

const char *const turn_state_names[N_TURN_STATES] = {
	[TURN_RUNNING] = "running",         [TURN_DONE] = "done",
	[TURN_CANCELLED] = "cancelled",     [TURN_FAILED] = "failed",
	[TURN_INTERRUPTED] = "interrupted",
};

#define TURN(kind, field) MEMBER_OF(struct turn, kind, field)

enum { CHANGES = MEMBER_CHANGES, NULLABLE = MEMBER_NULLABLE };

/* clang-format off */
static const struct member turn_members[] = {
	{NULL, "seq", TURN(INT, seq), MEMBER_MADE},
	{NULL, "conversation", TURN(INT, conversation)},
	{NULL, "request_id", TURN(TEXT, request_id), MEMBER_NOT_NULL},
	{NULL, "agent", TURN(TEXT, agent), MEMBER_NOT_NULL},
	{NULL, "state", TURN(ENUM, state), CHANGES, MEMBER_NAMES(turn_state_names)},
	{NULL, "started_ms", TURN(TIME, started_ms)},
	{NULL, "ended_ms", TURN(TIME, ended_ms), CHANGES | NULLABLE, NONE_IS_ZERO},
	{NULL, "input_tokens", TURN(INT, input_tokens), CHANGES | NULLABLE, NONE_IS_NEGATIVE},
	{NULL, "output_tokens", TURN(INT, output_tokens), CHANGES | NULLABLE, NONE_IS_NEGATIVE},
	{NULL, "cache_read_tokens", TURN(INT, cache_read_tokens), CHANGES | NULLABLE,
		NONE_IS_NEGATIVE},
	{NULL, "cache_written_tokens", TURN(INT, cache_written_tokens), CHANGES | NULLABLE,
		NONE_IS_NEGATIVE},
	{NULL, "error", TURN(TEXT, error), CHANGES},
	{NULL, "asker_user", TURN(TEXT, asker_user)},
	{NULL, "asker_chat", TURN(TEXT, asker_chat)},
	{NULL, "asker_chat_type", TURN(TEXT, asker_chat_type)},
};
/* clang-format on */

const struct schema turn_schema = SCHEMA(struct turn, turn_members);

static const char *const role_names[] = {
	[MESSAGE_USER] = "user",
	[MESSAGE_ASSISTANT] = "assistant",
	[MESSAGE_TOOL] = "tool",
};

#define MESSAGE(kind, field) MEMBER_OF(struct message, kind, field)

/* clang-format off */
static const struct member message_members[] = {
	{NULL, "seq", MESSAGE(INT, seq), MEMBER_MADE},
	{NULL, "turn", MESSAGE(INT, turn)},
	{"role", "role", MESSAGE(ENUM, role), 0, MEMBER_NAMES(role_names)},
	{"content", "text", MESSAGE(TEXT, text), MEMBER_NOT_NULL, .absent = ABSENT_EMPTY},
	{"tool_call_id", "call_id", MESSAGE(TEXT, call_id)},
	{"tokens", "tokens", MESSAGE(INT, tokens), MESSAGE_BEHIND},
	{"created_at", "created_ms", MESSAGE(TIME, created_ms), MESSAGE_BEHIND | MEMBER_OFFSET},
	{"state", NULL, MESSAGE(ENUM, turn_state), MESSAGE_BEHIND, MEMBER_NAMES(turn_state_names)},
	{NULL, "failed", MESSAGE(BOOL, failed)},
};
/* clang-format on */

const struct schema message_schema = SCHEMA(struct message, message_members);

int tool_call_copy(struct arena *a, struct tool_call *call)
{
	if (arena_copy_text(a, call->id, &call->id) != 0 ||
	    arena_copy_text(a, call->name, &call->name) != 0)
		return -ENOMEM;
	return arena_copy_text(a, call->arguments, &call->arguments);
}

static int copy_calls(struct arena *a, struct message *m)
{
	struct tool_call *calls = arena_alloc(a, m->n_calls * sizeof(calls[0]));

	if (!calls)
		return -ENOMEM;
	for (unsigned i = 0; i < m->n_calls; i++) {
		calls[i] = m->calls[i];
		if (tool_call_copy(a, &calls[i]) != 0)
			return -ENOMEM;
	}
	m->calls = calls;
	return 0;
}

int message_copy(struct arena *a, struct message *m)
{
	if (arena_copy_text(a, m->text, &m->text) != 0 ||
	    arena_copy_text(a, m->call_id, &m->call_id) != 0)
		return -ENOMEM;
	return m->n_calls > 0 ? copy_calls(a, m) : 0;
}
