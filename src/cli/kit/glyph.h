/*
 * Text as a terminal shows it: one character after another, each with its width.
 *
 * What could steer the terminal, turn the text around or is written for machines alone is shown
 * as an escape.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/text.h"

struct glyph {
	uint32_t c;     /* the code point; of a byte that is no UTF-8, the byte */
	unsigned used;  /* bytes of the text */
	unsigned width; /* columns */
	unsigned len;   /* bytes of shown */
	char shown[12]; /* what to print instead, not ended by NUL */
};

/* Reads the character at `at`, which is before `end`. Whatever ends a line is a space. */
void glyph_read(struct glyph *g, const char *at, const char *end);

/*
 * The same, for text that people decide on. Whatever cannot be seen is an escape (all that Unicode
 * calls default-ignorable, other kinds of spaces, what is not assigned), a line's end is "⏎", and
 * nothing takes more columns than its width says. Text that was shown so is shown the same again.
 */
void glyph_read_exact(struct glyph *g, const char *at, const char *end);
void text_add_exact(struct buf *out, struct text t);
void print_exact(FILE *out, struct text t);
/* On one line what fits, and "…" when that is not all. Returns the columns used. */
size_t print_fitting_exact(FILE *out, struct text t, size_t columns);

/* Columns of the text on one line. */
size_t text_columns(struct text t);

/* How many bytes of it fit into so many columns. */
size_t text_fitting(struct text t, size_t columns);

/* Columns of stdout's terminal: as COLUMNS or the terminal says, else 80. */
unsigned terminal_columns(void);

/* Prints on one line what fits, and "…" when that is not all. Returns the columns used. */
size_t print_fitting(FILE *out, struct text t, size_t columns);

/* Prints on as many lines as it takes, at most on `lines` (0: no limit); lines after the first
 * begin with `indent` spaces. Ends with a newline. `marks` (may be NULL) has a byte for each of the
 * text's; those that are not 0 are bold. */
void print_wrapped(FILE *out, struct text t, const char *marks, size_t columns, unsigned indent,
		   unsigned lines);
