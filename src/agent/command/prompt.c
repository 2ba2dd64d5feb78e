/* A conversation as one text; see command.h. */
#include "agent/command/inner.h"

#include <string.h>

static const char REPLACEMENT[] = "\xef\xbf\xbd";

static const char *speaker(enum message_role role)
{
	switch (role) {
	case MESSAGE_USER:
		return "User: ";
	case MESSAGE_ASSISTANT:
		return "Assistant: ";
	case MESSAGE_TOOL:
		return "Tool: ";
	}
	return "";
}

/* An answer that was only calls, or was cut before its first word. */
static bool is_silent(const struct message *m)
{
	return m->role == MESSAGE_ASSISTANT && m->text.len == 0;
}

static size_t written_len(struct text t)
{
	size_t n = t.len;

	for (size_t i = 0; i < t.len; i++)
		n += t.data[i] == '\0' ? strlen(REPLACEMENT) - 1 : 0;
	return n;
}

/* The oldest message from which everything fits: a user's, or the last. */
static unsigned first_that_fits(const struct agent_ask *ask, size_t room)
{
	size_t used = written_len(ask->system) + strlen("\n\n");
	unsigned first = ask->n_messages - 1;

	for (unsigned i = ask->n_messages; i-- > 0;) {
		const struct message *m = &ask->messages[i];

		used += strlen("\n\n") + strlen(speaker(m->role)) + written_len(m->text);
		if (used > room)
			break;
		if (i == 0 || m->role == MESSAGE_USER)
			first = i;
	}
	return first;
}

static void add_text(struct buf *out, struct text t, bool as_argument)
{
	const char *nul;

	while (as_argument && t.len > 0 && (nul = memchr(t.data, '\0', t.len))) {
		buf_add(out, t.data, (size_t)(nul - t.data));
		buf_add_str(out, REPLACEMENT);
		t.len -= (size_t)(nul + 1 - t.data);
		t.data = nul + 1;
	}
	buf_add(out, t.data, t.len);
}

void command_prompt(const struct agent_ask *ask, size_t room, struct buf *out)
{
	const unsigned first = room > 0 ? first_that_fits(ask, room) : 0;

	if (ask->system.len > 0) {
		add_text(out, ask->system, room > 0);
		buf_add_str(out, "\n\n");
	}
	for (unsigned i = first; i < ask->n_messages; i++) {
		const struct message *m = &ask->messages[i];

		if (is_silent(m))
			continue;
		if (i > first)
			buf_add_str(out, "\n\n");
		if (ask->n_messages > 1)
			buf_add_str(out, speaker(m->role));
		add_text(out, m->text, room > 0);
	}
}
