/* The differences between two texts, line by line. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

/* sign is ' ' for a line of both, '-' for one of the old text, '+' for one of the new. The line
 * comes without its newline. */
typedef void (*diff_fn)(void *arg, char sign, struct text line);

/* If the texts are too long to compare, or memory is short, all of the old text is removed and
 * all of the new is added. */
void diff_lines(struct text before, struct text after, diff_fn fn, void *arg);

/* Takes the first line off the text; false when none is left. */
bool text_next_line(struct text *left, struct text *ret_line);
