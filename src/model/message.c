#include "model/message.h"

#include <errno.h>

static const char *const role_names[] = {
	[MESSAGE_USER] = "user",
	[MESSAGE_ASSISTANT] = "assistant",
	[MESSAGE_TOOL] = "tool",
};

#define MEMBER(kind, field) MEMBER_OF(struct message, kind, field)

/* clang-format off */
static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq), MEMBER_MADE},
	{NULL, "turn", MEMBER(INT, turn)},
	{"role", "role", MEMBER(ENUM, role), 0, MEMBER_NAMES(role_names)},
	{"content", "text", MEMBER(TEXT, text), MEMBER_NOT_NULL, .absent = ABSENT_EMPTY},
	{"tool_call_id", "call_id", MEMBER(TEXT, call_id)},
	{"tokens", "tokens", MEMBER(INT, tokens), MESSAGE_BEHIND},
	{"created_at", "created_ms", MEMBER(TIME, created_ms), MESSAGE_BEHIND | MEMBER_OFFSET},
	{"state", NULL, MEMBER(ENUM, turn_state), MESSAGE_BEHIND, MEMBER_NAMES(turn_state_names)},
	{NULL, "failed", MEMBER(BOOL, failed)},
};
/* clang-format on */

const struct portrait message_portrait = PORTRAIT(struct message, members);

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
