/*
 * The whole terminal for a while: a screen of its own, keys without Enter, and everything
 * restored at the end, even when a signal ends it.
 */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>
#include <termios.h>

#include "cli/kit/cli.h"
#include "cli/kit/signals.h"
#include "cli/screen/canvas.h"

struct screen {
	struct termios before;
	struct signals signals;
	const struct terminal *terminal;
	bool color;
	void *arg;
	void (*key)(void *arg, char byte); /* pasted text comes between ESC [ 200 ~ and 201 ~ */
	void (*redraw)(void *arg);         /* the screen has another size, or is empty */
	void (*round)(void *arg);          /* waits once, and handles what happened */
	bool leave;                        /* set by any callback: this is the last round */
	int status;                        /* the exit status then */
};

/* Runs round after round until `leave`. The caller sets the callbacks. Returns `status`, or
 * EX_USAGE if stdin and stdout are not both a terminal; nothing is printed then. */
int screen_run(struct screen *s);

/* Restores the terminal at once, so that something can be printed, and leaves with that status. */
void screen_fail(struct screen *s, int status);

/* Waits for a key, a signal, what the client waits for (NULL: nothing), or so many milliseconds,
 * and lets the callbacks handle it. Ctrl-C, or a terminal that is gone, sets `leave`. */
void screen_wait(struct screen *s, const struct koine_client *c, int ms);

/* Shows what `draw` makes of an empty frame. */
void screen_draw(struct screen *s, void (*draw)(void *arg, struct canvas *c), void *arg);

/* Drops pending keys: they were meant for something else. */
void screen_forget_keys(void);

/* The current size; it may change at any time. */
void screen_size(unsigned *ret_columns, unsigned *ret_rows);
