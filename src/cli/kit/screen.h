/*
 * The whole terminal for a while: another screen, keys without Enter, and everything back as it
 * was at the end, also when a signal says so.
 */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>
#include <stdio.h>
#include <termios.h>

#include "base/text.h"
#include "cli/kit/signals.h"

struct screen {
	struct termios before;
	struct signals signals;
	void *arg;
	void (*key)(void *arg, char byte); /* what is pasted stands between ESC [ 200 ~ and 201 ~ */
	void (*redraw)(void *arg);         /* the screen is empty */
	void (*round)(void *arg);          /* waits once, and does what there is to do */
	bool leave;                        /* set by any of them: this is the last round */
	int status;                        /* how to exit then */
};

/* Round after round, until `leave`. The callbacks are the caller's to set. A frame is written at once:
 * flush it. Returns `status`, or EX_USAGE where stdin and stdout are not both a terminal; nothing is
 * said then. */
int screen_run(struct screen *s);

/* Gives the terminal back at once, so that something can be said, and leaves with that status. */
void screen_fail(struct screen *s, int status);

/* Waits for a key, a signal, what the client waits for (NULL: nothing), or so many milliseconds;
 * and lets the callbacks act on it. Ctrl-C, or a terminal that is gone, sets `leave`. */
void screen_wait(struct screen *s, const struct koine_client *c, int ms);

/* Drops the keys that wait: they were meant for something else. */
void screen_forget_keys(void);

/* As it is now; it may change at any time. */
void screen_size(unsigned *ret_columns, unsigned *ret_rows);

/* ---- a row of it ---- */

struct screen_row {
	unsigned room;                                             /* columns left */
	size_t (*print)(FILE *out, struct text t, size_t columns); /* print_fitting, or exact */
};

void screen_begin_row(void);
void screen_end_row(void);

/* In so many columns, and a space behind. */
void screen_put(struct screen_row *r, struct text t, unsigned width);
