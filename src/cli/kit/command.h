/* All commands, and finding the one that was typed. */
#pragma once

#include "base/text.h"
#include "cli/kit/cli.h"

enum { GROUP_TABLES_MAX = 8 };

/* Commands as `koine help all` shows them. A table ends with a row without a name, the groups with
 * one without a title. */
struct command_group {
	const char *title;
	const struct command *tables[GROUP_TABLES_MAX];
};

/* The nth of the subs of a command, or (NULL) of all commands; NULL: there are fewer. */
const struct command *command_nth(const struct command_group *groups, const struct command *of,
				  int n);

/* ---- alias.c ---- */

/* A command, or one of its options. */
struct spelling {
	const char *noun; /* "*": any */
	const char *verb; /* "*": any; NULL: none */
	const char *option;
};

/*
 * Another spelling: what `typed` has is replaced by what `means` has. The option of a command may
 * be "ID", which is its first argument, or in `means` an option that the command implies.
 */
struct alias {
	struct spelling typed;
	struct spelling means;
	bool is_shown; /* a shortcut, which help and completion show */
};

extern const struct alias aliases[]; /* ends with a row without a noun */

/* NULL if there is none; verb and option may be NULL. */
const struct alias *alias_find(const char *noun, const char *verb, const char *option);

/* ---- command.c ---- */

/* NULL if there is none. `of` is the command whose sub it is, or NULL. Aliases work, too; the
 * verb of a shortcut is left to the caller. */
const struct command *command_find(const struct command_group *groups, const struct command *of,
				   const char *name);

/* The same by "NAME" or "NAME SUB", or a shortcut. */
const struct command *command_named(const struct command_group *groups, const char *names);

/* Like command_find, and complains when there is none. */
const struct command *command_need(const struct command_group *groups, const struct command *of,
				   const char *name);

/* ---- nearest.h ---- */

/* "Did you mean": takes names one by one and keeps the one most like `wanted`. */

struct nearest {
	const char *wanted;
	char name[64];   /* "": nothing is close */
	unsigned within; /* only what is closer than this counts */
};

void nearest_init(struct nearest *n, const char *wanted);
void nearest_offer(struct nearest *n, struct text name);
/* "unknown KIND 'NAME'; did you mean NEAREST?"; if nothing is close, what `see` says. */
void nearest_complain(const struct nearest *n, const char *kind, const char *see);
