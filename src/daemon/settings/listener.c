#include "daemon/settings/listener.h"

#include <string.h>

#include "daemon/settings/named_section.h"

static const struct setting row = {
	"listen",
	"allow_uids",
	SET_UIDS,
	offsetof(struct listener_setting, allow_uids),
	0,
	0,
	"users beside our own and root who may connect there",
};

static struct listener_setting *find(const struct listener_settings *l, const char *dialect)
{
	for (unsigned i = 0; i < l->n; i++) {
		if (strcmp(l->list[i].dialect, dialect) == 0)
			return (struct listener_setting *)&l->list[i];
	}
	return NULL;
}

int listener_settings_set(struct listener_settings *l, const char *dialect, const char *key,
			  const char *value, struct why *why)
{
	struct listener_setting *s = find(l, dialect);
	char section[DIALECT_NAME_MAX + 8];

	if (!dialect[0] || strlen(dialect) > DIALECT_NAME_MAX)
		return refuse(why, REFUSE_PARAMS, "no dialect '%.40s' to listen for", dialect);
	if (strcmp(key, row.key) != 0)
		return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [listen %s]", key,
			      dialect);
	if (!s && l->n == LISTENERS_MAX)
		return refuse(why, REFUSE_LIMIT, "more than %d [listen DIALECT]", LISTENERS_MAX);
	if (!s) {
		s = &l->list[l->n++];
		*s = (struct listener_setting) {0};
		memcpy(s->dialect, dialect, strlen(dialect) + 1);
	}
	snprintf(section, sizeof(section), "listen.%s", dialect);
	return setting_apply(&row, s, section, value, why);
}

/* ---- as a section ---- */

static const char *key_name(unsigned i)
{
	(void)i;
	return row.key;
}

static const char *dialect_name(const void *settings, unsigned i)
{
	const struct listener_settings *l = settings;

	return i < l->n ? l->list[i].dialect : NULL;
}

static int set_from_environment(void *settings, const char *name, const char *key,
				const char *value, struct why *why)
{
	return listener_settings_set(settings, name, key, value, why);
}

int listener_settings_read_environment(struct listener_settings *l, struct why *why)
{
	static const struct section_kind listen_section = {
		.word = "listen",
		.its = "a dialect's",
		.env = "KOINE_LISTEN_",
		.bare = true,
		.n_keys = 1,
		.key = key_name,
		.name = dialect_name,
		.set = set_from_environment,
	};

	return section_read_environment(&listen_section, l, why);
}

/* ---- out ---- */

void listener_settings_write(const struct listener_settings *l, FILE *out)
{
	for (unsigned i = 0; i < l->n; i++) {
		fprintf(out, "\n[listen %s]\n", l->list[i].dialect);
		setting_write(&row, &l->list[i], out);
	}
}

const struct uids *listener_settings_uids(const struct listener_settings *l, const char *dialect)
{
	static const struct uids nobody = {.n = 0};
	const struct listener_setting *s = find(l, dialect);

	return s ? &s->allow_uids : &nobody;
}
