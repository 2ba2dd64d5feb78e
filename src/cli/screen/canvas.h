/* A frame of a live view: rows of text, each cut to the terminal's width with a mark. */
#pragma once

#include "base/text.h"
#include "cli/kit/print.h"
#include "cli/screen/terminal.h"

struct canvas {
	const struct terminal *terminal;
	unsigned columns;
	unsigned rows;
	unsigned room; /* columns left in the row */
	bool color;
	bool cursor; /* set by whoever draws: it is shown after what was put last */
	/* glyph_read_exact, or glyph_read */
	void (*read)(struct glyph *g, const char *at, const char *end);
};

/* Begins a row. They are drawn from the first downwards; some may be left out. */
void canvas_row(struct canvas *c, unsigned row);

/* For what is put from now on in this row. Colours only where they are wanted. */
void canvas_style(struct canvas *c, unsigned style);

/* As much as fits, and "…" if that is not all. */
void canvas_print(struct canvas *c, struct text t);
void canvas_print_str(struct canvas *c, const char *text);

/* The same in exactly so many columns, followed by a space. */
void canvas_put(struct canvas *c, struct text t, unsigned width);
