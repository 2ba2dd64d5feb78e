/* What `koine events` takes beside the options of all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EVENT_GLOBS_MAX = 32 };

struct event_options {
	bool follow;
	const char *since; /* as typed; NULL: not given */
	const char *types[EVENT_GLOBS_MAX];
	unsigned n_types;
	const char *session;
	const char *run;
	const char *project;
	int64_t limit;
	bool limit_given;
};
