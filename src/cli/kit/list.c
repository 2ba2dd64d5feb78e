#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/value.h"

enum { COLUMNS_MAX = 16, TABLE_BYTES_MAX = 64 << 20, COLUMN_MIN = 4, LAST_COLUMN_MIN = 8 };

struct cli_table {
	const char *align; /* one letter for each column */
	struct buf text;   /* the cells, each NUL-terminated */
	struct buf below;  /* struct below, in the order of their rows */
	size_t widths[COLUMNS_MAX];
	size_t n_cells;
	/* Columns of the terminal; 0: no limit. The last one, and if that is not enough those marked 'n',
		* are narrowed. */
	size_t fit;
	bool wraps; /* what does not fit into the last column continues below it; otherwise it is cut */
};

/* Lines that are printed below a row. */
struct below {
	size_t n_cells; /* up to the row's end */
	struct text lines;
	int64_t n_lost; /* bytes before them that were not kept */
};

struct cli_table *table_new(const char *align)
{
	struct cli_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->align = align;
	buf_init(&t->text, TABLE_BYTES_MAX);
	buf_init(&t->below, TABLE_BYTES_MAX);
	return t;
}

void table_freep(struct cli_table **t)
{
	if (!*t)
		return;
	buf_done(&(*t)->text);
	buf_done(&(*t)->below);
	free(*t);
}

/* A cell is one line, and must not steer the terminal. A byte before its text gives its colour:
 * by then the text has no control characters. */
void table_cell_color(struct cli_table *t, struct text text, enum color color)
{
	size_t column = t->n_cells++ % strlen(t->align);
	size_t width = 0;
	struct glyph g;

	if (color != COLOR_NONE)
		buf_add_char(&t->text, (char)color);
	for (size_t i = 0; i < text.len; i += g.used) {
		glyph_read(&g, text.data + i, text.data + text.len);
		buf_add(&t->text, g.shown, g.len);
		width += g.width;
	}
	buf_add_char(&t->text, '\0');
	if (width > t->widths[column])
		t->widths[column] = width;
}

void table_cell(struct cli_table *t, struct text text)
{
	table_cell_color(t, text, COLOR_NONE);
}

void table_cell_str(struct cli_table *t, const char *text)
{
	table_cell(t, text_of(text));
}

static struct text shown_value(const struct koine_value *v)
{
	return koine_value_kind(v) == KOINE_NULL ? TEXT("-") : text_of_any(v);
}

void table_cell_value(struct cli_table *t, const struct koine_value *v)
{
	table_cell(t, shown_value(v));
}

/* Lines to print below the row that was begun last, and how many bytes before them were not kept; the text
 * must live as long as the table. */
static void table_below(struct cli_table *t, struct text lines, int64_t n_lost)
{
	const struct below b = {.n_cells = t->n_cells, .lines = lines, .n_lost = n_lost};

	if (lines.len > 0)
		buf_add(&t->below, &b, sizeof(b));
}

static void pad(FILE *out, size_t n)
{
	while (n-- > 0)
		fputc(' ', out);
}

/* The width of everything before the last column. */
static size_t columns_used(const struct cli_table *t)
{
	size_t last = strlen(t->align) - 1;
	size_t used = 2 * last;

	for (size_t i = 0; i < last; i++)
		used += t->widths[i];
	return used;
}

/* Narrows the widest column that may be narrowed, until the last column has some room. */
static void narrow(struct cli_table *t)
{
	while (t->fit > 0 && columns_used(t) + LAST_COLUMN_MIN > t->fit) {
		size_t *widest = NULL;

		for (size_t i = 0; t->align[i + 1]; i++) {
			if (t->align[i] == 'n' && (!widest || t->widths[i] > *widest))
				widest = &t->widths[i];
		}
		if (!widest || *widest <= COLUMN_MIN)
			return;
		--*widest;
	}
}

/* What the other columns leave for the last one; always a little. */
static size_t room_for_last(const struct cli_table *t)
{
	size_t used = columns_used(t);

	if (t->fit == 0)
		return SIZE_MAX;
	return t->fit > used + LAST_COLUMN_MIN ? t->fit - used : LAST_COLUMN_MIN;
}

