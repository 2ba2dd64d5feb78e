#include <stdio.h>

#include "cli/kit/print.h"
#include "cli/screen/terminal.h"

static unsigned next_row; /* the first that this frame has not written */
static unsigned n_rows;

static bool enter(void)
{
	static char frame[64 << 10];

	/* A frame written in pieces would flicker. */
	setvbuf(stdout, frame, _IOFBF, sizeof(frame));
	/* The alternate screen, without a cursor, without line wrapping, and with pasted text
	 * marked as such. */
	fputs("\033[?1049h\033[?25l\033[?7l\033[?2004h\033[2J", stdout);
	fflush(stdout);
	return true;
}

static void leave(void)
{
	fputs("\033[?2004l\033[?7h\033[?25h\033[?1049l", stdout);
	fflush(stdout);
}

static void forget(void)
{
	fputs("\033[2J", stdout);
}

static void screen_terminal_plain_begin(unsigned columns, unsigned rows)
{
	next_row = 0;
	n_rows = rows;
	fputs("\033[?25l", stdout);
}

/* Clear the row first: after a full row the cursor would still be on its last character. */
static void row(unsigned row)
{
	for (; next_row <= row; next_row++)
		printf("\033[%u;1H\033[0m\033[K", next_row + 1);
}

static void style(unsigned style)
{
	fputs("\033[0m", stdout);
	fputs(style & STYLE_BOLD ? "\033[1m" : "", stdout);
	fputs(style & STYLE_REVERSE ? "\033[7m" : "", stdout);
	fputs(color_begin((enum color)STYLE_COLOR_OF(style)), stdout);
}

static void screen_terminal_plain_put(const struct glyph *g)
{
	fwrite(g->shown, 1, g->len, stdout);
}

static void screen_terminal_plain_end(bool cursor)
{
	fputs("\033[0m", stdout);
	/* The cursor moves to clear what is below, and nothing is while it has to stay. */
	if (cursor)
		fputs("\033[?25h", stdout);
	else if (next_row < n_rows)
		printf("\033[%u;1H\033[J", next_row + 1);
	fflush(stdout);
}

const struct terminal terminal_plain = {
	.enter = enter,
	.leave = leave,
	.forget = forget,
	.begin = screen_terminal_plain_begin,
	.row = row,
	.style = style,
	.put = screen_terminal_plain_put,
	.end = screen_terminal_plain_end,
};
