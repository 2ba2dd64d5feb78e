#include "daemon/approvals.h"

#include <string.h>

#include "engine/approval/approval.h"
#include "engine/session/session.h"

_Static_assert((int)POLICIES_MAX <= (int)APPROVAL_RULES_MAX, "room for all policies");

static const int64_t day_ms = 24 * 3600 * 1000LL;

static enum approval_verdict verdict_of(const char *word)
{
	return strcmp(word, "allow") == 0  ? VERDICT_ALLOW
	       : strcmp(word, "deny") == 0 ? VERDICT_DENY
					   : VERDICT_ASK;
}

static unsigned make_rules(const struct approval_settings *a, struct approval_rule *out)
{
	for (unsigned i = 0; i < a->n_policies; i++) {
		const struct policy_setting *p = &a->policies[i];

		out[i] = (struct approval_rule) {
			.name = p->name,
			/* settings_check has seen it. */
			.verdict = verdict_of(policy_setting_get(p, POLICY_VERDICT)),
			.agent = policy_setting_get(p, POLICY_AGENT),
			.tool = policy_setting_get(p, POLICY_TOOL),
			.input = policy_setting_get(p, POLICY_INPUT),
			.comment = policy_setting_get(p, POLICY_COMMENT),
		};
	}
	return a->n_policies;
}

static void on_wait(void *arg, struct text session, int change)
{
	struct services *services = arg;

	session_wait(services->sessions, session, change);
}

int approvals_begin(const struct settings *s, struct backstage *stage, struct services *services,
		    struct why *why)
{
	struct approval_rule rules[POLICIES_MAX];
	const struct approvals_opts opts = {
		.store = services->store,
		.events = services->events,
		.loop = stage->server->loop,
		.background = backstage(stage),
		.pending = s->approvals.pending,
		.timeout_ms = s->approvals.timeout_ms,
		.keep_ms = s->approvals.keep_days * day_ms,
		.agents_decide = s->approvals.agents_decide,
		.rules = rules,
		.n_rules = make_rules(&s->approvals, rules),
		.on_wait = on_wait,
		.arg = services,
	};

	return approvals_start(&opts, &services->approvals, why);
}

void approvals_reload(const struct settings *s, struct services *services)
{
	struct approval_rule rules[POLICIES_MAX];

	approvals_set_rules(services->approvals, rules, make_rules(&s->approvals, rules));
}
