#include "cli/kit/signals.h"

#include <time.h>

void signals_catch(struct signals *s, const int *numbers, size_t n, void (*handler)(int number))
{
	struct sigaction ours = {.sa_handler = handler};
	sigset_t set;

	s->numbers = numbers;
	s->n = n;
	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, &s->mask);
	for (size_t i = 0; i < n; i++)
		sigaction(numbers[i], &ours, &s->before[i]);
}

void signals_restore(const struct signals *s)
{
	for (size_t i = 0; i < s->n; i++)
		sigaction(s->numbers[i], &s->before[i], NULL);
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

int signals_poll(const struct signals *s, struct pollfd *p, nfds_t n, int ms)
{
	const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	return ppoll(p, n, ms < 0 ? NULL : &limit, &s->mask);
}

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupts;

static void on_interrupt(int number)
{
	interrupts++;
}

void signals_catch_interrupt(struct signals *s)
{
	static const int numbers[] = {SIGINT};

	interrupts = 0;
	signals_catch(s, numbers, 1, on_interrupt);
}

int signals_interrupts(void)
{
	return interrupts;
}
