/* What a tool call is about, on one line, for people who decide on it or watch it. */
#pragma once

#include <koine/koine.h>

#include "base/buf.h"
#include "base/text.h"

enum { GIST_MAX = 8 << 20 }; /* bytes */

/*
 * Adds the member that matters for this tool, then the names of the others: "make  +1 more:
 * description". For an unknown tool, or if a key occurs twice or is not text, it is the whole
 * input as JSON. All of it is shown as by glyph_read_exact.
 */
void tool_gist(struct buf *out, struct text tool, const struct koine_value *input);
