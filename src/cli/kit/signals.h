/* Signals that are delivered only while we wait, so that none is lost between a check and the
 * wait. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stddef.h>

enum { SIGNALS_MAX = 8 };

struct signals {
	const int *numbers;
	size_t n;
	struct sigaction before[SIGNALS_MAX];
	sigset_t mask; /* the original one, and the one while we wait */
};

/* The caller keeps `numbers`. */
void signals_catch(struct signals *s, const int *numbers, size_t n, void (*handler)(int number));
void signals_restore(const struct signals *s);

/* Like poll(2): waits for one of these, a signal, or (unless negative) so many milliseconds. */
int signals_poll(const struct signals *s, struct pollfd *p, nfds_t n, int ms);

/* Catches only Ctrl-C, and starts counting it from 0. */
void signals_catch_interrupt(struct signals *s);
int signals_interrupts(void);

/* What Ctrl-C prints before it ends the command: what goes on. The last call counts. */
__attribute__((format(printf, 1, 2))) void signals_say_on_interrupt(const char *format, ...);
