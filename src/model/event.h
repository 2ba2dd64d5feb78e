/*
 * An event: what happened, when, and to whom.
 *
 * The members of its data are stored under neutral names. Clients of koine's own dialect, hld's
 * clients and rules have always known some of them by other names, or by several, and are shown
 * those. Events that were stored under the shown names are shown as they are.
 */
#pragma once

#include <stdint.h>

#include "base/pack.h"
#include "base/schema.h"
#include "base/text.h"

struct event {
	int64_t seq;      /* its number in the log */
	struct text type; /* "task.started" */
	int64_t time_ms;
	struct text project, session, run; /* {NULL, 0}: no project */
	struct text host;                  /* where it happened; {NULL, 0}: there is only one */
	struct text data;                  /* a packed object (base/pack) */
};

extern const struct schema event_schema;

/* What is asked of one; see engine/event/condition.h. */
struct event_condition {
	struct text field; /* dotted: "payload.path" */
	/* eq, equals, neq, not_equals, contains, matches, gt, lt, gte, lte, exists, not_exists */
	struct text operator;
	const struct value *value;
};

/* The names under which clients see its data, instead of those that are stored; NULL: as it is. */
const struct packed_name *event_names(const struct event *e);

/* The data as rules see it, as a tree. Its texts point into the event. */
int event_unpack(struct arena *a, const struct event *e, struct value **ret_data);
