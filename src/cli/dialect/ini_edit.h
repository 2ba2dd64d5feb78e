/*
 * One key of a settings file, as koine.conf(5) has them: text in, text out, no I/O. Every other byte
 * stays.
 *
 * What was there before stands behind a new value as a comment, so that it can be put back to the
 * byte: "nexus = on ; was off". A line that was not there has "; koine dialects" at its end, and so
 * has a section that was made for it.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/error.h"
#include "wire/ini.h"

struct ini_key {
	const char *section;
	const char *key;
};

/* All of them write the whole new text into `out`, which is the old text if there is nothing to do.
 * They return 0, -ENOMEM, or a refusal that names the line; `out` is worth nothing then. */

/* The last line with the key counts, and gets the value. */
int ini_put(struct text file, struct ini_key key, const char *value, struct buf *out,
	    struct error *error);

/* Undoes ini_put. What it did not do stays: *ret_undone says so. */
int ini_take(struct text file, struct ini_key key, struct buf *out, bool *ret_undone,
	     struct error *error);

/* Whether there is anything that is not from ini_put alone. */
bool ini_has_others(struct text file);

/* Its value; {NULL, 0}: there is none. */
struct text ini_get(struct text file, struct ini_key key);
