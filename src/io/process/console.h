/*
 * The other end of a running program's three streams: what it prints, as it comes, and what it
 * is to read, now and later. Pipes, or a terminal of its own.
 *
 * Writing to a program that has closed its input raises SIGPIPE where that is not ignored;
 * koined ignores it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "io/loop.h"

struct console;

enum {
	CONSOLE_QUEUE_MAX = 1 << 20, /* bytes that the program has not read yet */
	CONSOLE_ROWS = 24,
	CONSOLE_COLUMNS = 80,
};

struct console_opts {
	bool terminal;
	/* Both outputs, in the order they were printed. Must not free the console. */
	void (*on_output)(void *arg, const char *data, size_t len);
	/* Nobody can print any more: everything was delivered. Once; never before
	 * console_started has returned. */
	void (*on_end)(void *arg);
	void *arg;
};

int console_new(struct loop *l, const struct console_opts *opts, struct console **ret_console);

/* The program's 0, 1 and 2, until console_started. */
const int *console_streams(const struct console *c);

/* The program has them now. Without this call nobody would see their end. */
void console_started(struct console *c);

/* -ENOBUFS: the program reads too slowly, nothing was taken. -EPIPE: it does not read any more,
 * or its input was ended. */
int console_write(struct console *c, const char *data, size_t len);

/* The program reads what was written, and then an end of file. */
int console_end_input(struct console *c);

/* When the program has ended: delivers what it has printed so far. A terminal's last bytes may
 * still be on their way in the kernel: wait for on_end, though not for ever, since others may
 * have it open. True: on_end has come. */
bool console_drain(struct console *c);

void console_free(struct console *c); /* accepts NULL */
