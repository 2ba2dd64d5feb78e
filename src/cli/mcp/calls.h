/*
 * What koine mcp reads of a message, and the requests that nobody has answered yet.
 *
 * A message is scanned, not parsed. Ids are kept and compared as they were written.
 */
#pragma once

#include "base/buf.h"
#include "wire/json.h"

/* Members of a message. */
enum { MESSAGE_ID, MESSAGE_METHOD, MESSAGE_PARAMS, MESSAGE_ERROR, N_MESSAGE_MEMBERS };

struct pipe_message {
	struct json_member members[N_MESSAGE_MEMBERS];
	struct value root; /* what it is, without its members */
};

/* False: it is not JSON. */
bool message_scan(struct text line, struct pipe_message *m);

/* The source of a member; {NULL, 0}: there is none. */
static inline struct text message_raw(const struct pipe_message *m, int member)
{
	return m->members[member].raw;
}

enum { CALLS_MAX = 4096, CALL_ID_MAX = 4096 };

struct calls {
	struct buf ids; /* a line each, the oldest first */
	unsigned n;
};

void calls_init(struct calls *c);
void calls_done(struct calls *c);

/* -ENOSPC: CALLS_MAX calls are in flight. -EMSGSIZE: the id is too long. -ENOMEM. */
int calls_add(struct calls *c, struct text id);

/* It was answered. Does nothing if there is none with that id. */
void calls_remove(struct calls *c, struct text id);

/* What a client has cancelled may never be answered: `params` names it. */
void calls_forget(struct calls *c, struct text params);

/* Forgets all of them. */
void calls_clear(struct calls *c);
