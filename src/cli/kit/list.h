/*
 * Lists: a table with a row for each item of an answer, from a description of its columns. A
 * terminal gets the columns that it has room for; a pipe gets all.
 */
#pragma once

#include <stdio.h>

#include "cli/kit/print.h"

/* What a cell is made from. */
struct cell {
	struct cli_table *table;
	const struct cli *cli;
	const struct koine_value *row;
	const char *member;
	const void *arg; /* the list's */
};

struct column {
	const char *title;
	const char *member; /* or NULL, where the cell needs none */
	void (*cell)(
		const struct cell *c); /* NULL: the member's value, as table_cell_value shows it */
	char align;                    /* 'l', 'r', or 'n', which may be narrowed; 0: 'l' */
	unsigned room;                 /* columns the terminal must have for it */
	bool if_any;   /* shown only if one of the rows has it; 0 and false count as none */
	bool if_given; /* the same, but 0 counts */
	bool (*has)(const struct koine_value *row); /* says for if_any whether a row has it */
	const char *truth[2];                       /* words for what is not true, and what is */
	const struct word_color *colors;            /* of the words in it */
};

enum { LIST_COLUMNS_MAX = 14, SHORT_ID = 8, NAME_COLUMNS = 16 };

struct cli_list {
	const struct column *columns; /* the last has no title */
	const char *without;          /* the title of a column that is not wanted; or NULL */
	int64_t most;                 /* rows; 0: all */
	bool says_more;               /* on stderr, if there are more: the limit was that of -n */
	const void *arg;              /* for the cells */
	bool wraps;                   /* the last column wraps where it does not fit */
	const char *below;            /* a member whose lines are printed below its row; or NULL */
	const char *below_bytes;      /* the member with the length of all of them */
	int64_t below_kept;           /* at most so many bytes of them are kept */
};

/* 0, or EX_SOFTWARE. If the last column is a number, nothing is cut. */
int list_print(const struct cli *cli, const struct column *columns, const struct koine_value *rows);
int list_print_as(const struct cli *cli, const struct cli_list *list,
		  const struct koine_value *rows);

/* On stderr: "20 of 158 (-n N for more)", or "showing the WHICH 20 ..." if all < 0. */
void list_say_hidden(const char *which, int64_t shown, int64_t all, bool more);

/* ---- cells ---- */

void cell_text(const struct cell *c, struct text text); /* "-" for none */
void cell_time(const struct cell *c);
void cell_age(const struct cell *c);
/* "3m ago" or "in 2h". */
void cell_when(const struct cell *c);
/* Its first SHORT_ID bytes. */
void cell_short_id(const struct cell *c);
/* What fits into NAME_COLUMNS, and the same for the last part of a path. */
void cell_name(const struct cell *c);
void cell_folder(const struct cell *c);

/* ---- counts ---- */

/* A line for each of these members, or (NULL) for all: its name and its number. */
int list_print_counts(const struct koine_value *counts, const char *const *names);

/* ---- table.h ---- */

/* A table in text: cells are collected first, so that columns can be as wide as necessary. */

struct cli_table;

/* Columns whose letter in `align` is 'r' are right-aligned, and 'n' marks those that may be
 * narrowed. Errors stick, and table_print returns them. The caller keeps `align`. */
struct cli_table *table_new(const char *align);
void table_freep(struct cli_table **t);

/* Rows fill from left to right. */
void table_cell(struct cli_table *t, struct text text);
void table_cell_str(struct cli_table *t, const char *text);
/* In colour, if the table is printed so. */
void table_cell_color(struct cli_table *t, struct text text, enum color color);
/* A string's text, a number's digits, "-" for nothing, JSON for anything else. */
void table_cell_value(struct cli_table *t, const struct koine_value *v);

/* In colour the first row is bold. 0, or EX_SOFTWARE when memory ran out. */
int table_print(struct cli_table *t, FILE *out, bool color);
