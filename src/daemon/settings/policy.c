#include "daemon/settings/policy.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/settings/setting.h"

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

static const struct section_kind policy_section;

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
	int r = section_check_name(&policy_section, name, why);

	if (r != 0 || find(a, name))
		return r;
	if (a->n_policies == POLICIES_MAX)
		return refuse(why, REFUSE_LIMIT, "[policy %s]: more than %d policies", name,
			      POLICIES_MAX);
	p = &a->policies[a->n_policies++];
	memset(p, 0, sizeof(*p));
	snprintf(p->name, sizeof(p->name), "%s", name);
	return 0;
}

static int put(struct policy_setting *p, unsigned key, const char *value, struct why *why)
{
	const struct section_text t = {p->text, sizeof(p->text), &p->used};

	if (section_keep(t, &p->at[key], value))
		return 0;
	return refuse(why, REFUSE_TOO_LARGE, "[policy %s]: more than %d bytes", p->name,
		      POLICY_TEXT_MAX);
}

static bool is_verdict(const char *word)
{
	return strcmp(word, "allow") == 0 || strcmp(word, "ask") == 0 || strcmp(word, "deny") == 0;
}

int policy_settings_set(struct approval_settings *a, const char *name, const char *key,
			const char *value, struct why *why)
{
	unsigned k = section_find_key(&policy_section, key);
	int r = section_check_name(&policy_section, name, why);

	if (r != 0)
		return r;
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

/* ---- as a section ---- */

static const char *key_name(unsigned i)
{
	return keys[i].name;
}

static const char *policy_name(const void *settings, unsigned i)
{
	const struct approval_settings *a = settings;

	return i < a->n_policies ? a->policies[i].name : NULL;
}

static int set_from_environment(void *settings, const char *name, const char *key,
				const char *value, struct why *why)
{
	return policy_settings_set(settings, name, key, value, why);
}

static const struct section_kind policy_section = {
	.word = "policy",
	.its = "a policy's",
	.env = "KOINE_POLICY_",
	.n_keys = N_POLICY_KEYS,
	.key = key_name,
	.name = policy_name,
	.set = set_from_environment,
};

int policy_settings_read_environment(struct approval_settings *a, struct why *why)
{
	return section_read_environment(&policy_section, a, why);
}

/* ---- out ---- */

void policy_settings_write(const struct approval_settings *a, FILE *out)
{
	for (unsigned i = 0; i < a->n_policies; i++) {
		fprintf(out, "\n[policy %s]\n", a->policies[i].name);
		for (unsigned k = 0; k < N_POLICY_KEYS; k++) {
			const char *value = policy_setting_get(&a->policies[i], (enum policy_key)k);

			if (value)
				setting_write_text(keys[k].name, keys[k].doc, value, out);
		}
	}
}
