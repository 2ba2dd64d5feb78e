/*
 * Bytes as a program prints them into text: whole UTF-8 characters, however the bytes were
 * cut; what is none, and NUL, becomes U+FFFD. The last line's end is left out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct command_text {
	char held[4]; /* the beginning of a character */
	size_t n_held;
	bool newline; /* came last, and is due if anything follows */
};

/* Both append what can be told by now; failures stick to out->err. */
void command_text_feed(struct command_text *t, const char *data, size_t len, struct buf *out);
void command_text_finish(struct command_text *t, struct buf *out);
