/*
 * The candidates for a word, and printing them for a shell.
 *
 * Text of models and of other people is among them. A description is shown: what could steer a
 * terminal becomes an escape, and it is cut. A candidate may end on a command line: one with
 * anything in it that cannot be seen is left out, and so is one that would pass for an option.
 * The rest is quoted, here or by the shell.
 */
#pragma once

#include "base/buf.h"
#include "base/text.h"

enum { OFFERS_MAX = 500 };

struct shell;

struct offers {
	const struct shell *shell;
	struct text typed;  /* what a candidate begins with; {NULL, 0}: the shell looks */
	struct text before; /* put before each: "--format=" */
	const char *how;
	struct buf out;
	struct buf values; /* those there are, each with a NUL behind it */
	unsigned n;
};

/* False: there is no such shell. Both words stay in use. */
bool offers_init(struct offers *o, const char *shell, const char *typed);
void offers_done(struct offers *o);

/* For all that are added from now on. */
void offers_put_before(struct offers *o, struct text before);

/* "words", "open", "files" or "folders". */
void offers_set_how(struct offers *o, const char *how);

/* One of our own. The first of the same value counts. `said` may be {NULL, 0}. */
void offers_add(struct offers *o, struct text value, struct text said);

/* One whose value somebody else has chosen. */
void offers_add_foreign(struct offers *o, struct text value, struct text said);

void offers_print(const struct offers *o);
