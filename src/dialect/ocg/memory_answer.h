/* Answers of the memory methods: JSON within a string, in the original's words. */
#pragma once

#include "base/buf.h"
#include "engine/memory/memory.h"

/* Writes as many hits as fit into the buffer's maximum, each whole. If none fits, that is the
 * buffer's error. */
void ocg_answer_found(struct buf *out, struct text query, const struct memory *hits, unsigned n);
void ocg_answer_entry(struct buf *out, const struct memory *m);
void ocg_answer_stored(struct buf *out, const struct memory *m);
void ocg_answer_duplicate(struct buf *out, const struct memory *m);
