#include "daemon/settings/named_section.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/settings/settings.h"

const struct section_kind *const section_kinds[] = {
	&listen_section, &agent_section,  &agent_server_section, &rule_section,
	&group_section,  &policy_section, &notify_section,
};

_Static_assert(sizeof(section_kinds) / sizeof(section_kinds[0]) == N_SECTION_KINDS, "all of them");

const struct section_kind *section_kind_of(const char *section, const char **ret_name)
{
	for (unsigned i = 0; i < N_SECTION_KINDS; i++) {
		size_t n = strlen(section_kinds[i]->word);

		if (strncmp(section, section_kinds[i]->word, n) == 0 && section[n] == ' ') {
			*ret_name = section + n + 1;
			return section_kinds[i];
		}
	}
	return NULL;
}

/* ---- the lists ---- */

static unsigned *count_of(const struct section_kind *kind, const struct settings *s)
{
	return (unsigned *)((char *)s + kind->n);
}

/* A section begins with its name. */
static char *section_at(const struct section_kind *kind, const struct settings *s, unsigned i)
{
	return (char *)s + kind->list + i * kind->size;
}

const struct section *section_nth(const struct section_kind *kind, const struct settings *s,
				  unsigned i)
{
	return i < *count_of(kind, s) ? (const struct section *)section_at(kind, s, i) : NULL;
}

void *section_find(const struct section_kind *kind, const struct settings *s, const char *name)
{
	for (unsigned i = 0; i < *count_of(kind, s); i++) {
		if (strcmp(section_at(kind, s, i), name) == 0)
			return section_at(kind, s, i);
	}
	return NULL;
}

int section_check_name(const struct section_kind *kind, const char *name, struct error *error)
{
	size_t n = strlen(name);

	if (n > 0 && n <= SECTION_NAME_MAX &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n)
		return 0;
	return refuse(error, REFUSE_PARAMS,
		      "invalid %s name '%.45s': expected 1 to %d letters, digits, '.', '_' or '-'",
		      kind->word, name, SECTION_NAME_MAX);
}

static int check_name(const struct section_kind *kind, const char *name, struct error *error)
{
	return kind->check_name ? kind->check_name(name, error)
				: section_check_name(kind, name, error);
}

int section_add(const struct section_kind *kind, struct settings *s, const char *name,
		const char *where, struct error *error)
{
	unsigned *n = count_of(kind, s);
	int r = check_name(kind, name, error);
	char *section;

	if (r != 0 || section_find(kind, s, name))
		return r;
	if (*n == kind->max)
		return refuse(error, REFUSE_LIMIT, "[%s %s]: too many %s (limit %u)", kind->word,
			      name, kind->several, kind->max);
	section = section_at(kind, s, (*n)++);
	memset(section, 0, kind->size);
	if (kind->init)
		kind->init(section, name, where);
	memcpy(section, name, strlen(name) + 1);
	return 0;
}

static struct section_texts *texts_of(const struct section_kind *kind, const void *section)
{
	return (struct section_texts *)((char *)section + kind->texts);
}

const char *section_text(const struct section_kind *kind, const void *section, unsigned key)
{
	const struct section_texts *t = section ? texts_of(kind, section) : NULL;

	return t && t->at[key] ? (const char *)(t + 1) + t->at[key] : NULL;
}

/* A changed text takes new space; settings are read only a few times. */
static int put_text(const struct section_kind *kind, void *section, unsigned key, const char *value,
		    struct error *error)
{
	struct section_texts *t = texts_of(kind, section);
	const char *before = section_text(kind, section, key);
	size_t n = strlen(value) + 1;
	int r = kind->check_text ? kind->check_text(section, key, value, error) : 0;

	if (r != 0 || (before && strcmp(before, value) == 0))
		return r;
	if (t->used == 0)
		t->used = 1;
	if (n > kind->texts_size - t->used)
		return refuse(error, REFUSE_TOO_LARGE, "[%s %s]: the values exceed %zu bytes",
			      kind->word, (const char *)section, kind->texts_size);
	memcpy((char *)(t + 1) + t->used, value, n);
	t->at[key] = t->used;
	t->used = (uint16_t)(t->used + n);
	return 0;
}

unsigned section_line(const char *where)
{
	const char *colon = strrchr(where, ':');
	unsigned long n = colon ? strtoul(colon + 1, NULL, 10) : 0;

	return n <= UINT16_MAX ? (unsigned)n : 0;
}

unsigned section_first_line(const struct section_kind *kind, const struct settings *s,
			    const char *name)
{
	const struct section *section = section_find(kind, s, name);
	unsigned first = 0;

	for (unsigned i = 0; section && i < kind->n_keys; i++) {
		unsigned line = section->marks.lines[i];

		if (line > 0 && (first == 0 || line < first))
			first = line;
	}
	return first;
}

