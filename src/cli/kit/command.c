#include "cli/kit/command.h"

#include <string.h>

#include "cli/kit/nearest.h"
#include "cli/kit/print.h"

const struct command *command_nth(const struct command_group *groups, const struct command *of,
				  int n)
{
	if (of)
		return of->subs[n].name ? &of->subs[n] : NULL;
	for (const struct command_group *g = groups; g->title; g++) {
		for (int i = 0; i < GROUP_TABLES_MAX && g->tables[i]; i++) {
			for (const struct command *c = g->tables[i]; c->name; c++) {
				if (n-- == 0)
					return c;
			}
		}
	}
	return NULL;
}

static const struct command *find_exactly(const struct command_group *groups,
					  const struct command *of, const char *name)
{
	const struct command *c = command_nth(groups, of, 0);

	for (int i = 1; c && strcmp(c->name, name) != 0; i++)
		c = command_nth(groups, of, i);
	return c;
}

/* What a shell calls it; NULL for a word that no shell uses. */
static const char *shell_word(const char *name)
{
	static const char *const also[][2] = {
		{"ls", "list"},
		{"rm", "delete"},
		{"remove", "delete"},
		{"del", "delete"},
	};

	for (size_t i = 0; i < sizeof(also) / sizeof(also[0]); i++) {
		if (strcmp(also[i][0], name) == 0)
			return also[i][1];
	}
	return NULL;
}

const struct command *command_find(const struct command_group *groups, const struct command *of,
				   const char *name)
{
	const struct command *found = find_exactly(groups, of, name);
	const char *other = found ? NULL : shell_word(name);

	return other ? find_exactly(groups, of, other) : found;
}

/* What other tools call it, or our own commands call it elsewhere. */
static const char *other_word(const struct command_group *groups, const struct command *of,
			      const char *name)
{
	static const struct {
		const char *word;
		const char *ours[3]; /* the first that exists */
	} words[] = {
		{"stop", {"interrupt", "cancel"}},
		{"kill", {"interrupt", "cancel"}},
		{"cancel", {"interrupt"}},
		{"interrupt", {"cancel"}},
		{"resume", {"continue", "retry"}},
		{"get", {"show"}},
		{"show", {"get"}},
		{"view", {"show", "get"}},
		{"add", {"run"}},
		{"launch", {"run"}},
		{"start", {"run", "add"}},
		{"follow", {"log"}},
		{"rm", {"cancel", "interrupt", "revoke"}},
		{"delete", {"cancel", "interrupt"}},
		{"remove", {"cancel", "interrupt"}},
		{"reject", {"deny"}},
		{"answer", {"respond"}},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (int k = 0; k < 3 && words[i].ours[k]; k++) {
			if (strcmp(words[i].word, name) == 0 &&
			    command_find(groups, of, words[i].ours[k]))
				return words[i].ours[k];
		}
	}
	return NULL;
}

const struct command *command_need(const struct command_group *groups, const struct command *of,
				   const char *name)
{
	const struct command *found = command_find(groups, of, name);
	const char *meant = other_word(groups, of, name);
	const char *before = of ? of->name : "";
	const char *space = of ? " " : "";
	struct nearest n;

	if (found)
		return found;
	nearest_init(&n, name);
	for (int i = 0; command_nth(groups, of, i); i++)
		nearest_offer(&n, text_of(command_nth(groups, of, i)->name));
	if (meant || n.name[0])
		complain("there is no command '%s%s%s'; did you mean '%s%s%s'?", before, space,
			 name, before, space, meant ? meant : n.name);
	else
		complain("there is no command '%s%s%s'; see koine %s%s--help", before, space, name,
			 before, space);
	return NULL;
}
