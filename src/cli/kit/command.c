#include "cli/kit/command.h"

#include <string.h>

#include "cli/kit/nearest.h"
#include "cli/kit/print.h"

static const struct command *find_row(const struct command *rows, const char *name)
{
	for (const struct command *c = rows; c->name; c++) {
		if (strcmp(c->name, name) == 0)
			return c;
	}
	return NULL;
}

static const struct command *find_exactly(const struct command_group *groups, const char *name)
{
	const struct command *found = NULL;

	for (const struct command_group *g = groups; g->title && !found; g++) {
		for (int i = 0; i < GROUP_TABLES_MAX && g->tables[i] && !found; i++)
			found = find_row(g->tables[i], name);
	}
	return found;
}

/* What a shell calls it; NULL for a word that no shell has. */
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

const struct command *command_find(const struct command_group *groups, const char *name)
{
	const struct command *found = find_exactly(groups, name);
	const char *other = found ? NULL : shell_word(name);

	return other ? find_exactly(groups, other) : found;
}

const struct command *command_find_sub(const struct command *of, const char *name)
{
	const struct command *found = find_row(of->subs, name);
	const char *other = found ? NULL : shell_word(name);

	return other ? find_row(of->subs, other) : found;
}

static const struct command *find(const struct command_group *groups, const struct command *of,
				  const char *name)
{
	return of ? command_find_sub(of, name) : command_find(groups, name);
}

/* What other tools call it, and our own commands among themselves. */
static const char *other_word(const struct command_group *groups, const struct command *of,
			      const char *name)
{
	static const struct {
		const char *word;
		const char *ours[3]; /* the first that is there */
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
			if (strcmp(words[i].word, name) == 0 && find(groups, of, words[i].ours[k]))
				return words[i].ours[k];
		}
	}
	return NULL;
}

static void offer_rows(struct nearest *n, const struct command *rows)
{
	for (const struct command *c = rows; c->name; c++)
		nearest_offer(n, text_of(c->name));
}

static void offer_all(struct nearest *n, const struct command_group *groups)
{
	for (const struct command_group *g = groups; g->title; g++) {
		for (int i = 0; i < GROUP_TABLES_MAX && g->tables[i]; i++)
			offer_rows(n, g->tables[i]);
	}
}

const struct command *command_need(const struct command_group *groups, const struct command *of,
				   const char *name)
{
	const struct command *found = find(groups, of, name);
	const char *meant = other_word(groups, of, name);
	const char *before = of ? of->name : "";
	const char *space = of ? " " : "";
	struct nearest n;

	if (found)
		return found;
	nearest_init(&n, name);
	if (of)
		offer_rows(&n, of->subs);
	else
		offer_all(&n, groups);
	if (meant || n.name[0])
		complain("there is no command '%s%s%s'; did you mean '%s%s%s'?", before, space,
			 name, before, space, meant ? meant : n.name);
	else
		complain("there is no command '%s%s%s'; see koine %s%s--help", before, space, name,
			 before, space);
	return NULL;
}
