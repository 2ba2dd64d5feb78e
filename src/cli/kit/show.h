/*
 * One thing in full: a line for each member that it has, from a description of them, and long
 * texts below. Members of its schema that the description does not name are shown by their
 * own names.
 */
#pragma once

#include "base/schema.h"
#include "cli/kit/print.h"

struct show;

/* A member, and how it is shown. If the thing does not have it, there is no line. */
struct show_row {
	const char *label; /* "": it is not shown */
	const char *member;
	void (*print)(const struct show *s,
		      const struct show_row *row); /* NULL: as the schema says, or show_text */
};

/* How a kind of thing is shown. */
struct show_form {
	const struct show_row *rows; /* the last row has no label */
	const struct schema *schema; /* or NULL */
	int width;                   /* of the labels */
	bool bold; /* on a terminal labels are bold, and two spaces follow them, not one */
};

struct show {
	const struct cli *cli;
	const struct show_form *form;
	const struct koine_value *thing;
};

void show_print(const struct cli *cli, const struct show_form *form,
		const struct koine_value *thing);

/* Starts a line; for rows that print themselves. */
void show_label(const struct show *s, const char *label);

/* ---- kinds ---- */

void show_text(const struct show *s, const struct show_row *row);
/* On one line; anything but text as JSON. */
void show_value(const struct show *s, const struct show_row *row);
void show_number(const struct show *s, const struct show_row *row); /* not 0 */
void show_time(const struct show *s, const struct show_row *row);
void show_span(const struct show *s, const struct show_row *row); /* of milliseconds; not 0 */
void show_names(const struct show *s, const struct show_row *row);
/* The label on a line of its own, and the text below it. */
void show_long(const struct show *s, const struct show_row *row);
