/*
 * The whole terminal for a while: another screen, keys without Enter, and everything back as it
 * was at the end, also when a signal says so.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

struct screen {
	struct termios before;
	struct sigaction actions[6];
	sigset_t mask;
};

/* 0, or -errno: stdin and stdout are not both a terminal. */
int screen_begin(struct screen *s);
void screen_end(struct screen *s);

/* What was typed and not taken yet was meant for something else. */
void screen_forget_keys(void);

/* As it is now; it may change at any time. */
void screen_size(unsigned *ret_columns, unsigned *ret_rows);

enum screen_event {
	SCREEN_IDLE,    /* the time is over, or the descriptor is ready */
	SCREEN_KEY,     /* *ret_key; what is pasted stands between ESC [ 200 ~ and ESC [ 201 ~ */
	SCREEN_RESIZED, /* or shown again: all is to be drawn */
	SCREEN_LEAVE,   /* Ctrl-C, or the terminal is gone */
};

/* Waits for a key, a signal, `events` on fd (-1: none), or so many milliseconds. */
enum screen_event screen_wait(struct screen *s, int fd, short events, int ms, char *ret_key);
