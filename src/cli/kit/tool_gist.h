/* What a call of a tool is about, on one line: for people who decide on it, or watch it. */
#pragma once

#include <koine/koine.h>

#include "base/buf.h"
#include "base/text.h"

enum { GIST_MAX = 8 << 20 }; /* bytes */

/*
 * Adds what counts for this tool, then the names of all else that its input has: "make  +1 more:
 * description". Of tools that nobody knows, and where a key stands twice or something else stands in
 * the place of a text, it is the whole input as JSON. All of it as glyph_read_exact shows it.
 */
void tool_gist(struct buf *out, struct text tool, const struct koine_value *input);
