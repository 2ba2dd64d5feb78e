/* A conversation as one text; see command.h. */
#include "agent/command_prompt.h"

static const char *speaker(enum agent_role role)
{
	switch (role) {
	case AGENT_USER:
		return "User: ";
	case AGENT_ASSISTANT:
		return "Assistant: ";
	case AGENT_TOOL:
		return "Tool: ";
	}
	return "";
}

void command_prompt(const struct agent_ask *ask, struct buf *out)
{
	if (ask->system.len > 0) {
		buf_add(out, ask->system.data, ask->system.len);
		buf_add_str(out, "\n\n");
	}
	for (unsigned i = 0; i < ask->n_messages; i++) {
		const struct agent_message *m = &ask->messages[i];

		/* An answer that was only calls, or was cut before its first word. */
		if (m->role == AGENT_ASSISTANT && m->text.len == 0)
			continue;
		if (i > 0)
			buf_add_str(out, "\n\n");
		if (ask->n_messages > 1)
			buf_add_str(out, speaker(m->role));
		buf_add(out, m->text.data, m->text.len);
	}
}
