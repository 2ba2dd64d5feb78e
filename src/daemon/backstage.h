/* How the services' own work gets to the server's threads: embeddings, conversations. */
#pragma once

#include <stdbool.h>

#include "call/server.h"
#include "io/work.h"

struct backstage {
	struct server *server;
	struct services *services;
	bool closed; /* the threads end: more is refused with -ECANCELED */
};

/* What is told after a commit, for workers_opts; arg is the backstage. */
struct work *backstage_trailer(void *arg);

/* For as long as the backstage is there. */
struct background backstage(struct backstage *b);
