/* Showing a project's rules, and switching them on and off. */
#include "dialect/aiwg/aiwg.h"
#include "dialect/engine.h"
#include "engine/automation/automation.h"
#include "engine/automation/trust.h"

struct done aiwg_automation_status(struct call *c)
{
	const struct aiwg_project_in *in = c->in;

	aiwg_write_automation(call_result(c), call_engine(c), aiwg_folder(c, in->project));
	return call_reply(c);
}

/* A project's rules are not loaded until it is trusted, so none of them is found. */
static int refuse_untrusted(struct call *c, struct text folder)
{
	const struct trust *trust = call_trust(c);
	const struct trust_offer *offer;
	enum trust_state state;

	if (!folder.data || !trust || trust_find(trust, folder, &offer, NULL) != 0)
		return 0;
	state = trust_of(trust, offer, NULL);
	if (state != TRUST_WANTED && state != TRUST_CHANGED)
		return 0;
	return refuse(&c->error, REFUSE_FORBIDDEN,
		      "the project is not trusted (try: koine project trust %.*s)",
		      TEXT_ARGS(offer->folder));
}

static void switched(void *arg, int r, const struct error *error)
{
	struct call *c = arg;

	(void)call_answer(c, r, error,
			  PAIRS(JSON_BOOL("enabled", c->method->arg), JSON_BOOL("success", true)));
}

struct done aiwg_automation_switch(struct call *c)
{
	const struct aiwg_rule_in *in = c->in;
	struct text rule = in->id.len > 0 ? in->id : (struct text) {0};
	struct text folder = aiwg_folder(c, in->project);
	int r;

	r = automation_enable(call_automation(c), folder, rule, c->method->arg, switched, c,
			      &c->error);
	/* Everywhere else in this dialect, REFUSE_NOT_FOUND is about a task. */
	if (r == REFUSE_NOT_FOUND)
		r = refuse_untrusted(c, folder)
			    ?: refuse_field(&c->error, "ruleId", "Rule not found: %.*s",
					    TEXT_ARGS(in->id));
	return call_await(c, r);
}
