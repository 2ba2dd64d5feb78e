#include "cli/kit/screen.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sysexits.h>
#include <unistd.h>

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT};

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
	/* The alternate screen, without a cursor, without line wrapping, and with pasted text
	 * marked as such. */
	fputs("\033[?1049h\033[?25l\033[?7l\033[?2004h\033[2J", stdout);
	fflush(stdout);
}

static void leave(const struct screen *s)
{
	fputs("\033[?2004l\033[?7h\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

static void end(struct screen *s)
{
	leave(s);
	signals_restore(&s->signals);
}

int screen_run(struct screen *s)
{
	static char frame[64 << 10];

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &s->before) != 0)
		return EX_USAGE;
	wants_leave = wants_stop = has_changed = 0;
	signals_catch(&s->signals, numbers, sizeof(numbers) / sizeof(numbers[0]), on_signal);
	/* A frame written in pieces would flicker. */
	setvbuf(stdout, frame, _IOFBF, sizeof(frame));
	enter(s);
	while (!s->leave)
		s->round(s->arg);
	if (s->status == 0)
		end(s);
	return s->status;
}

void screen_fail(struct screen *s, int status)
{
	end(s);
	s->leave = true;
	s->status = status;
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

/* Ctrl-Z: the shell gets its own screen back until we continue. */
static void stop(const struct screen *s)
{
	leave(s);
	raise(SIGSTOP);
	enter(s);
}

static void take_key(struct screen *s)
{
	char byte;
	ssize_t n = read(STDIN_FILENO, &byte, 1);

	if (n == 1)
		s->key(s->arg, byte);
	else if (n == 0 || errno != EINTR)
		s->leave = true;
}

static int shorter(int a, int b)
{
	return a >= 0 && a < b ? a : b;
}

void screen_wait(struct screen *s, const struct koine_client *c, int ms)
{
	struct pollfd p[] = {
		{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = c ? koine_client_fd(c) : -1, .events = c ? koine_client_events(c) : 0},
	};
	int n = signals_poll(&s->signals, p, 2, c ? shorter(koine_client_timeout_ms(c), ms) : ms);

	if (wants_leave) {
		s->leave = true;
		return;
	}
	if (!wants_stop && !has_changed) {
		if (n > 0 && p[0].revents)
			take_key(s);
		return;
	}
	if (wants_stop)
		stop(s);
	else
		has_changed = 0;
	wants_stop = 0;
	fputs("\033[2J", stdout);
	s->redraw(s->arg);
}

/* ---- a row of it ---- */

/* Clear the row first: after a full row the cursor would still be on its last character. */
void screen_begin_row(void)
{
	fputs("\033[0m\033[K", stdout);
}

void screen_end_row(void)
{
	fputs("\033[0m\n", stdout);
}

void screen_put(struct screen_row *r, struct text t, unsigned width)
{
	unsigned most = width < r->room ? width : r->room;
	size_t used;

	if (most == 0)
		return;
	used = r->print(stdout, t, most);
	r->room -= most;
	for (; used < most; used++)
		fputc(' ', stdout);
	if (r->room > 0) {
		fputc(' ', stdout);
		r->room--;
	}
}
