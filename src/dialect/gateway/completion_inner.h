/* Shared by completion*.c alone. */
#pragma once

#include "dialect/gateway/completion.h"

/* A request in the chat's terms; all of it lives in the arena. */
struct completion_in {
	struct text system; /* {NULL, 0}: the default */
	size_t system_room; /* free bytes behind it */
	struct message *messages;
	unsigned n_messages;
	unsigned n_history; /* messages before the question */
	struct agent_tool *tools;
	unsigned n_tools;
	bool own_tools; /* the client brought tools */
	struct agent_shape shape;
	uint64_t before; /* hash of everything up to the last answer; 0: no answer */
	uint64_t said;   /* hash of everything */
};

int completion_read(struct arena *a, const struct completion_ask *ask, struct completion_in *ret,
		    struct error *error);

/* Continues a hash with one more message. */
uint64_t completion_hash(uint64_t hash, const struct message *m);
