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

void *section_find(const struct section_kind *kind, const struct settings *s, const char *name)
{
	for (unsigned i = 0; i < *count_of(kind, s); i++) {
		if (strcmp(section_at(kind, s, i), name) == 0)
			return section_at(kind, s, i);
	}
	return NULL;
}

int section_check_name(const struct section_kind *kind, const char *name, struct why *why)
{
	size_t n = strlen(name);

	if (n > 0 && n <= SECTION_NAME_MAX &&
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n)
		return 0;
	return refuse(why, REFUSE_PARAMS,
		      "[%s %.45s]: the name must have 1 to %d letters, digits, '.', '_' or '-'",
		      kind->word, name, SECTION_NAME_MAX);
}

static int check_name(const struct section_kind *kind, const char *name, struct why *why)
{
	return kind->check_name ? kind->check_name(name, why) : section_check_name(kind, name, why);
}

static int refuse_more(const struct section_kind *kind, const char *name, struct why *why)
{
	if (kind->short_limit)
		return refuse(why, REFUSE_LIMIT, "too many %s (limit %u)", kind->several,
			      kind->max);
	return refuse(why, REFUSE_LIMIT, "[%s %s]: too many %s (limit %u)", kind->word, name,
		      kind->several, kind->max);
}

int section_add(const struct section_kind *kind, struct settings *s, const char *name,
		const char *where, struct why *why)
{
	unsigned *n = count_of(kind, s);
	int r = check_name(kind, name, why);
	char *section;

	if (r != 0 || section_find(kind, s, name))
		return r;
	if (*n == kind->max)
		return refuse_more(kind, name, why);
	section = section_at(kind, s, (*n)++);
	memset(section, 0, kind->size);
	if (kind->init)
		kind->init(section, name, where);
	memcpy(section, name, strlen(name) + 1);
	return 0;
}

static const char *key_name(const struct section_kind *kind, unsigned i)
{
	return kind->rows ? kind->rows[i].key : kind->keys[i].name;
}

static struct section_texts *texts_of(const struct section_kind *kind, const void *section)
{
	return (struct section_texts *)((char *)section + kind->texts);
}

const char *section_text(const struct section_kind *kind, const void *section, unsigned key)
{
	const struct section_texts *t = texts_of(kind, section);

	return t->at[key] ? (const char *)(t + 1) + t->at[key] : NULL;
}

/* A changed text takes new space; settings are read only a few times. */
static int put_text(const struct section_kind *kind, void *section, unsigned key, const char *value,
		    struct why *why)
{
	struct section_texts *t = texts_of(kind, section);
	const char *before = section_text(kind, section, key);
	size_t n = strlen(value) + 1;
	int r = kind->check_text ? kind->check_text(section, key, value, why) : 0;

