/*
 * Turns bytes as a program prints them into text: whole UTF-8 characters, however the bytes
 * were cut; invalid ones, and NUL, become U+FFFD. The final newline is left out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct command_text {
	char held[4]; /* the beginning of a character */
	size_t n_held;
	bool newline; /* a newline came last; written if anything follows */
};

/* Both append what is known so far; failures stick to out->err. */
void command_text_feed(struct command_text *t, const char *data, size_t len, struct buf *out);
void command_text_finish(struct command_text *t, struct buf *out);
