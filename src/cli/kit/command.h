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

/* NULL when there is none. `of` is the command whose sub it is, or NULL. The name that a shell
 * uses for it works, too. */
const struct command *command_find(const struct command_group *groups, const struct command *of,
				   const char *name);

/* The same by "NAME" or "NAME SUB". */
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