static int put_row(const struct section_kind *kind, void *section, unsigned key, const char *value,
		   struct error *error)
{
	char name[SECTION_NAME_MAX + 16];

	snprintf(name, sizeof(name), "%s.%s", kind->word, (const char *)section);
	return setting_apply(&kind->rows[key], section, name, value, error);
}

int section_set(const struct section_kind *kind, struct settings *s, const char *name,
		const char *key, const char *value, const char *where, struct error *error)
{
	int r = check_name(kind, name, error);
	struct section *section;
	unsigned i = 0;

	if (r != 0)
		return r;
	while (i < kind->n_keys && strcmp(kind->rows[i].key, key) != 0)
		i++;
	if (i == kind->n_keys)
		return refuse(error, REFUSE_PARAMS, "unknown setting '%.60s' in [%s %s]", key,
			      kind->word, name);
	r = section_add(kind, s, name, where, error);
	if (r != 0)
		return r;
	section = section_find(kind, s, name);
	r = kind->texts ? put_text(kind, section, i, value, error)
			: put_row(kind, section, i, value, error);
	if (r == 0) {
		section->marks.given |= UINT64_C(1) << i;
		section->marks.lines[i] = (uint16_t)section_line(where);
	}
	return r;
}

/* ---- what applies ---- */

static unsigned own_kind(const struct section_kind *kind, const void *section)
{
	return *(const unsigned *)((const char *)section + kind->own_kind);
}

static bool named_section_fits(const struct section_kind *kind, const void *section, unsigned key)
{
	return !kind->rows[key].kinds || (kind->rows[key].kinds & 1U << own_kind(kind, section));
}

static bool is_given(const void *section, unsigned key)
{
	return ((const struct section *)section)->marks.given >> key & 1;
}

int section_check_kinds(const struct section_kind *kind, const void *section, struct error *error)
{
	for (unsigned i = 0; i < kind->n_keys; i++) {
		if (is_given(section, i) && !named_section_fits(kind, section, i))
			return refuse(error, REFUSE_PARAMS, "[%s %s]: %s is not valid for kind %s",
				      kind->word, (const char *)section, kind->rows[i].key,
				      kind->rows[0].words[own_kind(kind, section)]);
	}
	return 0;
}

int sections_check(const struct settings *s, struct error *error)
{
	for (unsigned i = 0; i < N_SECTION_KINDS; i++) {
		const struct section_kind *kind = section_kinds[i];

		for (unsigned k = 0; kind->check && k < *count_of(kind, s); k++) {
			int r = kind->check(section_at(kind, s, k), error);

			if (r != 0)
				return r;
		}
	}
	return 0;
}

unsigned sections_secrets(const struct settings *s, const char **out, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < N_SECTION_KINDS; i++) {
		const struct section_kind *kind = section_kinds[i];

		for (unsigned k = 0; k < *count_of(kind, s) * kind->n_keys; k++) {
			const struct setting *row = &kind->rows[k % kind->n_keys];
			const char *at = section_at(kind, s, k / kind->n_keys) + row->offset;

			if (row->type == SET_VARIABLE && at[0] && n < max)
				out[n++] = at;
		}
	}
	return n;
}

bool section_key_equal(const struct section_kind *kind, unsigned key, const void *a, const void *b)
{
	const char *was = kind->texts ? section_text(kind, a, key) : NULL;
	const char *now = kind->texts ? section_text(kind, b, key) : NULL;

	if (!kind->texts)
		return setting_equal(&kind->rows[key], a, b);
	return was && now ? strcmp(was, now) == 0 : was == now;
}

bool section_equal(const struct section_kind *kind, const void *a, const void *b)
{
	bool equal = strcmp(a, b) == 0;

	for (unsigned i = 0; equal && i < kind->n_keys; i++)
		equal = section_key_equal(kind, i, a, b);
	return equal;
}

bool sections_equal(const struct section_kind *kind, const struct settings *a,
		    const struct settings *b)
{
	bool equal = *count_of(kind, a) == *count_of(kind, b);

	for (unsigned i = 0; equal && i < *count_of(kind, a); i++)
		equal = section_equal(kind, section_at(kind, a, i), section_at(kind, b, i));
	return equal;
}

/* ---- out ---- */

/* What applies to the section's kind, and anything else that was set. */
static void named_section_write_key(const struct section_kind *kind, const void *section,
				    unsigned key, FILE *out)
{
	const struct setting *row = &kind->rows[key];
	const char *text = kind->texts ? section_text(kind, section, key) : NULL;

	if (text)
		setting_write_text(row->key, row->doc, text, out);
	else if (!kind->texts && (is_given(section, key) || !kind->own_kind ||
				  (own_kind(kind, section) != kind->unknown_kind &&
				   named_section_fits(kind, section, key))))
		setting_write(row, section, out);
}

