/* An event: what happened, when, and to whom. */
#pragma once

#include <stdint.h>

#include "base/portrait.h"
#include "base/text.h"

struct event {
	int64_t seq;      /* its number in the log */
	struct text type; /* "task.started" */
	int64_t time_ms;
	struct text project, session, run; /* {NULL, 0}: no project */
	struct text data;                  /* a packed object (base/pack) */
};

extern const struct portrait event_portrait;
