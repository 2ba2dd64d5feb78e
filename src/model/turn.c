#include "model/turn.h"

const char *const turn_state_names[N_TURN_STATES] = {
	[TURN_RUNNING] = "running",         [TURN_DONE] = "done",
	[TURN_CANCELLED] = "cancelled",     [TURN_FAILED] = "failed",
	[TURN_INTERRUPTED] = "interrupted",
};

#define MEMBER(kind, field) MEMBER_OF(struct turn, kind, field)

enum { CHANGES = MEMBER_CHANGES, NULLABLE = MEMBER_NULLABLE };

/* clang-format off */
static const struct member members[] = {
	{NULL, "seq", MEMBER(INT, seq), MEMBER_MADE},
	{NULL, "conversation", MEMBER(INT, conversation)},
	{NULL, "request_id", MEMBER(TEXT, request_id), MEMBER_NOT_NULL},
	{NULL, "agent", MEMBER(TEXT, agent), MEMBER_NOT_NULL},
	{NULL, "state", MEMBER(ENUM, state), CHANGES, MEMBER_NAMES(turn_state_names)},
	{NULL, "started_ms", MEMBER(TIME, started_ms)},
	{NULL, "ended_ms", MEMBER(TIME, ended_ms), CHANGES | NULLABLE, NONE_IS_ZERO},
	{NULL, "input_tokens", MEMBER(INT, input_tokens), CHANGES | NULLABLE, NONE_IS_NEGATIVE},
	{NULL, "output_tokens", MEMBER(INT, output_tokens), CHANGES | NULLABLE, NONE_IS_NEGATIVE},
	{NULL, "cache_read_tokens", MEMBER(INT, cache_read_tokens), CHANGES | NULLABLE,
		NONE_IS_NEGATIVE},
	{NULL, "cache_written_tokens", MEMBER(INT, cache_written_tokens), CHANGES | NULLABLE,
		NONE_IS_NEGATIVE},
	{NULL, "error", MEMBER(TEXT, error), CHANGES},
	{NULL, "asker_user", MEMBER(TEXT, asker_user)},
	{NULL, "asker_chat", MEMBER(TEXT, asker_chat)},
	{NULL, "asker_chat_type", MEMBER(TEXT, asker_chat_type)},
};
/* clang-format on */

const struct portrait turn_portrait = PORTRAIT(struct turn, members);
