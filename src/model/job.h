/* A job: a schedule that a client made at run time, as the store has it. */
#pragma once

#include "base/portrait.h"

struct job {
	struct text id;
	struct packed data; /* what its client specified, an object */
	int64_t created_ms;
	int64_t updated_ms;
};

extern const struct portrait job_portrait;
