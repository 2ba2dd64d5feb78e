#include <stdio.h>
#include <string.h>

#include "cli/kit/command.h"
#include "cli/kit/print.h"

/* ---- the nearest name ---- */

enum { LONGEST = 63 };

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* How many letters were omitted, added or changed; two swapped letters count as one. */
static unsigned distance(struct text a, struct text b)
{
	unsigned rows[3][LONGEST + 1];
	unsigned *before = rows[0];
	unsigned *last = rows[1];
	unsigned *now = rows[2];

	for (size_t j = 0; j <= b.len; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a.len; i++) {
		unsigned *spare = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b.len; j++) {
			unsigned change = a.data[i - 1] == b.data[j - 1] ? 0 : 1;

			now[j] = smallest(last[j] + 1, now[j - 1] + 1, last[j - 1] + change);
			if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] &&
			    a.data[i - 2] == b.data[j - 1] && before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b.len];
}

void nearest_init(struct nearest *n, const char *wanted)
{
	size_t len = strlen(wanted);

	/* A third of the letters may be wrong, and always one. */
	*n = (struct nearest) {.wanted = wanted, .within = len < 6 ? 2 : (unsigned)(len / 3 + 1)};
}

void nearest_offer(struct nearest *n, struct text name)
{
	unsigned d;

	if (name.len > LONGEST)
		return;
	d = distance(text_of(n->wanted), name);
	/* With two mistakes the first letter must be right: version does not mean session. */
	if (d >= n->within || (d > 1 && n->wanted[0] != name.data[0]))
		return;
	n->within = d;
	memcpy(n->name, name.data, name.len);
	n->name[name.len] = '\0';
}

void nearest_complain(const struct nearest *n, const char *kind, const char *see)
{
	complain("unknown %s '%s'; %s%s%s", kind, n->wanted, n->name[0] ? "did you mean " : see,
		 n->name, n->name[0] ? "?" : "");
}

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

const struct command *command_find(const struct command_group *groups, const struct command *of,
				   const char *name)
{
	const struct command *found = find_exactly(groups, of, name);
	const struct alias *a =
		found ? NULL : alias_find(of ? of->name : name, of ? name : NULL, NULL);

	return a ? find_exactly(groups, of, of ? a->means.verb : a->means.noun) : found;
}

const struct command *command_named(const struct command_group *groups, const char *names)
{
	size_t len = strcspn(names, " ");
	const struct command *c;
	const struct alias *a;
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)len, names);
	c = command_find(groups, NULL, name);
	a = alias_find(name, NULL, NULL);
	if (!names[len] && !(a && a->means.verb))
		return c;
	return c ? command_find(groups, c, names[len] ? names + len + 1 : a->means.verb) : NULL;
}

/* ---- suggestions ---- */

enum { SUGGESTION_MAX = 160 };

/* The command with which other tools do it. NULL: none. */
static const char *other_command(const char *name)
{
	static const char *const words[][2] = {
		{"start", "daemon start"},
		{"stop", "daemon stop"},
		{"restart", "daemon restart"},
		{"reload", "daemon reload"},
		{"log", "daemon log"},
		{"logs", "daemon log"},
		{"config", "koined --check"},
		{"settings", "koined --check"},
		{"ps", "task list"},
		{"list", "task list"},
		{"add", "task add"},
		{"exec", "run"},
		{"inbox", "approvals"},
		{"pending", "approvals"},
		{"allow", "approve"},
		{"reject", "deny"},
		{"answer", "respond"},
		{"init", "connect"},
		{"install", "connect"},
		{"setup", "connect"},
		{"check", "doctor"},
		{"dashboard", "top"},
		{"ui", "page"},
		{"web", "page"},
		{"open", "page"},
		{"watch", "top"},
		{"remember", "memory add"},
		{"recall", "memory search"},
		{"prompt", "send"},
		{"methods", "discover"},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i][0], name) == 0)
			return words[i][1];
	}
	return NULL;
}

/* What other tools call it, or our own commands call it elsewhere. */
static const char *other_word(const struct command_group *groups, const struct command *of,
			      const char *name)
{
	static const struct {
		const char *word;
		const char *ours[2]; /* the first that exists */
	} words[] = {
		{"stop", {"cancel"}},
		{"kill", {"cancel"}},
		{"resume", {"continue", "retry"}},
		{"view", {"show"}},
		{"launch", {"add"}},
		{"start", {"add", "run"}},
		{"ps", {"list"}},
		{"follow", {"watch", "log"}},
		{"logs", {"log"}},
		{"rm", {"cancel"}},
		{"delete", {"cancel"}},
		{"remove", {"cancel"}},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		for (int k = 0; k < 2 && words[i].ours[k]; k++) {
			if (strcmp(words[i].word, name) == 0 &&
			    command_find(groups, of, words[i].ours[k]))
				return words[i].ours[k];
		}
	}
	return NULL;
}

/* "memory search" for "search": the only noun that has a command of this name. */
static bool find_noun(const struct command_group *groups, const char *name,
		      char out[SUGGESTION_MAX])
{
	const struct command *c;
	int n = 0;

	for (int i = 0; (c = command_nth(groups, NULL, i)); i++) {
		if (!c->subs || !find_exactly(groups, c, name))
			continue;
		snprintf(out, SUGGESTION_MAX, "%s %s", c->name, name);
		n++;
	}
	return n == 1;
}

/* `out` gets what to type in place of "NAME" or "OF NAME"; "" where nothing is like it. */
static void suggest(const struct command_group *groups, const struct command *of, const char *name,
		    char out[SUGGESTION_MAX])
{
	const char *other = of ? other_word(groups, of, name) : other_command(name);
	struct nearest n;

	nearest_init(&n, name);
	for (int i = 0; command_nth(groups, of, i); i++)
		nearest_offer(&n, text_of(command_nth(groups, of, i)->name));
	for (const struct alias *a = aliases; !of && a->typed.noun; a++) {
		if (a->is_shown)
			nearest_offer(&n, text_of(a->typed.noun));
	}
	out[0] = '\0';
	if (!other && !n.name[0] && !of && find_noun(groups, name, out))
		return;
	out[0] = '\0';
	if (other || n.name[0])
		snprintf(out, SUGGESTION_MAX, "%s%s%s", of ? of->name : "", of ? " " : "",
			 other ? other : n.name);
}

const struct command *command_need(const struct command_group *groups, const struct command *of,
				   const char *name)
{
	const struct command *found = command_find(groups, of, name);
	const char *before = of ? of->name : "";
	const char *space = of ? " " : "";
	char better[SUGGESTION_MAX];

	if (found)
		return found;
	suggest(groups, of, name, better);
	if (better[0])
		complain("unknown command '%s%s%s'; did you mean '%s'?", before, space, name,
			 better);
	else
		complain("unknown command '%s%s%s'; see koine %s%s--help", before, space, name,
			 before, space);
	return NULL;
}
