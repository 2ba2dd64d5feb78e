/*
 * ncurses, for what is shown; it reads no keys. They are ours, since pasted text must never act as
 * keys (cli/screen/live.h), and one poll waits for them and for koined.
 *
 * ncurses moves the cursor by the widths that libc knows. Terminals have other tables: a row in
 * which the two may differ is written whole, whenever it or what stood there before is shown.
 */
#include "cli/screen/terminal.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

static SCREEN *screen;
static bool is_away; /* left, and not entered again */
static bool unsure[TERMINAL_ROWS_MAX];
static bool was_unsure[TERMINAL_ROWS_MAX];
static attr_t attributes;
static short pair;
/* where the next glyph is put */
static int at_row;
static int at_column;
/* what was put last, and where */
static wchar_t last[CCHARW_MAX + 1];
static int last_column;

/* ---- the terminal ---- */

/* What the terminal's entry has under that name; NULL: nothing. */
static const char *ability(const char *name)
{
	const char *sequence = tigetstr((char *)name);

	return sequence && sequence != (const char *)-1 ? sequence : NULL;
}

static void send(const char *name)
{
	const char *sequence = ability(name);

	if (sequence)
		putp(sequence);
}

/* All of our text is UTF-8, whatever the user's locale is. */
static bool speak_utf8(void)
{
	static const char *const locales[] = {"", "C.UTF-8"};

	for (unsigned i = 0; i < sizeof(locales) / sizeof(locales[0]); i++) {
		if (setlocale(LC_CTYPE, locales[i]) && strcmp(nl_langinfo(CODESET), "UTF-8") == 0)
			return true;
	}
	return false;
}

/* In the order of enum color; grey is drawn faint. */
static const short colors[] = {-1, COLOR_RED, COLOR_GREEN, COLOR_YELLOW, COLOR_CYAN, -1};
enum { N_COLORS = sizeof(colors) / sizeof(colors[0]), GREY = N_COLORS - 1 };

static void start_colors(void)
{
	if (!has_colors() || start_color() != OK)
		return;
	use_default_colors();
	for (int i = 1; i < N_COLORS; i++)
		init_pair((short)i, colors[i], -1);
}

/* No terminal is confused by it. */
static void mark_pasted(bool on)
{
	putp(on ? "\033[?2004h" : "\033[?2004l");
}

/* Asked first, since newterm loses memory when it is not. */
static bool is_known(void)
{
	int ignored;

	if (setupterm(NULL, fileno(stdout), &ignored) != OK)
		return false;
	del_curterm(cur_term);
	return true;
}

static bool enter(void)
{
	if (is_away) {
		is_away = false;
		clearok(curscr, TRUE);
		mark_pasted(true);
		return true;
	}
	if (!speak_utf8() || !is_known())
		return false;
	screen = newterm(NULL, stdout, stdin);
	if (!screen)
		return false;
	/* A terminal that is known, but cannot do what is needed. */
	if (!ability("cup")) {
		endwin();
		delscreen(screen);
		return false;
	}
	start_colors();
	mark_pasted(true);
	return true;
}

static void leave(void)
{
	mark_pasted(false);
	curs_set(1);
	send("smam");
	endwin();
	fflush(stdout);
	is_away = true;
}

static void forget(void)
{
	clearok(curscr, TRUE);
}

/* ---- a frame ---- */

/* <term.h> has taken the words "columns" and "lines". */
static void screen_terminal_curses_begin(unsigned width, unsigned height)
{
	if (is_term_resized((int)height, (int)width))
		resize_term((int)height, (int)width);
	memcpy(was_unsure, unsure, sizeof(unsure));
	memset(unsure, 0, sizeof(unsure));
	erase();
}

static void style(unsigned style)
{
	unsigned color = STYLE_COLOR_OF(style);

	attributes = (style & STYLE_BOLD ? A_BOLD : 0) | (style & STYLE_REVERSE ? A_REVERSE : 0) |
		     (color == GREY ? A_DIM : 0);
	pair = (short)(color < N_COLORS && has_colors() ? color : 0);
}

static void row(unsigned row)
{
	at_row = (int)row;
	at_column = 0;
	last[0] = 0;
	style(STYLE_PLAIN);
}

/* Puts the last character again, or a new one. */
static void put_cell(int column)
{
	cchar_t cell;

	if (setcchar(&cell, last, attributes, pair, NULL) == OK)
		mvadd_wch(at_row, column, &cell);
}

/* A mark goes to the character before it. A cell holds few of them, and in a row's first column
 * there is no character: the mark gets a circle to stand on. */
static void put_mark(wchar_t c)
{
	size_t n = wcslen(last);

	unsure[at_row] = true;
	if (n == 0 || n == CCHARW_MAX) {
		if (at_column >= COLS)
			return;
		last[0] = 0x25cc;
		last_column = at_column++;
		n = 1;
	}
	last[n] = c;
	last[n + 1] = 0;
	put_cell(last_column);
}

static void put_character(wchar_t c)
{
	int width = wcwidth(c);

	if (width == 0) {
		put_mark(c);
		return;
	}
	/* libc does not know it; that there is something must be seen. */
	last[0] = width < 0 ? 0xfffd : c;
	last[1] = 0;
	width = width < 0 ? 1 : width;
	if (at_column + width > COLS)
		return;
	last_column = at_column;
	put_cell(at_column);
	at_column += width;
}

static void screen_terminal_curses_put(const struct glyph *g)
{
	const char *at = g->shown;
	size_t left = g->len;
	int before = at_column;

	if (at_row >= LINES)
		return;
	while (left > 0) {
		mbstate_t state = {0};
		wchar_t c;
		size_t n = mbrtowc(&c, at, left, &state);

		if (n == 0 || n > left)
			break;
		put_character(c);
		at += n;
		left -= n;
	}
	if (at_column - before != (int)g->width)
		unsure[at_row] = true;
}

static void screen_terminal_curses_end(bool cursor)
{
	for (int i = 0; i < LINES && i < TERMINAL_ROWS_MAX; i++) {
		if (!unsure[i] && !was_unsure[i])
			continue;
		/* What is wider than we think must not continue in the next row. */
		send("rmam");
		wredrawln(stdscr, i, 1);
	}
	curs_set(cursor);
	move(at_row, at_column < COLS ? at_column : COLS - 1);
	refresh();
}

static const struct terminal curses = {
	.enter = enter,
	.leave = leave,
	.forget = forget,
	.begin = screen_terminal_curses_begin,
	.row = row,
	.style = style,
	.put = screen_terminal_curses_put,
	.end = screen_terminal_curses_end,
};

const struct terminal *const terminal_curses = &curses;
