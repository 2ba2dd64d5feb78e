#include "daemon/settings/policy.h"

#include <string.h>

#include "daemon/settings/settings.h"

static const struct section_key keys[N_POLICY_KEYS] = {
	[POLICY_VERDICT] = {"verdict", "allow, ask or deny"},
	[POLICY_AGENT] = {"agent", "who asks, a pattern with * and ?; empty: any"},
	[POLICY_TOOL] = {"tool", "the tool, a pattern; empty: any"},
	[POLICY_INPUT] = {"input", "a pattern that any text in its input fits; empty: any"},
	[POLICY_COMMENT] = {"comment", "what the agent is told with it"},
};

const char *policy_setting_get(const struct policy_setting *p, enum policy_key key)
{
	const char *value = p->text + p->at[key];

	return p->at[key] && *value ? value : NULL;
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

static bool is_verdict(const char *word)
{
	return strcmp(word, "allow") == 0 || strcmp(word, "ask") == 0 || strcmp(word, "deny") == 0;
}

static int put(void *section, unsigned key, const char *value, struct why *why)
{
	struct policy_setting *p = section;
	const struct section_text t = {p->text, sizeof(p->text), &p->used};

	if (key == POLICY_VERDICT && !is_verdict(value))
		return refuse(why, REFUSE_PARAMS,
			      "policy.%s.verdict = %.40s: must be allow, ask or deny", p->name,
			      value);
	if (section_keep(t, &p->at[key], value))
		return 0;
	return refuse(why, REFUSE_TOO_LARGE, "[policy %s]: more than %d bytes", p->name,
		      POLICY_TEXT_MAX);
}

static void write_keys(const void *section, FILE *out)
{
	for (unsigned k = 0; k < N_POLICY_KEYS; k++) {
		const char *value = policy_setting_get(section, (enum policy_key)k);

		if (value)
			setting_write_text(keys[k].name, keys[k].doc, value, out);
	}
}

const struct section_kind policy_section = {
	.word = "policy",
	.its = "a policy's",
	.several = "policies",
	.list = offsetof(struct settings, approvals.policies),
	.n = offsetof(struct settings, approvals.n_policies),
	.size = sizeof(struct policy_setting),
	.max = POLICIES_MAX,
	.n_keys = N_POLICY_KEYS,
	.key = key_name,
	.put = put,
	.write = write_keys,
};
