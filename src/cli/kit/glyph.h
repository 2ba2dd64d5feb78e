/*
 * Text as a terminal shows it: one character after another, each with its width.
 *
 * Characters that could steer the terminal, reverse the text or are meant only for machines
 * are shown as escapes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/text.h"

struct glyph {
	uint32_t c;     /* the code point; for a byte that is not UTF-8, the byte */
	unsigned used;  /* bytes of the text */
	unsigned width; /* columns */
	unsigned len;   /* bytes of shown */
	char shown[12]; /* what to print instead, not NUL-terminated */
};

/* Reads the character at `at`, which is before `end`. Any line end becomes a space. */
void glyph_read(struct glyph *g, const char *at, const char *end);

/*
 * The same, for text that people decide on. Anything invisible is an escape (all that Unicode
 * calls default-ignorable, other kinds of spaces, unassigned characters), a line end is "⏎",
 * and nothing takes more columns than its width says. Text that was already shown in this way
 * stays the same.
 */
void glyph_read_exact(struct glyph *g, const char *at, const char *end);
void text_add_exact(struct buf *out, struct text t);
void print_exact(FILE *out, struct text t);
/* As much as fits on one line, and "…" if that is not all. Returns the columns used. */
size_t print_fitting_exact(FILE *out, struct text t, size_t columns);

typedef void (*glyph_fn)(struct glyph *g, const char *at, const char *end);

/* Columns of the text on one line, read by one of the two. */
size_t text_columns(struct text t);
size_t text_columns_by(struct text t, glyph_fn read);

/* How many bytes of it fit into so many columns. */
size_t text_fitting(struct text t, size_t columns);
size_t text_fitting_by(struct text t, size_t columns, glyph_fn read);

/* Columns of stdout's terminal: from COLUMNS or the terminal, otherwise 80. */
unsigned terminal_columns(void);

/* Prints as much as fits on one line, and "…" if that is not all. Returns the columns used. */
size_t print_fitting(FILE *out, struct text t, size_t columns);

/* Prints on as many lines as necessary, at most `lines` (0: no limit); lines after the first
 * start with `indent` spaces. Ends with a newline. `marks` (may be NULL) has a byte for each
 * byte of the text; where it is not 0, the text is bold. */
void print_wrapped(FILE *out, struct text t, const char *marks, size_t columns, unsigned indent,
		   unsigned lines);
