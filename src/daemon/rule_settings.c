#include "daemon/rule_settings.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	const char *doc;
} keys[N_RULE_KEYS] = {
	[RULE_PROJECT] = {"project", "the folder whose tasks and events it is for; empty: any"},
	[RULE_DESCRIPTION] = {"description", "for people"},
	[RULE_ENABLED] = {"enabled", "no: it is there, but does nothing until it is switched on"},
	[RULE_CRON] = {"cron", "when: minute, hour, day of month, month, day of week"},
	[RULE_ZONE] = {"zone", "the time zone of cron; empty: UTC"},
	[RULE_EVERY] = {"every", "when: 90, 10s, 15m, 2h, 1d"},
	[RULE_CATCH_UP] = {"catch_up", "what was missed: none, one or all"},
	[RULE_WATCH] = {"watch", "when a file changes in these folders"},
	[RULE_IGNORE] = {"ignore", "names below them that do not count"},
	[RULE_EXTENSIONS] = {"extensions", "only files that end so"},
	[RULE_DEBOUNCE] = {"debounce", "milliseconds in which changes of a file are one"},
	[RULE_EVENT] = {"event", "when an event of this type is in the log: task.*"},
	[RULE_SOURCE] = {"source", "... or of this source"},
	[RULE_PATTERN] = {"pattern", "... or a regular expression over type:source"},
	[RULE_CONDITION] = {"condition1", "FIELD OPERATOR VALUE; up to condition9"},
	[RULE_CONDITION + 1] = {"condition2", "another"},
	[RULE_CONDITION + 2] = {"condition3", "another"},
	[RULE_CONDITION + 3] = {"condition4", "another"},
	[RULE_CONDITION + 4] = {"condition5", "another"},
	[RULE_CONDITION + 5] = {"condition6", "another"},
	[RULE_CONDITION + 6] = {"condition7", "another"},
	[RULE_CONDITION + 7] = {"condition8", "another"},
	[RULE_CONDITION + 8] = {"condition9", "another"},
	[RULE_PROMPT] = {"prompt", "submits a task; {{payload.path}} is filled in"},
	[RULE_AGENT] = {"agent", "of the task"},
	[RULE_RUNNER] = {"runner", "the agent of the settings that runs it"},
	[RULE_GROUP] = {"group", "of the task"},
	[RULE_PRIORITY] = {"priority", "of the task"},
	[RULE_COMMAND] = {"command", "runs it by /bin/sh, with KOINE_EVENT_JSON"},
	[RULE_WEBHOOK] = {"webhook", "posts the event as JSON to this URL"},
	[RULE_NOTIFY] = {"notify", "tells the desktop"},
	[RULE_COOLDOWN] = {"cooldown", "at most once in this time"},
	[RULE_APPROVAL] = {"approval", "yes: somebody must allow it first"},
};

const char *rule_key_name(enum rule_key key)
{
	return keys[key].name;
}

const char *rule_setting_get(const struct rule_setting *r, enum rule_key key)
{
	return r->at[key] ? r->text + r->at[key] : NULL;
}

/* ---- in ---- */

static int check_name(const char *name, struct why *why)
{
	size_t n = strlen(name);

	if (n == 0 || n > RULE_LABEL_MAX ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != n)
		return refuse(why, REFUSE_PARAMS,
			      "[rule %.45s]: a rule's name has 1 to %d letters, digits, '.', '_' "
			      "or '-'",
			      name, RULE_LABEL_MAX);
	return 0;
}

static struct rule_setting *find(struct rule_settings *r, const char *name)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (strcmp(r->list[i].name, name) == 0)
			return &r->list[i];
	}
	return NULL;
}

static void add(struct rule_settings *r, const char *name, const char *where)
{
	struct rule_setting *s = &r->list[r->n++];

	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->where, sizeof(s->where), "%s", where);
	s->used = 1; /* 0 is for what is not given */
}

static unsigned find_key(const char *key)
{
	unsigned i = 0;

	while (i < N_RULE_KEYS && strcmp(keys[i].name, key) != 0)
		i++;
	return i;
}

