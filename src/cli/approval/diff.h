/* What differs between two texts, line by line. */
#pragma once

#include <stdbool.h>

#include "base/text.h"

/* sign is ' ' for a line of both, '-' for one of the old text, '+' for one of the new. The line is
 * without its newline. */
typedef void (*diff_fn)(void *arg, char sign, struct text line);

/* Where the texts are too long to compare, or memory is short, all of the old is gone and all of the
 * new has come. */
void diff_lines(struct text before, struct text after, diff_fn fn, void *arg);

/* Takes the first line off the text; false when there is none left. */
bool text_next_line(struct text *left, struct text *ret_line);
