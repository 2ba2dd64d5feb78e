/* A message: what somebody said in a conversation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/turn.h"
#include "base/text.h"

enum message_role { MESSAGE_USER, MESSAGE_ASSISTANT, MESSAGE_TOOL };

/* A call of a tool that an agent wants made. */
struct tool_call {
	struct text id;
	struct text name;
	struct text arguments; /* JSON; an object, if the model kept to the rules */
};

struct message {
	int64_t seq;
	int64_t turn;
	enum message_role role;
	struct text text;
	struct text call_id; /* MESSAGE_TOOL: the call that this is the result of */
	bool failed;         /* MESSAGE_TOOL: the tool failed */
	int64_t tokens;
	int64_t created_ms;
	const struct tool_call *calls; /* MESSAGE_ASSISTANT, in order */
	unsigned n_calls;
	enum turn_state turn_state; /* computed, not stored */
};

enum {
	MESSAGE_BEHIND = MEMBER_OWN, /* shown after its calls */
};

extern const struct portrait message_portrait;

/* Copy what they point to into the arena. -ENOMEM, also when the arena is full. */
int tool_call_copy(struct arena *a, struct tool_call *call);
int message_copy(struct arena *a, struct message *m);