static void print_cell(const struct cli_table *t, FILE *out, const char *cell, size_t column)
{
	bool is_last = t->align[column + 1] == '\0';
	struct text text = text_of(cell);
	size_t width = text_columns(text);
	size_t room = is_last ? room_for_last(t) : t->widths[column];
	size_t spare = width < t->widths[column] ? t->widths[column] - width : 0;

	if (is_last && t->wraps) {
		print_wrapped(out, text, NULL, room, (unsigned)columns_used(t), 0);
		return;
	}
	if (t->align[column] == 'r')
		pad(out, spare);
	width = print_fitting(out, text, room);
	if (t->align[column] != 'r' && !is_last)
		pad(out, t->widths[column] - width);
}

/* Takes the colour byte off the cell. */
static enum color take_color(const char **cell)
{
	unsigned char first = (unsigned char)**cell;

	if (first == 0 || first > COLOR_GREY)
		return COLOR_NONE;
	++*cell;
	return (enum color)first;
}

static void print_below(FILE *out, struct text *below, size_t n_cells)
{
	struct below b;

	if (below->len == 0)
		return;
	memcpy(&b, below->data, sizeof(b));
	if (b.n_cells != n_cells)
		return;
	if (b.n_lost > 0) {
		fputs("    (", out);
		print_count(out, b.n_lost);
		fputs(" earlier bytes are not stored)\n", out);
	}
	print_lines(out, "    ", b.lines);
	below->data += sizeof(b);
	below->len -= sizeof(b);
}

int table_print(struct cli_table *t, FILE *out, bool color)
{
	const char *cell = t->text.data;
	struct text below = buf_text(&t->below);
	size_t column = 0;

	if (t->text.err != 0 || t->below.err != 0)
		return out_of_memory();
	narrow(t);
	for (size_t i = 0; i < t->n_cells; i++, cell += strlen(cell) + 1) {
		enum color own = take_color(&cell);
		const char *begin = i == column ? "\033[1m" : color_begin(own);
		bool is_last = t->align[column + 1] == '\0';

		fputs(color ? begin : "", out);
		print_cell(t, out, cell, column);
		fputs(color && begin[0] ? "\033[0m" : "", out);
		if (!is_last || !t->wraps)
			fputs(is_last ? "\n" : "  ", out);
		column = is_last ? 0 : column + 1;
		print_below(out, &below, i + 1);
	}
	return 0;
}

enum { ANY_ROOM = 1000 };

/* The terminal's columns; for a pipe, more than any list needs. */
static unsigned list_room(const struct cli *cli)
{
	return cli->terminal ? terminal_columns() : ANY_ROOM;
}

/* ---- cells ---- */

void cell_text(const struct cell *c, struct text text)
{
	table_cell(c->table, text.len > 0 ? text : TEXT("-"));
}

void cell_time(const struct cell *c)
{
	char shown[TIME_SHOWN];

	format_time(koine_value_get(c->row, c->member), shown);
	table_cell_str(c->table, shown);
}

void cell_age(const struct cell *c)
{
	char shown[SPAN_SHOWN];

	duration_format_age(clock_utc_ms() - member_time(c->row, c->member), shown);
	table_cell_str(c->table, shown);
}

void cell_when(const struct cell *c)
{
	int64_t at = member_time(c->row, c->member);
	int64_t ms = at - clock_utc_ms();
	char span[SPAN_SHOWN];
	char shown[SPAN_SHOWN + 8];

	duration_format_age(ms < 0 ? -ms : ms, span);
	snprintf(shown, sizeof(shown), ms < 0 ? "%s ago" : "in %s", span);
	table_cell_str(c->table, at > 0 ? shown : "-");
}

void cell_short_id(const struct cell *c)
{
	cell_text(c, text_cut(member_text(c->row, c->member), SHORT_ID));
}

static void cell_fitting(const struct cell *c, struct text text)
{
	text.len = text_fitting(text, NAME_COLUMNS);
	cell_text(c, text);
}

void cell_name(const struct cell *c)
{
	cell_fitting(c, member_text(c->row, c->member));
}

void cell_folder(const struct cell *c)
{
	cell_fitting(c, text_base_name(member_text(c->row, c->member)));
}

/* ---- the list ---- */

