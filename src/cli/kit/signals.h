/* Signals that are heard only while we wait, so that none comes between a look and the wait. */
#pragma once

#include <poll.h>
#include <signal.h>
#include <stddef.h>

enum { SIGNALS_MAX = 8 };

struct signals {
	const int *numbers;
	size_t n;
	struct sigaction before[SIGNALS_MAX];
	sigset_t mask; /* as it was, and as it is while we wait */
};

/* The caller keeps `numbers`. */
void signals_catch(struct signals *s, const int *numbers, size_t n, void (*handler)(int number));
void signals_restore(const struct signals *s);

/* As poll(2): waits for one of these, a signal, or (unless negative) so many milliseconds. */
int signals_poll(const struct signals *s, struct pollfd *p, nfds_t n, int ms);

/* Catches Ctrl-C alone, and counts it from 0. */
void signals_catch_interrupt(struct signals *s);
int signals_interrupts(void);
