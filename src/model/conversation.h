/* A conversation with an agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/portrait.h"
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

extern const struct portrait conversation_portrait;
