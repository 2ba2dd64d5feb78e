/*
 * Regular expressions, as rules name them: POSIX's extended ones, with what people are used to from
 * JavaScript where the meaning is the same (\d \w \s \b, (?:...), escapes in brackets).
 *
 * What POSIX does not have is refused: looking ahead and behind, named groups, back references, \u.
 * What differs: the longest match counts, which nobody sees who only asks whether there is one; "."
 * takes a line's end too; and a text is bytes, so that "." is one of the bytes of an "ä".
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "base/why.h"

struct pattern;

enum {
	PATTERN_MAX = 512,          /* bytes of an expression */
	PATTERN_COST_MAX = 1000,    /* pieces, once all that is repeated is written out */
	PATTERN_DEPTH_MAX = 32,     /* of groups in groups */
	PATTERN_TEXT_MAX = 16 << 10 /* bytes of a text that are looked at: the first */
};

int pattern_new(struct text expression, struct pattern **ret_pattern, struct why *why);
void pattern_free(struct pattern *p); /* accepts NULL */

/* Whether it is found anywhere in the text. One thread at a time. */
bool pattern_finds(struct pattern *p, struct text t);

/* "*" for any text, "?" for any byte; everything else for itself. */
bool glob_fits(struct text glob, struct text t);
