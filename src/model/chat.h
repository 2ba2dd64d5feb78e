/* A conversation with an agent, its turns and their messages. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/schema.h"
#include "base/text.h"

enum preset { PRESET_UNSAID, PRESET_TRUSTED, PRESET_SANDBOXED };

/* Where a conversation's programs run, and what they may not touch. Paths are absolute and free
 * of links. They already include the parent's restrictions. */
struct bounds {
	enum preset preset;
	struct text parent;         /* its parent's id; {NULL, 0}: none */
	struct text cwd;            /* {NULL, 0}: the agent's own */
	struct text write_paths;    /* one per line; {NULL, 0}: anywhere */
	struct text disabled_tools; /* comma-separated; {NULL, 0}: none */
};

struct conversation {
	int64_t seq; /* tells it from others that had its id; 0: nothing was said yet */
	struct text id;
	struct text agent;  /* the agent that answers it; {NULL, 0}: the default */
	struct text system; /* {NULL, 0}: the default */
	int64_t created_ms;
	int64_t updated_ms;
	/* Replaces the turns up to summary_turn, which are no longer sent. */
	struct text summary; /* {NULL, 0}: none */
	int64_t summary_tokens;
	int64_t summary_turn; /* 0: none */
	struct bounds bounds; /* what it was made with */
	bool wants_end;       /* its clients asked for this */
	/* Computed, not stored. */
	int64_t n_messages;
	int64_t n_children; /* that have not been ended */
	int64_t ended_ms;   /* 0: not ended */
	bool running;       /* a turn is running */
};

enum {
	CONVERSATION_LONG = MEMBER_OWN, /* may be long: lists only say whether there is one */
};

extern const struct schema conversation_schema;

/* A turn: one question in a conversation, with everything that follows from it. */

enum turn_state {
	TURN_RUNNING,
	TURN_DONE,
	TURN_CANCELLED,
	TURN_FAILED,
	TURN_INTERRUPTED,
	N_TURN_STATES,
};

extern const char *const turn_state_names[N_TURN_STATES];

struct turn {
	int64_t seq; /* assigned by the store: grows, and is never reused */
	int64_t conversation;
	struct text request_id; /* opaque */
	struct text agent;      /* the one that answered */
	enum turn_state state;
	int64_t started_ms;
	int64_t ended_ms;     /* 0: not yet */
	int64_t input_tokens; /* as the provider counted; -1: it did not */
	int64_t output_tokens;
	int64_t cache_read_tokens;
	int64_t cache_written_tokens;
	struct text error;      /* {NULL, 0}: none */
	struct text asker_user; /* who asked; {NULL, 0}: nobody in particular, as the following */
	struct text asker_chat;
	struct text asker_chat_type;
};

extern const struct schema turn_schema;

/* The size of a turn. */
struct turn_weight {
	int64_t turn;
	int64_t tokens; /* of its messages */
	int64_t n_messages;
	bool continues; /* it contains results of calls that the previous turn ended with */
};

/* What may exceed its limit because it belongs together: a question, and the turns that continue
 * it. */
enum { TURN_CHAIN_TOKENS = 1 << 20 };

/* A message: what somebody said in a conversation. */

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

extern const struct schema message_schema;

/* Copy what they point to into the arena. -ENOMEM, also when the arena is full. */
int tool_call_copy(struct arena *a, struct tool_call *call);
int message_copy(struct arena *a, struct message *m);