void section_write(const struct section_kind *kind, const struct settings *s, FILE *out)
{
	for (unsigned i = 0; i < *count_of(kind, s); i++) {
		const char *section = section_at(kind, s, i);

		fprintf(out, "\n[%s %s]\n", kind->word, section);
		for (unsigned k = 0; k < kind->n_keys; k++)
			named_section_write_key(kind, section, k, out);
	}
}

/* ---- the environment ---- */

static char env_char(char c)
{
	return (char)(isalnum((unsigned char)c) ? toupper((unsigned char)c) : '_');
}

/* Whether the n bytes of text are the environment's spelling of the name. */
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

/* Writes "KOINE_WORD_" and returns its length. */
static size_t env_prefix(const struct section_kind *kind, char out[ENV_NAME_MAX])
{
	setting_variable(kind->word, "", out);
	return strlen(out);
}

/* Finds the key in "NAME_KEY": the longest that matches, so that NAME_KEY_COMMAND is not
 * `command`. NULL: there is none, and all of it is the name. */
static const char *env_key(const struct section_kind *kind, const char *text, size_t n,
			   size_t *ret_name_len)
{
	const char *best = NULL;
	size_t best_len = 0;

	for (unsigned i = 0; i < kind->n_keys; i++) {
		const char *key = kind->rows[i].key;
		size_t len = strlen(key);

		if (len > best_len && n > len + 1 && text[n - len - 1] == '_' &&
		    env_same(key, text + n - len, len)) {
			best = key;
			best_len = len;
		}
	}
	*ret_name_len = best ? n - best_len - 1 : n;
	return best;
}

/* The name of an existing section that the variable means, or a new one in lower case. `entry`
 * follows the prefix; its first n bytes are the name. */
static int env_name(const struct section_kind *kind, const struct settings *s, const char *entry,
		    size_t n, char out[SECTION_NAME_MAX + 1], struct error *error)
{
	const char *found = NULL;
	char prefix[ENV_NAME_MAX];

	env_prefix(kind, prefix);
	for (unsigned i = 0; i < *count_of(kind, s); i++) {
		const char *name = section_at(kind, s, i);

		if (!env_same(name, entry, n))
			continue;
		if (found)
			return refuse(error, REFUSE_PARAMS,
				      "environment: %s%.*s is ambiguous: it may mean %s %s or %s",
				      prefix, (int)n, entry, kind->word, found, name);
		found = name;
	}
	if (n > SECTION_NAME_MAX)
		return refuse(error, REFUSE_PARAMS,
			      "environment: %s%.60s: a name has at most %d characters", prefix,
			      entry, SECTION_NAME_MAX);
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)entry[i]);
	out[n] = '\0';
	if (found)
		memcpy(out, found, n);
	return 0;
}

static int read_variable(const struct section_kind *kind, struct settings *s, const char *variable,
			 size_t prefix, struct error *error)
{
	const char *entry = variable + prefix;
	size_t n = strcspn(entry, "=");
	size_t name_len;
	const char *key = env_key(kind, entry, n, &name_len);
	char name[SECTION_NAME_MAX + 1];
	struct error inner;
	int r;

	if (!key && kind->bare && !kind->check_bare)
		return 0;
	if (!key && !kind->bare)
		return refuse(error, REFUSE_PARAMS, "environment: unknown setting %.*s",
			      (int)(prefix + (n < 100 ? n : 100)), variable);
	r = env_name(kind, s, entry, name_len, name, error);
	if (r != 0)
		return r;
	if (key)
		r = section_set(kind, s, name, key, entry[n] ? entry + n + 1 : "", "environment",
				&inner);
	else
		r = kind->check_bare(name, &inner);
	return r == 0 ? 0 : refuse(error, REFUSE_PARAMS, "environment: %s", inner.text);
}

/* KOINE_AGENT_SERVER_NAME_KEY is not of [agent SERVER_NAME]: the longest word counts. */
static bool is_of_another(const struct section_kind *kind, const char *variable)
{
	char prefix[ENV_NAME_MAX], other[ENV_NAME_MAX];
	const size_t n = env_prefix(kind, prefix);

	for (unsigned i = 0; i < N_SECTION_KINDS; i++) {
		const size_t len = env_prefix(section_kinds[i], other);
		const char *entry = variable + len;
		size_t name_len;

		if (len > n && strncmp(other, prefix, n) == 0 &&
		    strncmp(variable, other, len) == 0 &&
		    env_key(section_kinds[i], entry, strcspn(entry, "="), &name_len))
			return true;
	}
	return false;
}

int section_read_environment(const struct section_kind *kind, struct settings *s,
			     struct error *error)
{
	char prefix[ENV_NAME_MAX];
	const size_t n = env_prefix(kind, prefix);

	for (char **entry = environ; entry && *entry; entry++) {
		int r = 0;

		if (strncmp(*entry, prefix, n) == 0 && !is_of_another(kind, *entry))
			r = read_variable(kind, s, *entry, n, error);
		if (r != 0)
			return r;
	}
	return 0;
}
