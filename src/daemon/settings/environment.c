/* KOINE_SECTION_KEY for every setting, and variables that the dialects' own programs read. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/dialects.h"
#include "daemon/settings/settings.h"

void setting_variable(const char *section, const char *key, char out[ENV_NAME_MAX])
{
	snprintf(out, ENV_NAME_MAX, "KOINE_%s_%s", section, key);
	for (char *p = out; *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
}

static const char *env_of(const char *section, const char *key)
{
	char name[ENV_NAME_MAX];

	setting_variable(section, key, name);
	return getenv(name);
}

/* "NAME=..." */
static bool env_is(const char *entry, const char *name)
{
	size_t n = strlen(name);

	return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* A variable of one of our sections that names no setting: a typo that would go unnoticed. */
static bool env_is_unknown(const struct settings *s, const char *entry)
{
	const struct setting *row;
	char name[ENV_NAME_MAX];
	bool ours = false;
	void *base;

	if (strncmp(entry, "KOINE_", 6) != 0)
		return false;
	for (unsigned i = 0; (row = settings_row(s, i, &base)); i++) {
		setting_variable(row->section, row->key, name);
		if (env_is(entry, name))
			return false;
		setting_variable(row->section, "", name);
		ours = ours || strncmp(entry, name, strlen(name)) == 0;
	}
	return ours;
}

static int check_env_names(const struct settings *s, struct error *error)
{
	for (char **entry = environ; entry && *entry; entry++) {
		if (env_is_unknown(s, *entry))
			return refuse(error, REFUSE_PARAMS, "environment: unknown setting %.*s",
				      (int)strcspn(*entry, "="), *entry);
	}
	return 0;
}

static int read_env(struct settings *s, const char *section, const char *key, struct error *error)
{
	const char *value = env_of(section, key);
	struct error inner;

	if (!value || settings_set(s, section, key, value, &inner) == 0)
		return 0;
	return refuse(error, REFUSE_PARAMS, "environment: %s", inner.text);
}

static int read_gone(struct settings *s, struct error *error)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n_settings_gone; i++)
		r = read_env(s, settings_gone[i].section, settings_gone[i].key, error);
	return r;
}

/* A secret may also come from a variable that its dialect's own programs read; ours wins. */
static int read_row(struct settings *s, const struct setting *row, struct error *error)
{
	const char *known = row->type == SET_SECRET && row->secret ? getenv(row->secret) : NULL;
	int r = known ? settings_set(s, row->section, row->key, known, error) : 0;

	return r != 0 ? r : read_env(s, row->section, row->key, error);
}

static int environment_read_rows(struct settings *s, struct error *error)
{
	const struct setting *row;
	void *base;
	int r = 0;

	for (unsigned i = 0; r == 0 && (row = settings_row(s, i, &base)); i++)
		r = read_row(s, row, error);
	return r;
}

static bool env_is_on(const char *name)
{
	const char *value = getenv(name);
	bool on = false;

	return value && setting_parse_bool(value, &on) == 0 && on;
}

static bool asks_for_debug(void)
{
	bool on = env_is_on("KOINE_DEBUG");

	for (unsigned i = 0; i < n_dialects; i++) {
		const struct dialect_life *life = dialects[i]->life;

		on = on || (life && life->debug_variable && env_is_on(life->debug_variable));
	}
	return on;
}

int settings_read_environment(struct settings *s, struct error *error)
{
	int r = read_gone(s, error) ?: check_env_names(s, error) ?: environment_read_rows(s, error);

	for (unsigned i = 0; r == 0 && i < N_SECTION_KINDS; i++)
		r = section_read_environment(section_kinds[i], s, error);
	for (unsigned i = 0; r == 0 && i < n_dialects; i++)
		r = read_env(s, "listen", dialects[i]->name, error);
	if (asks_for_debug()) {
		s->log_level = LOG_LEVEL_DEBUG;
		s->log_messages = true;
	}
	return r;
}
