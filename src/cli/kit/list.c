#include "cli/kit/list.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/value.h"

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

void list_say_hidden(int64_t shown, int64_t all)
{
	/* It ends the list where both go to one file, too. */
	fflush(stdout);
	fputs(all < 0 ? "showing the first " : "", stderr);
	print_count(stderr, shown);
	fputs(all < 0 ? "" : " of ", stderr);
	if (all >= 0)
		print_count(stderr, all);
	fputs(" (-n N for more)\n", stderr);
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
	const struct koine_value *row = koine_value_first(rows);

	for (; row; row = koine_value_next(row)) {
		if (row_has(c, row))
			return true;
	}
	return false;
}

static bool is_shown(const struct column *c, const struct list *list, unsigned room,
		     const struct koine_value *rows)
{
	if (room < c->room || (list->without && strcmp(c->title, list->without) == 0))
		return false;
	return !(c->if_any || c->if_given) || any_has(rows, c);
}

static void add_row(const struct column *const *shown, struct cell *c)
{
	for (; *shown; shown++) {
		c->member = (*shown)->member;
		if ((*shown)->cell)
			(*shown)->cell(c);
		else
			table_cell_value(c->table, koine_value_get(c->row, c->member));
	}
}

int list_print(const struct cli *cli, const struct column *columns, const struct koine_value *rows)
{
	const struct list list = {.columns = columns};

	return list_print_as(cli, &list, rows);
}

int list_print_as(const struct cli *cli, const struct list *list, const struct koine_value *rows)
{
	unsigned room = list_room(cli);
	const struct column *shown[LIST_COLUMNS_MAX + 1] = {NULL};
	CLEANUP(table_freep) struct table *t = NULL;
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
	if (cli->terminal && list->wraps)
		table_wrap(t, room);
	else if (cli->terminal && align[n - 1] != 'r')
		table_fit(t, room);
	r = table_print(t, stdout, cli->color);
	if (r == 0 && list->says_more && cell.row)
		list_say_hidden(list->most, -1);
	return r;
}

/* ---- counts ---- */

int list_print_counts(const struct koine_value *counts, const char *const *names)
{
	CLEANUP(table_freep) struct table *t = table_new("lr");
	const struct koine_value *v = names ? NULL : koine_value_first(counts);

	if (!t)
		return out_of_memory();
	for (; names && *names; names++) {
		table_cell_str(t, *names);
		table_cell_value(t, koine_value_get(counts, *names));
	}
	for (; v; v = koine_value_next(v)) {
		table_cell(t, text_of_key(v));
		table_cell_value(t, v);
	}
	return table_print(t, stdout, false);
}
