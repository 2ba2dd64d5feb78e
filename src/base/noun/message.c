#include "base/noun/message.h"

#include <errno.h>

int tool_call_copy(struct arena *a, struct tool_call *call)
{
	if (arena_copy_text(a, call->id, &call->id) != 0 ||
	    arena_copy_text(a, call->name, &call->name) != 0)
		return -ENOMEM;
	return arena_copy_text(a, call->arguments, &call->arguments);
}

static int copy_calls(struct arena *a, struct message *m)
{
	struct tool_call *calls = arena_alloc(a, m->n_calls * sizeof(calls[0]));

	if (!calls)
		return -ENOMEM;
	for (unsigned i = 0; i < m->n_calls; i++) {
		calls[i] = m->calls[i];
		if (tool_call_copy(a, &calls[i]) != 0)
			return -ENOMEM;
	}
	m->calls = calls;
	return 0;
}

int message_copy(struct arena *a, struct message *m)
{
	if (arena_copy_text(a, m->text, &m->text) != 0 ||
	    arena_copy_text(a, m->call_id, &m->call_id) != 0)
		return -ENOMEM;
	return m->n_calls > 0 ? copy_calls(a, m) : 0;
}
