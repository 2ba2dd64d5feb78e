/* A bar on stderr that shows how far a file has been read; nothing if stderr is not a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown;
	int64_t size;     /* of the whole; 0: unknown */
	uint64_t last_ms; /* when it was last drawn */
};

void progress_init(struct progress *p, int64_t size);
/* Draws it, unless it was drawn a moment ago. */
void progress_set(struct progress *p, int64_t done, int64_t count);
/* Removes it. */
void progress_done(struct progress *p);
