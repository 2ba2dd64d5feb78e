/* The sections [listen DIALECT], [group NAME] and [policy NAME]. */
#include "daemon/settings/settings.h"

#include <string.h>

#include "daemon/dialects.h"

const struct setting listen_row = {
	"listen",
	"allow_uids",
	SET_UIDS,
	offsetof(struct listener_setting, allow_uids),
	0,
	0,
	"users who may connect, in addition to koined's user and root",
};

static int check_dialect(const char *name, struct error *error)
{
	const struct dialect *unused;

	return dialect_get(name, &unused, error);
}

const struct section_kind listen_section = {
	.word = "listen",
	.several = "[listen DIALECT]",
	.keys_make_it = true,
	.bare = true, /* KOINE_LISTEN_DIALECT is an address */
	.check_bare = check_dialect,
	.list = offsetof(struct settings, listeners.list),
	.n = offsetof(struct settings, listeners.n),
	.size = sizeof(struct listener_setting),
	.max = LISTENERS_MAX,
	.n_keys = 1,
	.rows = &listen_row,
	.check_name = check_dialect,
};

const struct uids *settings_uids(const struct settings *s, const char *dialect)
{
	static const struct uids nobody = {.n = 0};
	const struct listener_setting *l = section_find(&listen_section, s, dialect);

	return l ? &l->allow_uids : &nobody;
}

static const struct setting group_row = {
	"group",
	"parallel",
	SET_UNSIGNED,
	offsetof(struct group_setting, parallel),
	0,
	10000,
	"maximum number of running tasks of the group; 0 means no limit",
};

/* Clients may name groups freely. */
static int check_group(const char *name, struct error *error)
{
	if (!name[0] || strlen(name) > SECTION_NAME_MAX)
		return refuse(error, REFUSE_PARAMS,
			      "invalid group name '%.45s': expected 1 to %d characters", name,
			      SECTION_NAME_MAX);
	return 0;
}

const struct section_kind group_section = {
	.word = "group",
	.several = "groups",
	.keys_make_it = true,
	.list = offsetof(struct settings, tasks.groups),
	.n = offsetof(struct settings, tasks.n_groups),
	.size = sizeof(struct group_setting),
	.max = GROUPS_MAX,
	.n_keys = 1,
	.rows = &group_row,
	.check_name = check_group,
};

SECTION_TEXTS(struct policy_setting, N_POLICY_KEYS);

#define KEY(which, word, text)                                                                     \
	[POLICY_##which] = {.section = "policy", .key = (word), .type = SET_TEXT, .doc = (text)}

static const struct setting policy_rows[N_POLICY_KEYS] = {
	KEY(VERDICT, "verdict", "verdict: allow, ask or deny"),
	KEY(AGENT, "agent", "pattern for the name of the agent; empty means any agent"),
	KEY(TOOL, "tool", "pattern for the name of the tool; empty means any tool"),
	KEY(INPUT, "input", "pattern for the strings in the tool's input; empty means any input"),
	KEY(COMMENT, "comment", "comment that koined sends to the agent with the verdict"),
};

static int check_policy(const void *section, struct error *error)
{
	const struct policy_setting *p = section;

	if (policy_setting_get(p, POLICY_VERDICT))
		return 0;
	return refuse(error, REFUSE_PARAMS, "[policy %s]: verdict is required: allow, ask or deny",
		      p->name);
}

static bool is_verdict(const char *word)
{
	return strcmp(word, "allow") == 0 || strcmp(word, "ask") == 0 || strcmp(word, "deny") == 0;
}

static int check_verdict(const void *section, unsigned key, const char *text, struct error *error)
{
	const struct policy_setting *p = section;

	if (key != POLICY_VERDICT || is_verdict(text))
		return 0;
	return refuse(error, REFUSE_PARAMS,
		      "invalid policy.%s.verdict '%.40s': expected allow, ask or deny", p->name,
		      text);
}

const struct section_kind policy_section = {
	.word = "policy",
	.several = "policies",
	.list = offsetof(struct settings, approvals.policies),
	.n = offsetof(struct settings, approvals.n_policies),
	.size = sizeof(struct policy_setting),
	.max = POLICIES_MAX,
	.n_keys = N_POLICY_KEYS,
	.rows = policy_rows,
	.texts = offsetof(struct policy_setting, texts),
	.texts_size = POLICY_TEXT_MAX,
	.check_text = check_verdict,
	.check = check_policy,
};

const char *policy_setting_get(const struct policy_setting *p, enum policy_key key)
{
	const char *value = section_text(&policy_section, p, key);

	return value && *value ? value : NULL;
}
