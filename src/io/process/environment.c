#include "io/process/child.h"

#include <errno.h>
#include <string.h>

#include "io/process/inner.h"

/* Without these few a shell does not work. None of them is a secret. */
static const char *const brief[] = {"PATH", "HOME", "USER",  "LOGNAME", "SHELL",    "LANG", "TZ",
				    "TERM", "LC_*", "XDG_*", "TMPDIR",  "LANGUAGE", NULL};

static const char ours[] = "KOINE_";

/* "NAME=…" is called NAME, or matches NAME*. */
static bool environment_fits(const char *entry, const char *word)
{
	size_t n = strlen(word);

	if (n > 0 && word[n - 1] == '*')
		return strncmp(entry, word, n - 1) == 0;
	return strncmp(entry, word, n) == 0 && entry[n] == '=';
}

/* `whole`: only by its whole name, since whoever wrote that meant this one. */
static bool fits_any(const char *entry, const char *const *words, bool whole)
{
	for (; words && *words; words++) {
		if (environment_fits(entry, *words) && !(whole && strchr(*words, '*')))
			return true;
	}
	return false;
}

/* The mark stays: somebody else may look for us, and for everything we start, by it. */
static bool environment_is_ours(const char *entry)
{
	return strncmp(entry, ours, sizeof(ours) - 1) == 0 &&
	       !environment_fits(entry, TREE_VARIABLE);
}

static bool is_passed(const char *entry, const struct environment_opts *o)
{
	if (fits_any(entry, o->given, true))
		return true;
	if (environment_is_ours(entry) || fits_any(entry, o->secrets, false))
		return false;
	return !o->brief || fits_any(entry, brief, false) || fits_any(entry, o->given, false);
}

int environment_make(struct arena *a, const struct environment_opts *o, struct environment *ret)
{
	size_t n = count_strings(o->from) + count_strings(o->own) + count_strings(o->given) + 1;
	const char **list = arena_alloc(a, n * sizeof(*list));

	if (!list)
		return -ENOMEM;
	ret->list = list;
	for (const char *const *at = o->from; at && *at; at++) {
		if (is_passed(*at, o))
			*list++ = *at;
	}
	/* Of several with one name the last counts. */
	for (const char *const *at = o->own; at && *at; at++)
		*list++ = *at;
	for (const char *const *at = o->given; at && *at; at++) {
		if (strchr(*at, '='))
			*list++ = *at;
	}
	*list = NULL;
	return 0;
}

bool environment_is_word(const char *word)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	size_t n = strspn(word, letters);

	if (word[0] >= '0' && word[0] <= '9')
		return false;
	return n > 0 && (!word[n] || word[n] == '=' || (word[n] == '*' && !word[n + 1]));
}

const char *environment_find(const struct environment *e, const char *name)
{
	const char *value = NULL;

	for (const char *const *at = environment_list(e); at && *at; at++) {
		if (environment_fits(*at, name))
			value = *at + strlen(name) + 1;
	}
	return value;
}
