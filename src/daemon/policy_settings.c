#include "daemon/policy_settings.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	const char *doc;
} keys[N_POLICY_KEYS] = {
	[POLICY_VERDICT] = {"verdict", "allow, ask or deny"},
	[POLICY_AGENT] = {"agent", "who asks, a pattern with * and ?; empty: any"},
	[POLICY_TOOL] = {"tool", "the tool, a pattern; empty: any"},
	[POLICY_INPUT] = {"input", "a pattern that any text in its input fits; empty: any"},
	[POLICY_COMMENT] = {"comment", "what the agent is told with it"},
};

void approval_settings_init(struct approval_settings *a)
{
	memset(a, 0, sizeof(*a));
	a->pending = 1000;
	a->keep_days = 365;
}

const char *policy_setting_get(const struct policy_setting *p, enum policy_key key)
{
	const char *value = p->text + p->at[key];

	return p->at[key] && *value ? value : NULL;
}

/* ---- in ---- */

static int check_name(const char *name, struct why *why)
{
	size_t n = strlen(name);

	if (n == 0 || n > POLICY_LABEL_MAX ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != n)
		return refuse(why, REFUSE_PARAMS,
			      "[policy %.45s]: a policy's name has 1 to %d letters, digits, '.', "
			      "'_' or '-'",
			      name, POLICY_LABEL_MAX);
	return 0;
}

static struct policy_setting *find(struct approval_settings *a, const char *name)
{
	for (unsigned i = 0; i < a->n_policies; i++) {
		if (strcmp(a->policies[i].name, name) == 0)
			return &a->policies[i];
	}
	return NULL;
}

int policy_settings_add(struct approval_settings *a, const char *name, struct why *why)
{
	struct policy_setting *p;
	int r = check_name(name, why);

	if (r != 0 || find(a, name))
		return r;
	if (a->n_policies == POLICIES_MAX)
		return refuse(why, REFUSE_LIMIT, "[policy %s]: more than %d policies", name,
			      POLICIES_MAX);
	p = &a->policies[a->n_policies++];
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->used = 1; /* 0 is for what is not given */
	return 0;
}

/* A value that is given again takes new room: settings are read a few times, not for ever. */
static int put(struct policy_setting *p, unsigned key, const char *value, struct why *why)
{
	size_t n = strlen(value) + 1;

	if (p->at[key] && strcmp(p->text + p->at[key], value) == 0)
		return 0;
	if (n > (size_t)(POLICY_TEXT_MAX - p->used))
		return refuse(why, REFUSE_TOO_LARGE, "[policy %s]: more than %d bytes", p->name,
			      POLICY_TEXT_MAX);
	memcpy(p->text + p->used, value, n);
	p->at[key] = p->used;
	p->used = (uint16_t)(p->used + n);
	return 0;
}

static bool is_verdict(const char *word)
{
	return strcmp(word, "allow") == 0 || strcmp(word, "ask") == 0 || strcmp(word, "deny") == 0;
}

int policy_settings_set(struct approval_settings *a, const char *name, const char *key,
			const char *value, struct why *why)
{
	unsigned k = 0;
	int r = check_name(name, why);

	if (r != 0)
		return r;
	while (k < N_POLICY_KEYS && strcmp(keys[k].name, key) != 0)
		k++;
	if (k == N_POLICY_KEYS)
		return refuse(why, REFUSE_PARAMS, "unknown setting '%.60s' in [policy %s]", key,
			      name);
	if (k == POLICY_VERDICT && !is_verdict(value))
		return refuse(why, REFUSE_PARAMS,
			      "policy.%s.verdict = %.40s: must be allow, ask or deny", name, value);
	r = policy_settings_add(a, name, why);
	return r != 0 ? r : put(find(a, name), k, value, why);
}

int policy_settings_check(const struct approval_settings *a, struct why *why)
{
	for (unsigned i = 0; i < a->n_policies; i++) {
		if (!policy_setting_get(&a->policies[i], POLICY_VERDICT))
			return refuse(why, REFUSE_PARAMS,
				      "[policy %s]: verdict is missing; it must be allow, ask or "
				      "deny",
				      a->policies[i].name);
	}
	return 0;
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

/* "NAME_KEY" */
static unsigned env_key(const char *text, size_t n, size_t *ret_name_len)
{
	for (unsigned i = 0; i < N_POLICY_KEYS; i++) {
		size_t len = strlen(keys[i].name);

		if (n > len + 1 && text[n - len - 1] == '_' &&
		    env_same(keys[i].name, text + n - len, len)) {
			*ret_name_len = n - len - 1;
			return i;
		}
	}
	return N_POLICY_KEYS;
}

/* One that there is, or a new one in lower case. */
static void env_name(const struct approval_settings *a, const char *text, size_t n,
		     char out[POLICY_LABEL_MAX + 1])
{
	for (size_t i = 0; i < n; i++)
		out[i] = (char)tolower((unsigned char)text[i]);
	out[n] = '\0';
	for (unsigned i = 0; i < a->n_policies; i++) {
		if (env_same(a->policies[i].name, text, n))
			snprintf(out, POLICY_LABEL_MAX + 1, "%s", a->policies[i].name);
	}
}

static int read_variable(struct approval_settings *a, const char *text, struct why *why)
{
	size_t n = strcspn(text, "=");
	size_t name_len = 0;
	unsigned key = env_key(text, n, &name_len);
	char name[POLICY_LABEL_MAX + 1];
	struct why inner;

	if (key == N_POLICY_KEYS || name_len > POLICY_LABEL_MAX)
		return refuse(why, REFUSE_PARAMS, "environment: KOINE_POLICY_%.*s names no setting",
			      (int)(n < 100 ? n : 100), text);
	env_name(a, text, name_len, name);
	if (policy_settings_set(a, name, keys[key].name, text[n] ? text + n + 1 : "", &inner) == 0)
		return 0;
	return refuse(why, REFUSE_PARAMS, "environment: %s", inner.text);
}

int policy_settings_read_environment(struct approval_settings *a, struct why *why)
{
	static const char prefix[] = "KOINE_POLICY_";

	for (char **entry = environ; entry && *entry; entry++) {
		int r = 0;

		if (strncmp(*entry, prefix, strlen(prefix)) == 0)
			r = read_variable(a, *entry + strlen(prefix), why);
		if (r != 0)
			return r;
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

void policy_settings_write(const struct approval_settings *a, FILE *out)
{
	for (unsigned i = 0; i < a->n_policies; i++) {
		fprintf(out, "\n[policy %s]\n", a->policies[i].name);
		for (unsigned k = 0; k < N_POLICY_KEYS; k++) {
			const char *value = policy_setting_get(&a->policies[i], (enum policy_key)k);

			/* Tight: after a space, a value that begins with ';' is a comment. */
			if (!value)
				continue;
			fprintf(out, "; %s\n%s = ", keys[k].doc, keys[k].name);
			write_line(value, out);
		}
	}
}
