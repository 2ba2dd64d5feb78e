#include "cli/screen/screen.h"

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

static void take_keys(const struct screen *s)
{
	struct termios raw = s->before;

	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static void enter(struct screen *s)
{
	take_keys(s);
	if (s->terminal && s->terminal->enter())
		return;
	s->terminal = &terminal_plain;
	s->terminal->enter();
}

static void leave(const struct screen *s)
{
	s->terminal->leave();
	tcsetattr(STDIN_FILENO, TCSADRAIN, &s->before);
}

static void end(struct screen *s)
{
	leave(s);
	signals_restore(&s->signals);
}

int screen_run(struct screen *s)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) ||
	    tcgetattr(STDIN_FILENO, &s->before) != 0)
		return EX_USAGE;
	wants_leave = wants_stop = has_changed = 0;
	signals_catch(&s->signals, numbers, sizeof(numbers) / sizeof(numbers[0]), on_signal);
	s->terminal = terminal_curses;
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
	if (*ret_columns > TERMINAL_COLUMNS_MAX)
		*ret_columns = TERMINAL_COLUMNS_MAX;
	if (*ret_rows > TERMINAL_ROWS_MAX)
		*ret_rows = TERMINAL_ROWS_MAX;
}

/* Ctrl-Z: the shell gets its own screen back until we continue. */
static void stop(struct screen *s)
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
	s->terminal->forget();
	s->redraw(s->arg);
}

void screen_draw(struct screen *s, void (*draw)(void *arg, struct canvas *c), void *arg)
{
	struct canvas c = {.terminal = s->terminal, .color = s->color, .read = glyph_read_exact};

	screen_size(&c.columns, &c.rows);
	s->terminal->begin(c.columns, c.rows);
	draw(arg, &c);
	s->terminal->end(c.cursor);
}
