/*
 * Conditions on events, for rules and for notifiers: what they see of one is {type, source,
 * payload}. They mean the same as in the rules that people already have, which were written for
 * JavaScript: equal values must be of the same kind, and only fields that exist can be compared.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/event.h"
#include "base/value.h"
#include "base/error.h"

struct pattern;

enum { EVENT_STEPS = 1 << 20 }; /* that expressions may use for one event: a few milliseconds */

/* ---- the event ---- */

/* {type, source, payload} */
int event_tree(struct arena *a, struct text type, struct text source, const struct value *payload,
	       const struct value **ret_event);
/* Its type up to the first dot. */
struct text event_source(struct text type);
/* Its data as it is shown, with seq, project, session and run added. */
int event_payload(struct arena *a, const struct event *e, struct value **ret_payload);
/* A field of the event's tree, by its dotted path; NULL: it does not exist. */
const struct value *event_field(const struct value *event, struct text path);
/* The text of a value that is neither array nor object; {NULL, 0} for these. */
struct text event_scalar(const struct value *v);

/* ---- conditions ---- */

/* Some of them, all of which must hold. Zeros are none. */
struct conditions {
	struct event_condition *list;
	struct pattern **patterns; /* NULL entries where none is needed */
	unsigned n;
};

/* Copies them into the arena; refuses an invalid one. conditions_done is called in any case. */
int conditions_make(struct conditions *c, struct arena *a, const struct event_condition *from,
		    unsigned n, struct error *error);
void conditions_done(struct conditions *c);

/* `steps` are what is left of EVENT_STEPS; an expression for which none are left finds nothing. */
bool conditions_hold(const struct conditions *c, const struct value *event, uint64_t *steps);

/* Logs `what`: no steps were left for an event. Once a minute, by the time in *told_ms. */
void conditions_spent(uint64_t *told_ms, const char *what, struct text type);
