/*
 * A whole approval as rows for people: who asks, from where, and what for. An edit is shown as
 * what it removes and what it adds. Nothing is left out or cut: what is wider than the
 * terminal continues in the next row.
 */
#pragma once

#include <stdio.h>

#include "cli/approval/approval.h"

/* ---- the differences between two texts, line by line ---- */

/* sign is ' ' for a line of both, '-' for one of the old text, '+' for one of the new. The line
 * comes without its newline. */
typedef void (*diff_fn)(void *arg, char sign, struct text line);

/* If the texts are too long to compare, or memory is short, all of the old text is removed and
 * all of the new is added. */
void diff_lines(struct text before, struct text after, diff_fn fn, void *arg);

/* ---- the rows ---- */

struct view {
	struct buf text;
	struct buf lines; /* of struct view_piece */
	struct buf rows;  /* of struct view_piece */
};

void view_init(struct view *v);
void view_done(struct view *v);

/* Replaces its contents. 0, -ENOMEM or -EMSGSIZE. */
int view_fill(struct view *v, const struct koine_value *approval);

/* Makes rows of so many columns. */
int view_wrap(struct view *v, unsigned columns);
size_t view_n_rows(const struct view *v);
struct text view_row(const struct view *v, size_t row, enum color *ret_color);
/* Without a newline. */
void view_print_row(const struct view *v, size_t row, FILE *out, bool color);
