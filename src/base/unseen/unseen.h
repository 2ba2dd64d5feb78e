/* Characters that nobody sees, or that turn what stands around them: a text that somebody decides about
 * must not look like another. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint32_t first;
	uint32_t last;
};

/* Whether it is in one of them, which are in order. */
bool ranges_have(const struct range *rows, size_t n, uint32_t c);

/* Control characters (also the line's end), marks of direction, joiners, spaces that are none, and what
 * Unicode has not assigned. */
bool char_is_unseen(uint32_t c);
