#include "model/conversation.h"

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

const struct portrait conversation_portrait = PORTRAIT(struct conversation, members);
