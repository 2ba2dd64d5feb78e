/*
 * What koined tells of itself to Prometheus and its kin: one table of families (families.c), whose
 * rows say where their samples come from. Each room counts in a struct of its own; what they have
 * is taken together once for each scrape, and then read family by family.
 */
#pragma once

#include "base/metric.h"
#include "call/call.h"
#include "call/http.h"
#include "call/server.h"
#include "engine/event/event.h"
#include "engine/memory/memory.h"
#include "engine/task/task.h"

enum { METRIC_DIALECTS_MAX = 32 };

/* All listeners of a dialect, those that were closed as well. */
struct metric_listeners {
	const struct dialect *dialect;
	uint64_t connections;
	uint64_t accepted;
	uint64_t refused[N_REFUSED_FOR];
	uint64_t gate[N_GATE_REASONS];
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t dropped;
};

/* The process as the kernel knows it. */
struct metric_process {
	uint64_t rss;
	uint64_t cpu_ns;
	uint64_t open_fds;
	uint64_t max_fds; /* UINT64_MAX: no limit */
};

/* What all families of one scrape are read from. */
struct metric_from {
	struct server *server;
	struct engine *engine;
	struct metric_listeners listeners[METRIC_DIALECTS_MAX];
	unsigned n_listeners;
	struct workers_figures workers;
	struct event_figures events;
	struct memory_figures memory;
	bool has_memory;
	struct task_counts tasks;
	struct metric_process process;
	uint64_t start_ms;
	uint64_t calls_running;
	uint64_t calls_parked;
	uint64_t answers; /* bytes of responses that wait */
	uint64_t input;   /* bytes of incomplete messages */
	uint64_t writable;
	uint64_t approvals; /* pending */
	uint64_t sessions;  /* running */
	uint64_t children;
	uint64_t log_left_out;
	const struct histogram *held; /* NULL: not measured; the same goes for the following */
	const struct histogram *commits;
	const struct histogram *batches;
	const struct histogram *approval_waits;
	const struct histogram *searches;
};

/* Of `n_connections` descriptors it is known that they are open. */
void metric_process_read(struct metric_process *ret, uint64_t n_connections);

/* ---- families.c ---- */

extern const struct metric_family metric_families[];
extern const unsigned n_metric_families;

/* ---- the daemon's: server.c ---- */

void metric_server_take(struct metric_from *f, struct server *s);

#define COLLECT(name)                                                                              \
	void collect_##name(const void *from, const struct metric_family *f,                       \
			    struct metric_sink *sink)

/* A number of struct metric_from, a histogram to which it points, and a number of each dialect's
 * listeners. */
COLLECT(number);
COLLECT(histogram);
COLLECT(listeners);

COLLECT(build);
COLLECT(calls);
COLLECT(refusals);
COLLECT(call_times);
COLLECT(refused);
COLLECT(gate);
COLLECT(work);

/* ---- the engine's: engine.c ---- */

void metric_engine_take(struct metric_from *f, struct engine *e);

COLLECT(tasks);
COLLECT(decisions);
COLLECT(turns);
COLLECT(tokens);
COLLECT(cost);

/* ---- the process's: process.c ---- */

COLLECT(log_lines);

/* ---- show.c: who is shown them ---- */

enum { N_METRIC_ROUTES = 1 };
extern const struct http_route metric_routes[N_METRIC_ROUTES];
extern const struct method_table metric_methods;

/* ---- sample.c: the last day, minute by minute, in server.samples ---- */

int samples_start(struct server *server, struct engine *engine, struct samples **ret_samples);
void samples_free(struct samples *s); /* accepts NULL */
struct done metric_samples(struct call *c);

/* ---- dialect.c: a listener for nothing else ---- */

extern const struct dialect metric_dialect;
