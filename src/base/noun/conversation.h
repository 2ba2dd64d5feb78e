/* A conversation with an agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/portrait.h"
#include "base/text.h"

enum preset { PRESET_UNSAID, PRESET_TRUSTED, PRESET_SANDBOXED };

/* Where a conversation's programs run and what they leave alone. Paths are absolute and without
 * links, what a parent has is in it. */
struct bounds {
	enum preset preset;
	struct text parent;         /* the id of the one it is a child of; {NULL, 0}: none */
	struct text cwd;            /* {NULL, 0}: the agent's own */
	struct text write_paths;    /* one a line; {NULL, 0}: anywhere */
	struct text disabled_tools; /* with commas between; {NULL, 0}: none */
};

struct conversation {
	int64_t seq; /* tells it from others that had its id; 0: nothing was said in it yet */
	struct text id;
	struct text agent;  /* the name of the one that answers it; {NULL, 0}: the default */
	struct text system; /* {NULL, 0}: the default */
	int64_t created_ms;
	int64_t updated_ms;
	/* What stands for the turns up to summary_turn, which are not sent any more. */
	struct text summary; /* {NULL, 0}: none */
	int64_t summary_tokens;
	int64_t summary_turn; /* 0: none */
	struct bounds bounds; /* what it was made with */
	bool wants_end;       /* its clients said so */
	/* Found, not kept. */
	int64_t n_messages;
	int64_t n_children; /* that were not ended */
	int64_t ended_ms;   /* 0: it was not */
	bool running;       /* a turn is under way */
};

enum {
	CONVERSATION_LONG = MEMBER_OWN, /* it may be: lists only say whether there is one */
};

extern const struct portrait conversation_portrait;
