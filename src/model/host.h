/* A host: one of the koined that share a store, each on a machine of its own. Its times are the
 * store's, never its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/schema.h"

/* The store keeps the numbers. */
enum host_state {
	HOST_ALIVE,
	HOST_LEFT,    /* it was stopped */
	HOST_LOST,    /* it did not renew its lease in time */
	HOST_UNKNOWN, /* it was alive before the database stopped answering; never kept */
};

enum { N_HOST_STATES = 4, HOST_NAME_MAX_BYTES = 64, HOST_LABELS_MAX = 16 };

struct host {
	struct text name;
	int64_t epoch; /* of this life; no two lives of any host share one */
	enum host_state state;
	struct text boot;    /* where its process is, to tell whether that has ended */
	struct text labels;  /* words with spaces between them */
	struct text version; /* of its koined */
	int64_t since_ms;    /* of this life, or of its end */
	int64_t seen_ms;     /* its last sign of life */
	int64_t lease_ms;    /* others take over what it runs after this time */
	int64_t running;     /* tasks */
	int64_t parallel;    /* tasks that it may run side by side */
};

extern const struct schema host_schema;

bool host_has_label(const struct host *host, struct text label);
