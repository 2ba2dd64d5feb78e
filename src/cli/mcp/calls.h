/* Requests that a client has sent and that nobody has answered yet, by their ids as they were
 * written. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

enum { CALLS_MAX = 4096, CALL_ID_MAX = 4096 };

struct calls {
	struct text *ids;
	unsigned n;
	unsigned cap;
};

/* -ENOSPC: too many, or the id is too long. -ENOMEM. */
int calls_add(struct calls *c, struct text id);

/* False: there is none with that id. */
bool calls_remove(struct calls *c, struct text id);

/* Takes the oldest out; the caller frees its text. False: there is none. */
bool calls_take(struct calls *c, char **ret_id);

void calls_done(struct calls *c);
