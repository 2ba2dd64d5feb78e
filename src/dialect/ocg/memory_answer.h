/* Answers of the memory methods: JSON in a text, as the original words it. */
#pragma once

#include "base/buf.h"
#include "engine/memory/memory.h"

/* As many hits as the buffer's maximum has room for, each whole. For none of them: its error. */
void ocg_answer_found(struct buf *out, struct text query, const struct memory *hits, unsigned n);
void ocg_answer_entry(struct buf *out, const struct memory *m);
void ocg_answer_stored(struct buf *out, const struct memory *m);
void ocg_answer_duplicate(struct buf *out, const struct memory *m);
