/* How the services' own work gets to the server's threads: embeddings, conversations. */
#pragma once

#include <stdbool.h>

#include "call/server.h"
#include "service/background.h"

struct backstage {
	struct server *server;
	bool closed; /* the threads end: more is refused with -ECANCELED */
};

/* For as long as the backstage is there. */
struct background backstage(struct backstage *b);
