/* Rules: listing them, what they did, and running one by hand. */
#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "engine/automation/automation.h"
#include "engine/automation/trust.h"
#include "wire/json.h"

struct rules_in {
	struct text project;
	int64_t limit;
	struct text rule;
};

/* ---- listing ---- */

void koine_rule_parts(struct json *j, const struct rule *r)
{
	json_member_object(j, "trigger");
	json_members(j, &rule_schema, (struct selection) {RULE_OF_TRIGGER(r->trigger)}, r, 0);
	json_end_object(j);
	json_member_object(j, "action");
	json_members(j, &rule_schema, (struct selection) {RULE_OF_ACTION(r->action)}, r, 0);
	json_end_object(j);
}

static void write_rule(struct json *j, const struct rule *r)
{
	json_begin_object(j);
	json_members(j, &rule_schema, (struct selection) {.with = RULE_NAME}, r, 0);
	koine_rule_parts(j, r);
	json_member_uint(j, "conditions", r->n_conditions);
	json_members(j, &rule_schema, (struct selection) {.with = RULE_STATE}, r, 0);
	json_end_object(j);
}

static struct done handle_rules(struct call *c)
{
	const struct rules_in *in = c->in;
	struct automation *a = call_automation(c);
	const struct rule *rule = NULL;
	struct json *j;

	j = call_object(c);
	json_member_bool(j, "enabled", automation_is_enabled(a, in->project));
	json_member_array(j, "rules");
	while ((rule = automation_next_rule(a, in->project, rule)))
		write_rule(j, rule);
	json_end_array(j);
	json_member_uint(j, "left_out", trust_left_out(call_trust(c), in->project));
	return call_reply_object(c);
}

/* ---- what they did ---- */

struct executions {
	struct rule_execution *log;
	unsigned n;
};

static int log_work(struct call *c)
{
	const struct rules_in *in = c->in;
	struct executions *e = c->state;
	unsigned limit = in->limit < RULE_LOG_LIST_MAX ? (unsigned)in->limit : RULE_LOG_LIST_MAX;

	return automation_log_read(call_automation(c), c->lane, &c->arena, in->project, limit,
				   &e->log, &e->n);
}

static struct done log_then(struct call *c, int r)
{
	const struct executions *e = c->state;
	struct json *j;

	if (r != 0)
		return call_fail(c, r);
	j = call_object(c);
	json_nouns(j, "log", &rule_execution_schema, e->log, e->n);
	return call_reply_object(c);
}

static struct done handle_log(struct call *c)
{
	c->state = arena_zalloc(&c->arena, sizeof(struct executions));
	return c->state ? call_work(c, READER, log_work, log_then) : call_fail(c, -ENOMEM);
}

/* ---- by hand ---- */

static void on_run(void *arg, int r, const struct error *error)
{
	struct call *c = arg;
	const struct rules_in *in = c->in;

	(void)call_answer(c, r, error, PAIRS(JSON_TEXT("rule", in->rule), JSON_BOOL("run", true)));
}

static struct done handle_run(struct call *c)
{
	const struct rules_in *in = c->in;
	int r = automation_run(call_automation(c), in->project, in->rule, on_run, c, &c->error);

	/* The call does not wait for the rule's action, so there is nothing to cancel. */
	return call_await(c, r);
}

/* ---- the method table ---- */

#define PROJECT(in)                                                                                \
	FIELD(STRING, in, project,                                                                 \
	      "Folder of the project (default: all rules); \"\" selects rules in koine.conf")

static const struct field rules_fields[] = {PROJECT(rules_in)};

static const struct field log_fields[] = {
	FIELD(INT, rules_in, limit,
	      "Maximum number of entries, up to 1000; koined returns the newest entries",
	      .default_number = RULE_LOG_MAX, AT_LEAST(1)),
	PROJECT(rules_in),
};

static const struct field run_fields[] = {
	FIELD(STRING, rules_in, rule, "Name of the rule", .required = true),
	PROJECT(rules_in),
};

static const struct method rows[] = {
	{"automation.rules", "List rules with the time of their last run",
	 "{enabled:boolean rules:[object] left_out:integer}", FIELDS(rules_fields, rules_in),
	 .handle = handle_rules},
	{"automation.run", "Run a rule's action now, ignoring its trigger and cooldown",
	 "{rule:string run:true}", FIELDS(run_fields, rules_in), .handle = handle_run,
	 .flags = METHOD_LATER | METHOD_FOR_HUMANS},
	{"automation.log", "List the actions that rules ran, oldest first", "{log:[object]}",
	 FIELDS(log_fields, rules_in), .handle = handle_log, .flags = METHOD_LATER},
};

const struct method_table koine_automation_methods = METHOD_TABLE(rows);
