/* What the memory methods say: JSON in a text, in the original's words. */
#pragma once

#include "base/buf.h"
#include "engine/memory/memory.h"

/* As many hits as the buffer's maximum has room for, each whole. For none of them: its error. */
void ocg_words_found(struct buf *out, struct text query, const struct memory *hits, unsigned n);
void ocg_words_entry(struct buf *out, const struct memory *m);
void ocg_words_stored(struct buf *out, const struct memory *m);
void ocg_words_duplicate(struct buf *out, const struct memory *m);
