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
};

/* The callbacks are the caller's to set. A frame is written at once from here on: flush it.
 * 0, or -errno: stdin and stdout are not both a terminal. */
int screen_begin(struct screen *s);
void screen_end(struct screen *s);

/* Waits for a key, a signal, what the client waits for (NULL: nothing), or so many milliseconds;
 * and lets the callbacks act on it. False: it is time to leave, for Ctrl-C or a terminal that is
 * gone. */
bool screen_wait(struct screen *s, const struct koine_client *c, int ms);

/* What was typed and not taken yet was meant for something else. */
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
