#include "cli/mcp/calls.h"

#include <errno.h>

static const struct json_limits limits = {.depth = JSON_DEPTH_MAX, .values = JSON_VALUES_DEFAULT};

bool message_scan(struct text line, struct pipe_message *m)
{
	*m = (struct pipe_message) {{{"id"}, {"method"}, {"params"}, {"error"}}};
	return json_scan(line.data, line.len, &limits, m->members, N_MESSAGE_MEMBERS, &m->root) ==
	       0;
}

void calls_init(struct calls *c)
{
	c->n = 0;
	buf_init(&c->ids, CALLS_MAX * (CALL_ID_MAX + 1));
}

void calls_done(struct calls *c)
{
	buf_done(&c->ids);
}

/* JSON has no line feed in an id. */
int calls_add(struct calls *c, struct text id)
{
	if (id.len > CALL_ID_MAX)
		return -EMSGSIZE;
	if (c->n == CALLS_MAX)
		return -ENOSPC;
	buf_add(&c->ids, id.data, id.len);
	buf_add_char(&c->ids, '\n');
	c->n++;
	return c->ids.err;
}

void calls_remove(struct calls *c, struct text id)
{
	struct text rest = buf_bytes(&c->ids), one;

	while (text_next(&rest, '\n', &one)) {
		if (!text_equal(one, id))
			continue;
		memmove((char *)one.data, rest.data, rest.len);
		c->ids.len -= one.len + 1;
		c->n--;
		return;
	}
}

void calls_forget(struct calls *c, struct text params)
{
	struct json_member id = {"requestId"};
	struct value root;

	if (params.data && json_scan(params.data, params.len, &limits, &id, 1, &root) == 0 &&
	    id.raw.data)
		calls_remove(c, id.raw);
}

void calls_clear(struct calls *c)
{
	c->n = 0;
	buf_clear(&c->ids);
}
