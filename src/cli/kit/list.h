/*
 * Lists: a table with a row for each thing of an answer, by a description of its columns. A
 * terminal gets the columns that it has room for; a pipe gets all.
 */
#pragma once

#include "cli/kit/table.h"

/* What a cell is made of. */
struct cell {
	struct table *table;
	const struct cli *cli;
	const struct koine_value *row;
	const char *member;
	const void *arg; /* the list's */
};

struct column {
	const char *title;
	const char *member; /* or NULL, where the cell needs none */
	void (*cell)(
		const struct cell *c); /* NULL: the member's value, as table_cell_value has it */
	char align;                    /* 'l', 'r', or 'n', which may be narrowed; 0: 'l' */
	unsigned room;                 /* columns the terminal must have for it */
	bool if_any;                   /* shown only where one of the rows has it; 0 is none */
};

enum { LIST_COLUMNS_MAX = 12, SHORT_ID = 8, NAME_COLUMNS = 16 };

struct list {
	const struct column *columns; /* the last has no title */
	const char *without;          /* the title of a column that is not wanted; or NULL */
	int64_t most;                 /* rows; 0: all */
	const void *arg;              /* for the cells */
	bool wraps;                   /* the last column goes on below, where it does not fit */
};

/* 0, or EX_SOFTWARE. Where the last column is a number, nothing is cut. */
int list_print(const struct cli *cli, const struct column *columns, const struct koine_value *rows);
int list_print_as(const struct cli *cli, const struct list *list, const struct koine_value *rows);

/* The columns of the terminal; for a pipe, more than any list needs. */
unsigned list_room(const struct cli *cli);

/* ---- cells ---- */

void cell_text(const struct cell *c, struct text text); /* "-" for none */
void cell_time(const struct cell *c);
void cell_age(const struct cell *c);
/* Its first SHORT_ID bytes. */
void cell_short_id(const struct cell *c);
/* What fits into NAME_COLUMNS, and the same of the last part of a path. */
void cell_name(const struct cell *c);
void cell_folder(const struct cell *c);

/* ---- counts ---- */

/* A line for each of these members, or (NULL) of all that there are: its name, and its number. */
int list_print_counts(const struct koine_value *counts, const char *const *names);