void list_say_hidden(const char *which, int64_t shown, int64_t all, bool more)
{
	/* It ends the list where both go to one file, too. */
	fflush(stdout);
	if (all < 0)
		fprintf(stderr, "showing the %s ", which);
	print_count(stderr, shown);
	if (all >= 0) {
		fputs(" of ", stderr);
		print_count(stderr, all);
	}
	fputs(more ? " (-n N for more)\n" : "\n", stderr);
}

static bool row_has(const struct column *c, const struct koine_value *row)
{
	const struct koine_value *v = koine_value_get(row, c->member);
	enum koine_kind kind = koine_value_kind(v);

	if (c->has)
		return c->has(row);
	return kind != KOINE_NULL && kind != KOINE_FALSE && (c->if_given || !value_is(v, "0"));
}

static bool any_has(const struct koine_value *rows, const struct column *c)
{
	for (EACH(row, koine_value_first(rows))) {
		if (row_has(c, row))
			return true;
	}
	return false;
}

static bool is_shown(const struct column *c, const struct cli_list *list, unsigned room,
		     const struct koine_value *rows)
{
	if (room < c->room || (list->without && strcmp(c->title, list->without) == 0))
		return false;
	return !(c->if_any || c->if_given) || any_has(rows, c);
}

static struct text plain_cell(const struct column *c, const struct koine_value *row)
{
	if (c->truth[0])
		return text_of(c->truth[member_flag(row, c->member)]);
	return shown_value(koine_value_get(row, c->member));
}

static void add_row(const struct column *const *shown, struct cell *c)
{
	for (; *shown; shown++) {
		struct text plain;

		c->member = (*shown)->member;
		if ((*shown)->cell) {
			(*shown)->cell(c);
			continue;
		}
		plain = plain_cell(*shown, c->row);
		table_cell_color(c->table, plain, color_of_word((*shown)->colors, plain));
	}
}

int list_print(const struct cli *cli, const struct column *columns, const struct koine_value *rows)
{
	const struct cli_list list = {.columns = columns};

	return list_print_as(cli, &list, rows);
}

int list_print_as(const struct cli *cli, const struct cli_list *list,
		  const struct koine_value *rows)
{
	unsigned room = list_room(cli);
	const struct column *shown[LIST_COLUMNS_MAX + 1] = {NULL};
	CLEANUP(table_freep) struct cli_table *t = NULL;
	char align[LIST_COLUMNS_MAX + 1] = "";
	struct cell cell = {.cli = cli, .row = koine_value_first(rows), .arg = list->arg};
	int n = 0, r;

	for (const struct column *c = list->columns; c->title && n < LIST_COLUMNS_MAX; c++) {
		if (!is_shown(c, list, room, rows))
			continue;
		align[n] = c->align ? c->align : 'l';
		shown[n++] = c;
	}
	cell.table = t = table_new(align);
	if (!t)
		return out_of_memory();
	for (int i = 0; i < n; i++)
		table_cell_str(t, shown[i]->title);
	for (int64_t i = 0; cell.row && (list->most == 0 || i < list->most); i++) {
		add_row(shown, &cell);
		if (list->below)
			table_below(t, member_text(cell.row, list->below),
				    member_number(cell.row, list->below_bytes) - list->below_kept);
		cell.row = koine_value_next(cell.row);
	}
	t->wraps = cli->terminal && list->wraps;
	if (cli->terminal && (list->wraps || align[n - 1] != 'r'))
		t->fit = room;
	r = table_print(t, stdout, cli->color);
	if (r == 0 && list->says_more && cell.row)
		list_say_hidden("first", list->most, -1, true);
	return r;
}

/* ---- counts ---- */

int list_print_counts(const struct koine_value *counts, const char *const *names)
{
	CLEANUP(table_freep) struct cli_table *t = table_new("lr");

	if (!t)
		return out_of_memory();
	for (; names && *names; names++) {
		table_cell_str(t, *names);
		table_cell_value(t, koine_value_get(counts, *names));
	}
	for (EACH(v, names ? NULL : koine_value_first(counts))) {
		table_cell(t, text_of_key(v));
		table_cell_value(t, v);
	}
	return table_print(t, stdout, false);
}
