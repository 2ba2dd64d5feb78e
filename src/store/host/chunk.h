/*
 * The end of what tasks print, for other hosts to read: the file is where the task runs. Places count
 * everything that a task ever printed, as those of its file do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

struct connection;

enum { TASK_CHUNKS_MAX = 1 << 20 }; /* bytes of one task; earlier ones are deleted */

struct task_chunk {
	int64_t task;     /* its seq */
	int64_t attempts; /* it is kept only while this attempt runs, */
	int64_t epoch;    /* in this life */
	struct text host; /* of this host */
	int64_t place;
	bool first; /* of this attempt: what another host's may have left from there on is deleted */
	struct text bytes;
};

int store_chunk_add(struct connection *c, const struct task_chunk *chunk);

/* The place after the last one; 0 if there is none. */
int store_chunk_end(struct connection *c, int64_t task, int64_t *ret_end);

/* At most `max` bytes from `offset` on, or the last -offset; what is no longer there is skipped. *ret_end:
 * after the last one. The bytes are in the arena. */
int store_chunk_read(struct connection *c, int64_t task, int64_t offset, size_t max,
		     struct arena *arena, struct text *ret_bytes, int64_t *ret_offset,
		     int64_t *ret_end);
