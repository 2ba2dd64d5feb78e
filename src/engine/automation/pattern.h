/*
 * Regular expressions, as rules name them: POSIX's extended ones, with what people are used to from
 * JavaScript where the meaning is the same (\d \w \s \b, (?:...), escapes in brackets).
 *
 * What would need more than one walk over the text is refused: looking ahead and behind, back
 * references; and named groups, \u. What differs from JavaScript: "." takes a line's end too; and
 * a text is bytes, so that "." is one of the bytes of an "ä".
 *
 * An expression is a program of at most PATTERN_CODE_MAX steps, and a text is walked once with all the
 * places of the program that it may be at: the time is their product at most, whatever is written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/why.h"

struct pattern;

enum {
	PATTERN_MAX = 512,           /* bytes of an expression */
	PATTERN_CODE_MAX = 2000,     /* once all that is repeated is written out */
	PATTERN_DEPTH_MAX = 32,      /* of groups in groups */
	PATTERN_TEXT_MAX = 16 << 10, /* bytes of a text that are looked at: the first */
};

int pattern_new(struct text expression, struct pattern **ret_pattern, struct why *why);
void pattern_free(struct pattern *p); /* accepts NULL */

/*
 * Whether it is found anywhere in the text. One thread at a time.
 *
 * What it took is taken off *steps, one for each place of the program that was looked at, a few
 * nanoseconds each. When there are none left it is not found, and *steps is 0.
 */
bool pattern_finds(struct pattern *p, struct text t, uint64_t *steps);

/* "*" for any text, "?" for any byte; everything else for itself. */
bool glob_fits(struct text glob, struct text t);
