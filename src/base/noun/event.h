/* An event as it is kept: what happened, when, and to whom. */
#pragma once

#include <stdint.h>

#include "base/text.h"

struct event_row {
	int64_t seq;
	struct text type; /* "task.started" */
	int64_t time_ms;
	struct text project; /* {NULL, 0}: of none */
	struct text session;
	struct text run;
	struct text data; /* packed; not looked into */
};
