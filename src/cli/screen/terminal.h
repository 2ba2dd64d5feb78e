/*
 * What a live view is shown on, in two forms. ncurses knows the terminal by its name and sends only
 * what has changed; the plain form writes every frame whole, with the sequences that all of today's
 * terminals know. It does where ncurses cannot: in a static build, and on a terminal that has no
 * entry in this machine's terminfo, as over ssh.
 */
#pragma once

#include <stdbool.h>

#include "cli/kit/glyph.h"

/* One of these, or several, and a colour: STYLE_COLOR(COLOR_RED). */
enum {
	STYLE_PLAIN = 0,
	STYLE_BOLD = 1,
	STYLE_REVERSE = 2,
};

#define STYLE_COLOR(color)    ((unsigned)(color) << 8)
#define STYLE_COLOR_OF(style) ((style) >> 8)

/* A frame is begun, its rows are written from the first downwards, some may be left out, and it is
 * ended: everything that it does not have is empty then. */
struct terminal {
	/* Takes the terminal, whose keys come at once already. False: this form cannot, and has
	 * changed nothing. */
	bool (*enter)(void);
	/* Gives it back; it may be entered again. */
	void (*leave)(void);
	/* Nothing of what was shown counts any more. */
	void (*forget)(void);
	void (*begin)(unsigned columns, unsigned rows);
	/* Begins a row, without a style. */
	void (*row)(unsigned row);
	void (*style)(unsigned style);
	void (*put)(const struct glyph *g);
	/* Shows it; with `cursor`, that stands after what was put last. */
	void (*end)(bool cursor);
};

extern const struct terminal terminal_plain;
/* NULL: built without ncurses. */
extern const struct terminal *const terminal_curses;

enum { TERMINAL_ROWS_MAX = 1000, TERMINAL_COLUMNS_MAX = 4000 };
