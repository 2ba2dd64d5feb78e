/* Thousands of connections that say nothing: what they cost the server. */
#pragma once

#include "client.h"

struct idle_result {
	unsigned n_connections;
	double kib_silent;           /* per connection, before it ever spoke */
	double kib_spoken;           /* per connection, each having had one answer */
	double idle_cpu_ms;          /* of the server, in a second in which nobody speaks */
	struct client_result active; /* one client among them */
};

/* `opts` describes the one active client. 0 or -errno. */
int idle_run(const struct client_opts *opts, unsigned n, struct idle_result *ret_result);
