/*
 * Regular expressions, as rules and policies use them: POSIX's extended ones, with what people
 * know from JavaScript where the meaning is the same (\d \w \s \b, (?:...), escapes in
 * brackets).
 *
 * Anything that needs more than one pass over the text is refused: lookahead, lookbehind and
 * back references. So are named groups and \u. Two things differ from JavaScript: "." also
 * matches a line end, and a text is bytes, so that "." matches one byte of an "ä".
 *
 * An expression becomes a program of at most PATTERN_CODE_MAX steps. A text is walked once,
 * with all states that the program may be in; the time is at most the product of the two,
 * whatever the expression.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/error.h"

struct pattern;

enum {
	PATTERN_MAX = 512,           /* bytes of an expression */
	PATTERN_CODE_MAX = 2000,     /* steps, with repetitions written out */
	PATTERN_DEPTH_MAX = 32,      /* of nested groups */
	PATTERN_TEXT_MAX = 16 << 10, /* only the first bytes of a text are examined */
};

int pattern_new(struct text expression, struct pattern **ret_pattern, struct error *error);
void pattern_free(struct pattern *p); /* accepts NULL */

/*
 * Whether it matches anywhere in the text. A pattern is used by one thread at a time.
 *
 * *steps is a budget: each state of the program that is examined takes one, a few nanoseconds.
 * When it runs out, *steps is 0 and the pattern counts as not found.
 */
bool pattern_finds(struct pattern *p, struct text t, uint64_t *steps);

/* "*" matches any text, "?" any byte, everything else itself. */
bool glob_fits(struct text glob, struct text t);
/* The same, but "?" matches only itself. */
bool stars_fit(struct text glob, struct text t);