/* A value that is given again takes new room: settings are read a few times, not for ever. */
static int put(struct rule_setting *s, unsigned key, const char *value, struct why *why)
{
	size_t n = strlen(value) + 1;

	if (s->at[key] && strcmp(s->text + s->at[key], value) == 0)
		return 0;
	if (n > (size_t)(RULE_TEXT_MAX - s->used))
		return refuse(why, REFUSE_TOO_LARGE, "[rule %s]: more than %d bytes", s->name,
			      RULE_TEXT_MAX);
	memcpy(s->text + s->used, value, n);
	s->at[key] = s->used;
	s->used = (uint16_t)(s->used + n);
	return 0;
}

int rule_settings_add(struct rule_settings *r, const char *name, const char *where, struct why *why)
{
	int e = check_name(name, why);

	if (e != 0 || find(r, name))
		return e;
	if (r->n == RULE_SETTINGS_MAX)
		return refuse(why, REFUSE_LIMIT, "[rule %s]: more than %d rules", name,
			      RULE_SETTINGS_MAX);
	add(r, name, where);
	return 0;
}

int rule_settings_set(struct rule_settings *r, const char *name, const char *key, const char *value,
		      const char *where, struct why *why)
{
	unsigned k = find_key(key);
	int e = check_name(name, why);

	if (e != 0)
		return e;
	if (k == N_RULE_KEYS)
		return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [rule %s]", key,
			      name);
	e = rule_settings_add(r, name, where, why);
	return e != 0 ? e : put(find(r, name), k, value, why);
}

/* ---- the environment ---- */

static char env_char(char c)
{
	return (char)(isalnum((unsigned char)c) ? toupper((unsigned char)c) : '_');
}

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

/* "NAME_KEY": the longest key that fits the end. */
static unsigned env_key(const char *text, size_t n, size_t *ret_name_len)
{
	unsigned best = N_RULE_KEYS;
	size_t best_len = 0;

	for (unsigned i = 0; i < N_RULE_KEYS; i++) {
		size_t len = strlen(keys[i].name);

		if (len > best_len && n > len + 1 && text[n - len - 1] == '_' &&
		    env_same(keys[i].name, text + n - len, len)) {
			best = i;
			best_len = len;
		}
	}
	*ret_name_len = n - best_len - 1;
	return best;
}

/* One that there is, or a new one in lower case. */
static void env_name(const struct rule_settings *r, const char *text, size_t n,
		     char out[RULE_LABEL_MAX + 1])
{
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[n] = '\0';
	for (unsigned i = 0; i < r->n; i++) {
		if (env_same(r->list[i].name, text, n))
			snprintf(out, RULE_LABEL_MAX + 1, "%s", r->list[i].name);
	}
}

static int read_variable(struct rule_settings *r, const char *text, struct why *why)
{
	size_t n = strcspn(text, "=");
	size_t name_len;
	unsigned key = env_key(text, n, &name_len);
	char name[RULE_LABEL_MAX + 1];
	struct why inner;

	if (key == N_RULE_KEYS || name_len > RULE_LABEL_MAX)
		return refuse(why, REFUSE_PARAMS, "environment: KOINE_RULE_%.*s names no setting",
			      (int)(n < 100 ? n : 100), text);
	env_name(r, text, name_len, name);
	if (rule_settings_set(r, name, keys[key].name, text[n] ? text + n + 1 : "", "environment",
			      &inner) == 0)
		return 0;
	return refuse(why, REFUSE_PARAMS, "environment: %s", inner.text);
}

int rule_settings_read_environment(struct rule_settings *r, struct why *why)
{
	static const char prefix[] = "KOINE_RULE_";

	for (char **entry = environ; entry && *entry; entry++) {
		int e = 0;

		if (strncmp(*entry, prefix, strlen(prefix)) == 0)
			e = read_variable(r, *entry + strlen(prefix), why);
		if (e != 0)
			return e;
	}
	return 0;
}

/* ---- out ---- */

static void write_line(const char *text, FILE *out)
{
	for (; *text; text++)
		fputc(*text == '\n' ? ' ' : *text, out);
	fputc('\n', out);
}

void rule_settings_write(const struct rule_settings *r, FILE *out)
{
	for (unsigned i = 0; i < r->n; i++) {
		fprintf(out, "\n[rule %s]\n", r->list[i].name);
		for (unsigned k = 0; k < N_RULE_KEYS; k++) {
			const char *value = rule_setting_get(&r->list[i], (enum rule_key)k);

			/* Tight: after a space, a value that begins with ';' is a comment. */
			if (!value)
				continue;
			fprintf(out, "; %s\n%s = ", keys[k].doc, keys[k].name);
			write_line(value, out);
		}
	}
}
