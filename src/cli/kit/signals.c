#include "cli/kit/signals.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* ---- what goes on after Ctrl-C ---- */

enum { FAREWELL_MAX = 512 };

/* The handler may come at any time: it reads a text that is complete. */
static char farewells[2][FAREWELL_MAX];
static volatile sig_atomic_t farewell;

static void on_farewell(int number)
{
	const char *text = farewells[farewell];
	ssize_t n = write(STDERR_FILENO, text, strlen(text));

	(void)n;
	signal(number, SIG_DFL);
	raise(number);
}

void signals_say_on_interrupt(const char *format, ...)
{
	struct sigaction now;
	int next = !farewell;
	va_list args;

	/* What nohup ignores stays ignored. */
	if (sigaction(SIGINT, NULL, &now) != 0 || now.sa_handler == SIG_IGN)
		return;
	va_start(args, format);
	vsnprintf(farewells[next], FAREWELL_MAX, format, args);
	va_end(args);
	farewell = next;
	now = (struct sigaction) {.sa_handler = on_farewell};
	sigaction(SIGINT, &now, NULL);
}
