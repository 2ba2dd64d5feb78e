/* Which events a client asks for, and how an event is written. */
#pragma once

#include "call/method.h"
#include "engine/event/event.h"
#include "wire/json.h"

struct event_in {
	const struct value *types;
	const struct value *since;
	struct text session_id;
	struct text run_id;
	struct text project;
	int64_t limit; /* event.list only */
};

/* event.list takes all of them, event.subscribe all but the last. */
enum { N_EVENT_IN_FIELDS = 6 };
extern const struct field event_in_fields[N_EVENT_IN_FIELDS];

struct event_since {
	int64_t seq; /* -1: not given */
	int64_t ms;  /* 0: not given */
};

/* Refuses a bad shape, naming the field. The filter points into `in` and the arena. */
int event_in_read(const struct event_in *in, struct arena *a, struct event_filter *ret_filter,
		  struct event_since *ret_since, struct why *why);

/* Writes the members without braces, so that the caller may add others. */
void event_write_members(struct json *j, const struct event *e);
