#include "cli/kit/screen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* Blocked but while we wait, so that none comes between a look and a wait. */
static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};

enum { N_SIGNALS = sizeof(signals) / sizeof(signals[0]) };

_Static_assert(N_SIGNALS == sizeof(((struct screen *)0)->actions) / sizeof(struct sigaction),
	       "room for what each did before");

static volatile sig_atomic_t wants_leave;
static volatile sig_atomic_t wants_stop;
static volatile sig_atomic_t has_changed;

static void on_signal(int number)
{
	if (number == SIGWINCH || number == SIGCONT)
		has_changed = 1;
	else if (number == SIGTSTP)
		wants_stop = 1;
	else
		wants_leave = 1;
}

static void enter(const struct screen *s)
{
	struct termios raw = s->before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	/* The other screen, without a cursor, no line broken, and what is pasted marked as such. */
	fputs("\033[?1049h\033[?25l\033[?7l\033[?2004h\033[2J", stdout);
	fflush(stdout);
}

static void leave(const struct screen *s)
{
	fputs("\033[?2004l\033[?7h\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

int screen_begin(struct screen *s)
{
	struct sigaction ours = {.sa_handler = on_signal};
	sigset_t set;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return -ENOTTY;
	if (tcgetattr(STDIN_FILENO, &s->before) != 0)
		return -errno;
	sigemptyset(&set);
	for (int i = 0; i < N_SIGNALS; i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &s->mask);
	for (int i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &ours, &s->actions[i]);
	wants_leave = wants_stop = has_changed = 0;
	enter(s);
	return 0;
}

void screen_end(struct screen *s)
{
	leave(s);
	for (int i = 0; i < N_SIGNALS; i++)
		sigaction(signals[i], &s->actions[i], NULL);
	sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

void screen_forget_keys(void)
{
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
}

void screen_size(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size = {0};

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col > 0 ? size.ws_col : 80;
	*ret_rows = size.ws_row > 0 ? size.ws_row : 24;
}

/* Ctrl-Z: the shell gets its own screen back until we go on. */
static void stop(const struct screen *s)
{
	leave(s);
	raise(SIGSTOP);
	enter(s);
}

static enum screen_event take_key(char *ret_key)
{
	ssize_t n = read(STDIN_FILENO, ret_key, 1);

	if (n == 1)
		return SCREEN_KEY;
	return n < 0 && errno == EINTR ? SCREEN_IDLE : SCREEN_LEAVE;
}

enum screen_event screen_wait(struct screen *s, int fd, short events, int ms, char *ret_key)
{
	struct pollfd p[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = fd, .events = events},
	};
	struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
	int n = ppoll(p, 2, ms < 0 ? NULL : &limit, &s->mask);

	if (wants_leave)
		return SCREEN_LEAVE;
	if (wants_stop) {
		wants_stop = 0;
		stop(s);
		return SCREEN_RESIZED;
	}
	if (has_changed) {
		has_changed = 0;
		return SCREEN_RESIZED;
	}
	return n > 0 && p[0].revents ? take_key(ret_key) : SCREEN_IDLE;
}
