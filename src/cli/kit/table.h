/* A table in text: cells are collected first, so that columns can be as wide as necessary. */
#pragma once

#include <stdio.h>

#include "base/text.h"
#include "cli/kit/print.h"

struct table;

/* Columns whose letter in `align` is 'r' are right-aligned, and 'n' marks those that may be
 * narrowed. Errors stick, and table_print returns them. The caller keeps `align`. */
struct table *table_new(const char *align);
void table_free(struct table *t);
void table_freep(struct table **t);

/* Rows fill from left to right. */
void table_cell(struct table *t, struct text text);
void table_cell_str(struct table *t, const char *text);
/* In colour, if the table is printed so. */
void table_cell_color(struct table *t, struct text text, enum color color);
/* A string's text, a number's digits, "-" for nothing, JSON for anything else. */
void table_cell_value(struct table *t, const struct koine_value *v);
/* Lines to print below the row that was begun last, and how many bytes before them were not kept; the text
 * must live as long as the table. */
void table_below(struct table *t, struct text lines, int64_t n_lost);

/* Narrows the last column so that the table has at most so many columns in all, and if that is
 * not enough, those marked 'n'. */
void table_fit(struct table *t, size_t columns);
/* The same, but what does not fit into the last column continues below it. */
void table_wrap(struct table *t, size_t columns);

/* In colour the first row is bold. 0, or EX_SOFTWARE when memory ran out. */
int table_print(struct table *t, FILE *out, bool color);
