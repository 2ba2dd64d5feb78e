/*
 * Many connections that each keep a window of requests in flight.
 *
 * A connection writes a whole window at once and the next when every answer of
 * the last one came. Every answer is checked; the first wrong one ends the run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "hist.h"
#include "message.h"
#include "proc.h"
#include "request.h"

enum { INFLIGHT_MAX = 64, CONNECTIONS_MAX = 4096 };

struct client_opts {
	const char *target;
	struct request *request;
	bool fixed;         /* answers are all the same bytes and their id is nobody's */
	bool notifications; /* may come between the answers */
	unsigned n_connections;
	unsigned inflight;
	double warmup_seconds;
	double seconds;
	uint64_t n_requests; /* instead of seconds, if not 0 */
	unsigned timeout_ms; /* the longest silence that is borne */
	struct pids pids;    /* the server's */
};

struct client_result {
	uint64_t n_requests;
	uint64_t wall_ns;
	uint64_t server_cpu_ns;
	uint64_t client_cpu_ns;
	struct hist latency;
};

/*
 * 0, or -errno after a line on stderr that says what was seen instead of the
 * answer: -EPROTO for a wrong one, -ETIMEDOUT for none.
 */
int client_run(const struct client_opts *opts, struct client_result *ret_result);