	if (r != 0 || (before && strcmp(before, value) == 0))
		return r;
	if (t->used == 0)
		t->used = 1;
	if (n > kind->texts_size - t->used)
		return refuse(why, REFUSE_TOO_LARGE, "[%s %s]: the values exceed %zu bytes",
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

static uint32_t hash_key(const struct section_kind *kind, const char *name, const char *key)
{
	char whole[2 * SECTION_NAME_MAX + 64];
	uint64_t h;

	snprintf(whole, sizeof(whole), "%s.%s.%s", kind->word, name, key);
	h = text_hash(TEXT_HASH, text_of(whole));
	return (uint32_t)(h ^ h >> 32);
}

static void note_line(const struct section_kind *kind, struct settings *s, const char *name,
		      const char *key, unsigned line)
{
	uint32_t h = hash_key(kind, name, key);
	unsigned i = 0;

	while (i < s->n_section_lines && s->section_lines[i].key != h)
		i++;
	if (i == SECTION_LINES_MAX)
		return;
	s->section_lines[i] = (struct section_line) {.key = h, .line = (uint16_t)line};
	if (i == s->n_section_lines)
		s->n_section_lines++;
}

static unsigned line_of_key(const struct section_kind *kind, const struct settings *s,
			    const char *name, const char *key)
{
	uint32_t h = hash_key(kind, name, key);

	for (unsigned i = 0; i < s->n_section_lines; i++) {
		if (s->section_lines[i].key == h)
			return s->section_lines[i].line;
	}
	return 0;
}

unsigned section_row_line(const struct section_kind *kind, const struct settings *s,
			  const char *name, const char *key)
{
	unsigned first = 0;

	for (unsigned i = 0; i < kind->n_keys; i++) {
		unsigned line = line_of_key(kind, s, name, key_name(kind, i));

		if (key && strcmp(key, key_name(kind, i)) == 0)
			return line;
		if (line > 0 && (first == 0 || line < first))
			first = line;
	}
	return first;
}

unsigned section_first_line(const struct section_kind *kind, const struct settings *s,
			    const char *name)
{
	const void *section = section_find(kind, s, name);
	const struct section_texts *t = section && !kind->rows ? texts_of(kind, section) : NULL;
	unsigned first = t ? 0 : section_row_line(kind, s, name, NULL);

	for (unsigned i = 0; t && i < kind->n_keys; i++) {
		if (t->lines[i] > 0 && (first == 0 || t->lines[i] < first))
			first = t->lines[i];
	}
	return first;
}

static int put_row(const struct section_kind *kind, void *section, unsigned key, const char *value,
		   struct why *why)
{
	char name[SECTION_NAME_MAX + 16];

	snprintf(name, sizeof(name), "%s.%s", kind->word, (const char *)section);
	return setting_apply(&kind->rows[key], section, name, value, why);
}

int section_set(const struct section_kind *kind, struct settings *s, const char *name,
		const char *key, const char *value, const char *where, struct why *why)
{
	int r = check_name(kind, name, why);
	void *section;
	unsigned i = 0;

	if (r != 0)
		return r;
	while (i < kind->n_keys && strcmp(key_name(kind, i), key) != 0)
		i++;
	if (i == kind->n_keys)
		return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [%s %s]", key,
			      kind->word, name);
	r = section_add(kind, s, name, where, why);
	if (r != 0)
		return r;
	section = section_find(kind, s, name);
	r = kind->rows ? put_row(kind, section, i, value, why)
		       : put_text(kind, section, i, value, why);
	if (r == 0 && !kind->rows)
		texts_of(kind, section)->lines[i] = (uint16_t)section_line(where);
	if (r == 0 && kind->rows)
		note_line(kind, s, name, key, section_line(where));
	if (r == 0 && kind->set)
		kind->set(section, i);
	return r;
}

static void write_key(const struct section_kind *kind, const void *section, unsigned key, FILE *out)
{
	const char *text = kind->rows ? NULL : section_text(kind, section, key);

	if (kind->rows && (!kind->shows || kind->shows(section, key)))
		setting_write(&kind->rows[key], section, out);
	if (text)
		setting_write_text(kind->keys[key].name, kind->keys[key].doc, text, out);
}

void section_write(const struct section_kind *kind, const struct settings *s, FILE *out)
{
	for (unsigned i = 0; i < *count_of(kind, s); i++) {
		const char *section = section_at(kind, s, i);

		fprintf(out, "\n[%s %s]\n", kind->word, section);
		for (unsigned k = 0; k < kind->n_keys; k++)
			write_key(kind, section, k, out);
	}
}

/* ---- the environment ---- */

enum { PREFIX_MAX = 32 };

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
static size_t env_prefix(const struct section_kind *kind, char out[PREFIX_MAX])
{
	int n = snprintf(out, PREFIX_MAX, "KOINE_%s_", kind->word);

	for (char *p = out; *p; p++)
		*p = env_char(*p);
	return (size_t)n;
}

/* Finds the key in "NAME_KEY": the longest that matches, so that NAME_KEY_COMMAND is not
 * `command`. */
static const char *env_key(const struct section_kind *kind, const char *text, size_t n,
			   size_t *ret_name_len)
{
	const char *best = NULL;
	size_t best_len = 0;

	for (unsigned i = 0; i < kind->n_keys; i++) {
		const char *key = key_name(kind, i);
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

/* The name of an existing section that the variable means, or a new one in lower case. `entry`
 * follows the prefix; its first n bytes are the name. */
static int env_name(const struct section_kind *kind, const struct settings *s, const char *entry,
		    size_t n, char out[SECTION_NAME_MAX + 1], struct why *why)
{
	const char *found = NULL;
	char prefix[PREFIX_MAX];

	env_prefix(kind, prefix);
	for (unsigned i = 0; i < *count_of(kind, s); i++) {
		const char *name = section_at(kind, s, i);

		if (!env_same(name, entry, n))
			continue;
		if (found)
			return refuse(why, REFUSE_PARAMS,
				      "environment: %s%.*s is ambiguous: it may mean %s %s or %s",
				      prefix, (int)n, entry, kind->word, found, name);
		found = name;
	}
	if (n > SECTION_NAME_MAX)
		return refuse(why, REFUSE_PARAMS,
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
			 size_t prefix, struct why *why)
{
	const char *entry = variable + prefix;
	size_t n = strcspn(entry, "=");
	size_t name_len;
	const char *key = env_key(kind, entry, n, &name_len);
	char name[SECTION_NAME_MAX + 1];
	struct why inner;
	int r;

	if (!key && kind->bare)
		return 0;
	if (!key)
		return refuse(why, REFUSE_PARAMS, "environment: unknown setting %.*s",
			      (int)(prefix + (n < 100 ? n : 100)), variable);
	r = env_name(kind, s, entry, name_len, name, why);
	if (r != 0)
		return r;
	r = section_set(kind, s, name, key, entry[n] ? entry + n + 1 : "", "environment", &inner);
	return r == 0 ? 0 : refuse(why, REFUSE_PARAMS, "environment: %s", inner.text);
}

/* KOINE_AGENT_SERVER_NAME_KEY is not of [agent SERVER_NAME]: the longest word counts. */
static bool is_of_another(const struct section_kind *kind, const char *variable)
{
	char prefix[PREFIX_MAX], other[PREFIX_MAX];
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

int section_read_environment(const struct section_kind *kind, struct settings *s, struct why *why)
{
	char prefix[PREFIX_MAX];
	const size_t n = env_prefix(kind, prefix);

	for (char **entry = environ; entry && *entry; entry++) {
		int r = 0;

		if (strncmp(*entry, prefix, n) == 0 && !is_of_another(kind, *entry))
			r = read_variable(kind, s, *entry, n, why);
		if (r != 0)
			return r;
	}
	return 0;
}
