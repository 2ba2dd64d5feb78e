/* What a call of a tool is about, on one line: for people who decide on it, or watch it. */
#pragma once

#include <koine/koine.h>

#include "base/buf.h"
#include "base/text.h"

enum { GIST_MAX = 8 << 20 }; /* bytes */

/*
 * Adds the member that matters for this tool, then the names of the others: "make  +1 more:
 * description". For an unknown tool, or where a key stands twice or is no text, it is the whole
 * input as JSON. All of it as glyph_read_exact shows it.
 */
void tool_gist(struct buf *out, struct text tool, const struct koine_value *input);
