#include "cli/kit/glyph.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/utf8.h"
#include "cli/kit/width_table.h"

#define COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

static unsigned width_of(uint32_t c)
{
	if (c < 0xa0)
		return 1;
	/* It requests the wide form of the preceding character, which was counted as one column. */
	if (c == 0xfe0f)
		return 1;
	if (ranges_have(no_column, COUNT(no_column), c))
		return 0;
	return ranges_have(two_columns, COUNT(two_columns), c) ? 2 : 1;
}

static uint32_t decode(const unsigned char *p, size_t n)
{
	uint32_t c = n == 1 ? p[0] : p[0] & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

static bool is_space(uint32_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x2028 || c == 0x2029;
}

/* Embeddings, overrides and isolates could make a line read as another; tags are letters that
 * only machines read. */
static bool turns_text(uint32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	       (c >= 0xe0000 && c < 0xe0080);
}

/* ---- one character ---- */

/* Returns whether it is a character at all. */
static bool kit_glyph_take(struct glyph *g, const char *at, const char *end)
{
	size_t n = (unsigned char)at[0] < 0x80 ? 1 : utf8_sequence(at, end);

	g->used = n == 0 ? 1 : (unsigned)n;
	g->c = decode((const unsigned char *)at, g->used);
	return n > 0;
}

static void show_as(struct glyph *g, const char *text, size_t len, unsigned width)
{
	memcpy(g->shown, text, len);
	g->len = (unsigned)len;
	g->width = width;
}

static void escape(struct glyph *g, bool broken)
{
	const char *form = broken || g->c < 0xa0 ? "\\x%02x"
			   : g->c < 0x10000      ? "\\u%04x"
						 : "\\u{%x}";

	g->len = g->width = (unsigned)snprintf(g->shown, sizeof(g->shown), form, g->c);
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

void glyph_read(struct glyph *g, const char *at, const char *end)
{
	bool whole = kit_glyph_take(g, at, end);

	if (whole && is_space(g->c))
		show_as(g, " ", 1, 1);
	else if (!whole || is_control(g->c) || turns_text(g->c))
		escape(g, !whole);
	else
		show_as(g, at, g->used, width_of(g->c));
}

/* The most columns that any terminal gives it: two for some, and one for combining characters. */
static unsigned most_width_of(uint32_t c)
{
	unsigned width = width_of(c);

	return width == 0 ? 1 : ranges_have(maybe_two, COUNT(maybe_two), c) ? 2 : width;
}

void glyph_read_exact(struct glyph *g, const char *at, const char *end)
{
	static const char line_end[] = "⏎";
	bool whole = kit_glyph_take(g, at, end);

	if (whole && (g->c == ' ' || g->c == '\t'))
		show_as(g, " ", 1, 1);
	else if (whole && g->c == '\n')
		show_as(g, line_end, sizeof(line_end) - 1, 1);
	else if (!whole || char_is_invisible(g->c))
		escape(g, !whole);
	else
		show_as(g, at, g->used, most_width_of(g->c));
}

void text_add_exact(struct buf *out, struct text t)
{
	struct glyph g;

	for (size_t i = 0; i < t.len; i += g.used) {
		glyph_read_exact(&g, t.data + i, t.data + t.len);
		buf_add(out, g.shown, g.len);
	}
}

void print_exact(FILE *out, struct text t)
{
	struct glyph g;

	for (size_t i = 0; i < t.len; i += g.used) {
		glyph_read_exact(&g, t.data + i, t.data + t.len);
		fwrite(g.shown, 1, g.len, out);
	}
}

/* ---- texts ---- */

size_t text_columns_by(struct text t, glyph_fn read)
{
	struct glyph g;
	size_t columns = 0;

	for (size_t i = 0; i < t.len; i += g.used) {
		read(&g, t.data + i, t.data + t.len);
		columns += g.width;
	}
	return columns;
}

size_t text_columns(struct text t)
{
	return text_columns_by(t, glyph_read);
}

unsigned terminal_columns(void)
{
	const char *columns = getenv("COLUMNS");
	long n = columns ? strtol(columns, NULL, 10) : 0;
	struct winsize size;

	if (n <= 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		n = size.ws_col;
	return n > 0 && n <= 10000 ? (unsigned)n : 80;
}

/* Prints the bytes from `from` to `to`, the marked ones bold. */
static void print_part(FILE *out, const char *text, size_t from, size_t to, const char *marks,
		       glyph_fn read)
{
	bool bold = false;
	struct glyph g;

	for (size_t i = from; i < to; i += g.used) {
		read(&g, text + i, text + to);
		if (marks && bold != (marks[i] != 0)) {
			bold = !bold;
			fputs(bold ? "\033[1m" : "\033[0m", out);
		}
		fwrite(g.shown, 1, g.len, out);
	}
	if (bold)
		fputs("\033[0m", out);
}

/* The byte after the last glyph that fits. */
static size_t fitting(const char *text, size_t from, size_t len, size_t columns, glyph_fn read)
{
	struct glyph g;
	size_t used = 0;
	size_t i = from;

	for (; i < len; i += g.used) {
		read(&g, text + i, text + len);
		used += g.width;
		if (used > columns)
			break;
	}
	return i;
}

size_t text_fitting_by(struct text t, size_t columns, glyph_fn read)
{
	return fitting(t.data, 0, t.len, columns, read);
}

size_t text_fitting(struct text t, size_t columns)
{
	return text_fitting_by(t, columns, glyph_read);
}

static size_t kit_glyph_print_line(FILE *out, struct text t, const char *marks, size_t columns,
				   glyph_fn read)
{
	size_t end = text_fitting_by(t, columns, read);
	bool whole = end == t.len;

	if (!whole)
		t.len = text_fitting_by(t, columns > 0 ? columns - 1 : 0, read);
	print_part(out, t.data, 0, t.len, marks, read);
	if (!whole && columns > 0)
		fputs("…", out);
	return text_columns_by(t, read) + (!whole && columns > 0);
}

size_t print_fitting(FILE *out, struct text t, size_t columns)
{
	return kit_glyph_print_line(out, t, NULL, columns, glyph_read);
}

size_t print_fitting_exact(FILE *out, struct text t, size_t columns)
{
	return kit_glyph_print_line(out, t, NULL, columns, glyph_read_exact);
}

/* Where a line of the text that starts at `from` ends: at its newline, before the last word or
 * wide character that does not fit, or, within a word longer than a line, anywhere. *ret_next is
 * where the next one starts. */
static size_t line_end(const char *text, size_t from, size_t len, size_t columns, size_t *ret_next)
{
	size_t end = fitting(text, from, len, columns, glyph_read);
	const char *newline = memchr(text + from, '\n', end < len ? end + 1 - from : len - from);
	size_t last = 0;
	struct glyph g;

	if (newline || end == len) {
		end = newline ? (size_t)(newline - text) : len;
		*ret_next = end + (newline != NULL);
		return end;
	}
	for (size_t i = from; i <= end; i += g.used) {
		glyph_read(&g, text + i, text + len);
		if (i > from && (is_space(g.c) || g.width == 2))
			last = i;
	}
	if (last == 0) {
		/* A wide character in a single column must go somewhere. */
		glyph_read(&g, text + from, text + len);
		*ret_next = end > from ? end : from + g.used;
		return *ret_next;
	}
	*ret_next = last + (text[last] == ' ' || text[last] == '\t');
	return last;
}

void print_wrapped(FILE *out, struct text t, const char *marks, size_t columns, unsigned indent,
		   unsigned lines)
{
	size_t at = 0;
	unsigned n = 0;

	do {
		size_t next = t.len;
		size_t end = t.len > 0 ? line_end(t.data, at, t.len, columns, &next) : 0;

		if (n > 0)
			fprintf(out, "%*s", (int)indent, "");
		n++;
		if (lines > 0 && n == lines && next < t.len) {
			kit_glyph_print_line(out,
					     (struct text) {.data = t.data + at, .len = t.len - at},
					     marks ? marks + at : NULL, columns, glyph_read);
			next = t.len;
		} else {
			print_part(out, t.data, at, end, marks, glyph_read);
		}
		fputc('\n', out);
		at = next;
	} while (at < t.len);
}
