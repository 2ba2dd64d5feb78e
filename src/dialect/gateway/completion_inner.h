/* Inside completion*.c. */
#pragma once

#include "dialect/gateway/completion.h"

/* What a request says, in the chat's terms; all of it in the arena. */
struct completion_in {
	struct text system; /* {NULL, 0}: the default */
	size_t system_room; /* behind it */
	struct message *messages;
	unsigned n_messages;
	unsigned n_history; /* of these, those before the question */
	struct agent_tool *tools;
	unsigned n_tools;
	bool own_tools; /* the client's */
	struct agent_shape shape;
	uint64_t before; /* hash of all up to the last answer; 0: there is none */
	uint64_t said;   /* hash of all */
};

int completion_read(struct arena *a, const struct completion_ask *ask, struct completion_in *ret,
		    struct why *why);

/* Goes on with a hash. */
uint64_t completion_hash(uint64_t hash, const struct message *m);
