/* A turn: one question in a conversation, with everything that follows from it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/portrait.h"
#include "base/text.h"

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

extern const struct portrait turn_portrait;

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
