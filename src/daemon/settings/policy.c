#include "daemon/settings/policy.h"

#include <string.h>

#include "daemon/settings/settings.h"

SECTION_TEXTS(struct policy_setting, N_POLICY_KEYS);

static const struct section_key keys[N_POLICY_KEYS] = {
	[POLICY_VERDICT] = {"verdict", "verdict: allow, ask or deny"},
	[POLICY_AGENT] = {"agent", "pattern for the name of the agent; empty for any agent"},
	[POLICY_TOOL] = {"tool", "pattern for the name of the tool; empty for any tool"},
	[POLICY_INPUT] = {"input",
			  "pattern for the strings in the tool's input; empty for any input"},
	[POLICY_COMMENT] = {"comment", "comment that is sent to the agent with the verdict"},
};

int policy_settings_check(const struct approval_settings *a, struct why *why)
{
	for (unsigned i = 0; i < a->n_policies; i++) {
		if (!policy_setting_get(&a->policies[i], POLICY_VERDICT))
			return refuse(why, REFUSE_PARAMS,
				      "[policy %s]: verdict is required: allow, ask or deny",
				      a->policies[i].name);
	}
	return 0;
}

static bool is_verdict(const char *word)
{
	return strcmp(word, "allow") == 0 || strcmp(word, "ask") == 0 || strcmp(word, "deny") == 0;
}

static int check_text(const void *section, unsigned key, const char *text, struct why *why)
{
	const struct policy_setting *p = section;

	if (key != POLICY_VERDICT || is_verdict(text))
		return 0;
	return refuse(why, REFUSE_PARAMS, "policy.%s.verdict = %.40s: must be allow, ask or deny",
		      p->name, text);
}

const struct section_kind policy_section = {
	.word = "policy",
	.several = "policies",
	.list = offsetof(struct settings, approvals.policies),
	.n = offsetof(struct settings, approvals.n_policies),
	.size = sizeof(struct policy_setting),
	.max = POLICIES_MAX,
	.n_keys = N_POLICY_KEYS,
	.keys = keys,
	.texts = offsetof(struct policy_setting, texts),
	.texts_size = POLICY_TEXT_MAX,
	.check_text = check_text,
};

const char *policy_setting_get(const struct policy_setting *p, enum policy_key key)
{
	const char *value = section_text(&policy_section, p, key);

	return value && *value ? value : NULL;
}
