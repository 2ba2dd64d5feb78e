/* A bar on stderr that shows how far a file has been read; nothing when stderr is no
 * terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown;
	int64_t size;     /* of the whole; 0: not known */
	uint64_t last_ms; /* when it was drawn */
};

void progress_init(struct progress *p, int64_t size);
/* Draws it, unless that was done a moment ago. */
void progress_set(struct progress *p, int64_t done, int64_t count);
/* Takes it away. */
void progress_done(struct progress *p);
