/*
 * What agents tell of themselves by their hooks, whoever has started them. It is only logged:
 *
 *	agent.started, agent.asked, agent.tool, agent.stopped, agent.ended
 *		{agent, session_id, folder?, tool?, tool_use_id?, text?}
 */
#pragma once

#include "base/text.h"
#include "base/error.h"

struct events;
struct value;

enum { AGENT_NOTE_NAME_MAX = 256, AGENT_NOTE_FOLDER_MAX = 4096, AGENT_NOTE_TEXT_MAX = 4096 };

/* {NULL, 0}: not given. */
struct hook_note {
	struct text what; /* started, asked, tool, stopped or ended */
	struct text agent;
	struct text session; /* the agent's own id of it */
	struct text folder;
	struct text tool;
	struct text tool_use_id;
	struct text text;          /* its beginning is kept */
	const struct value *input; /* what the tool was given: not kept; NULL: none */
};

/* Runs on the writer's thread, within a call. REFUSE_PARAMS names the member that is wrong. */
int agent_note_add(struct events *events, const struct hook_note *in, struct error *error);
