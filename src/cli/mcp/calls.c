#include "cli/mcp/pipe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make_room(struct calls *c)
{
	unsigned cap = c->cap ? c->cap * 2 : 16;
	struct text *ids;

	if (c->n < c->cap)
		return 0;
	ids = realloc(c->ids, cap * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	c->ids = ids;
	c->cap = cap;
	return 0;
}

int calls_add(struct calls *c, struct text id)
{
	char *copy;

	if (c->n == CALLS_MAX || id.len > CALL_ID_MAX)
		return -ENOSPC;
	copy = make_room(c) == 0 ? strndup(id.data, id.len) : NULL;
	if (!copy)
		return -ENOMEM;
	c->ids[c->n++] = (struct text) {copy, id.len};
	return 0;
}

bool calls_remove(struct calls *c, struct text id)
{
	for (unsigned i = 0; i < c->n; i++) {
		if (!text_equal(c->ids[i], id))
			continue;
		free((char *)c->ids[i].data);
		memmove(c->ids + i, c->ids + i + 1, (--c->n - i) * sizeof(*c->ids));
		return true;
	}
	return false;
}

bool calls_take(struct calls *c, char **ret_id)
{
	if (c->n == 0)
		return false;
	*ret_id = (char *)c->ids[0].data;
	memmove(c->ids, c->ids + 1, --c->n * sizeof(*c->ids));
	return true;
}

void calls_done(struct calls *c)
{
	char *id;

	while (calls_take(c, &id))
		free(id);
	free(c->ids);
	*c = (struct calls) {0};
}
