#include "daemon/settings/named_section.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

int section_check_name(const struct section_kind *kind, const char *name, struct why *why)
{
	size_t n = strlen(name);

	if (n > 0 && n <= SECTION_NAME_MAX &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n)
		return 0;
	return refuse(why, REFUSE_PARAMS,
		      "[%s %.45s]: %s name has 1 to %d letters, digits, '.', '_' or '-'",
		      kind->word, name, kind->its, SECTION_NAME_MAX);
}

unsigned section_find_key(const struct section_kind *kind, const char *key)
{
	unsigned i = 0;

	while (i < kind->n_keys && strcmp(kind->key(i), key) != 0)
		i++;
	return i;
}

/* ---- the environment ---- */

static char env_char(char c)
{
	return (char)(isalnum((unsigned char)c) ? toupper((unsigned char)c) : '_');
}

/* Whether text, n bytes of it, is how the environment writes the name. */
static bool env_same(const char *name, const char *text, size_t n)
{
	if (strlen(name) != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (env_char(name[i]) != text[i])
			return false;
	}
	return true;
}

/* "NAME_KEY": the longest key that fits the end, so that NAME_KEY_COMMAND is no `command`. */
static const char *env_key(const struct section_kind *kind, const char *text, size_t n,
			   size_t *ret_name_len)
{
	const char *best = NULL;
	size_t best_len = 0;

	for (unsigned i = 0; i < kind->n_keys; i++) {
		const char *key = kind->key(i);
		size_t len = strlen(key);

		if (len > best_len && n > len + 1 && text[n - len - 1] == '_' &&
		    env_same(key, text + n - len, len)) {
			best = key;
			best_len = len;
		}
	}
	*ret_name_len = n - best_len - 1;
	return best;
}

/* The one that is meant: one that there is, or a new one in lower case. */
static int env_name(const struct section_kind *kind, const void *settings, const char *text,
		    size_t n, char out[SECTION_NAME_MAX + 1], struct why *why)
{
	const char *found = NULL;
	const char *name;

	for (unsigned i = 0; (name = kind->name(settings, i)); i++) {
		if (!env_same(name, text, n))
			continue;
		if (found)
			return refuse(why, REFUSE_PARAMS, "environment: %s%.*s may be %s %s or %s",
				      kind->env, (int)n, text, kind->word, found, name);
		found = name;
	}
	if (n > SECTION_NAME_MAX)
		return refuse(why, REFUSE_PARAMS,
			      "environment: %s%.60s: a name has at most %d characters", kind->env,
			      text, SECTION_NAME_MAX);
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[n] = '\0';
	if (found)
		memcpy(out, found, n);
	return 0;
}

static int read_variable(const struct section_kind *kind, void *settings, const char *text,
			 struct why *why)
{
	size_t n = strcspn(text, "=");
	size_t name_len;
	const char *key = env_key(kind, text, n, &name_len);
	char name[SECTION_NAME_MAX + 1];
	struct why inner;
	int r;

	if (!key && kind->bare)
		return 0;
	if (!key)
		return refuse(why, REFUSE_PARAMS, "environment: %s%.*s names no setting", kind->env,
			      (int)(n < 100 ? n : 100), text);
	r = env_name(kind, settings, text, name_len, name, why);
	if (r != 0)
		return r;
	if (kind->set(settings, name, key, text[n] ? text + n + 1 : "", &inner) == 0)
		return 0;
	return refuse(why, REFUSE_PARAMS, "environment: %s", inner.text);
}

int section_read_environment(const struct section_kind *kind, void *settings, struct why *why)
{
	const size_t prefix = strlen(kind->env);

	for (char **entry = environ; entry && *entry; entry++) {
		int r = 0;

		if (strncmp(*entry, kind->env, prefix) == 0)
			r = read_variable(kind, settings, *entry + prefix, why);
		if (r != 0)
			return r;
	}
	return 0;
}

/* ---- values kept as they were written ---- */

/* One that is given again takes new room: settings are read a few times, not for ever. */
bool section_keep(struct section_text t, uint16_t *at, const char *value)
{
	size_t n = strlen(value) + 1;

	if (*at && strcmp(t.text + *at, value) == 0)
		return true;
	if (*t.used == 0)
		*t.used = 1;
	if (n > t.size - *t.used)
		return false;
	memcpy(t.text + *t.used, value, n);
	*at = *t.used;
	*t.used = (uint16_t)(*t.used + n);
	return true;
}
