/* Rules: which there are, what they did, and acting on one by hand. */
#include "base/clock.h"
#include "call/call.h"
#include "dialect/engine.h"
#include "dialect/koine/koine.h"
#include "dialect/koine/rule_json.h"
#include "engine/automation/automation.h"

struct place_in {
	struct text project;
	int64_t limit;
};

struct run_in {
	struct text rule;
	struct text project;
};

static int need_automation(struct call *c)
{
	if (call_automation(c))
		return 0;
	return refuse(&c->why, REFUSE_UNAVAILABLE, "automation is not running");
}

static void write_time(struct json *j, const char *key, int64_t ms)
{
	char text[ISO_LEN + 1];

	json_key(j, key);
	if (ms == 0) {
		json_null(j);
		return;
	}
	clock_format_iso(ms, text);
	json_str(j, text);
}

static void write_name(struct json *j, struct text project, struct text rule)
{
	json_member_text(j, "project", project.data ? project : TEXT(""));
	json_member_text(j, "rule", rule);
}

/* ---- which there are ---- */

static void write_texts(struct json *j, const char *key, const struct text *texts, unsigned n)
{
	json_key(j, key);
	json_begin_array(j);
	for (unsigned i = 0; i < n; i++)
		json_text(j, texts[i]);
	json_end_array(j);
}

/* Only what was given. */
static void write_given(struct json *j, const char *key, struct text t)
{
	if (t.data)
		json_member_text(j, key, t);
}

void koine_rule_trigger(struct json *j, const struct rule_new *r)
{
	json_key(j, "trigger");
	json_begin_object(j);
	switch (r->trigger) {
	case TRIGGER_CRON:
		json_member_text(j, "cron", r->cron);
		write_given(j, "zone", r->zone);
		break;
	case TRIGGER_EVERY:
		json_member_int(j, "every", r->every_ms);
		break;
	case TRIGGER_FILES:
		write_texts(j, "files", r->paths, r->n_paths);
		break;
	case TRIGGER_EVENT:
		write_given(j, "type", r->type);
		write_given(j, "source", r->source);
		write_given(j, "pattern", r->pattern);
		break;
	}
	json_end_object(j);
}

void koine_rule_action(struct json *j, const struct rule_new *r)
{
	json_key(j, "action");
	json_begin_object(j);
	switch (r->action) {
	case ACTION_TASK:
		json_member_text(j, "task", r->prompt);
		write_given(j, "agent", r->agent);
		write_given(j, "runner", r->runner);
		write_given(j, "group", r->group);
		break;
	case ACTION_COMMAND:
		json_member_text(j, "command", r->command);
		break;
	case ACTION_WEBHOOK:
		json_member_text(j, "webhook", r->url);
		break;
	case ACTION_DESKTOP:
		json_member_text(j, "desktop", r->message);
		break;
	}
	json_end_object(j);
}

static void write_rule(struct json *j, const struct rule_info *info)
{
	json_begin_object(j);
	write_name(j, info->project, info->id);
	json_member_bool(j, "enabled", info->enabled);
	json_member_text(j, "description", info->rule->description);
	koine_rule_trigger(j, info->rule);
	koine_rule_action(j, info->rule);
	json_member_uint(j, "conditions", info->rule->n_conditions);
	json_member_int(j, "cooldown", info->rule->cooldown_ms);
	json_member_bool(j, "needs_approval", info->rule->needs_approval);
	write_time(j, "fired_at", info->fired_ms);
	write_time(j, "next_at", info->next_ms);
	json_member_int(j, "fired", info->n_fired);
	json_end_object(j);
}

static struct done handle_rules(struct call *c)
{
	const struct place_in *in = c->in;
	const struct rule_info *rules = NULL;
	bool enabled = false;
	unsigned n = 0;
	struct json *j;
	int r = need_automation(c);

	if (r != 0)
		return call_fail(c, r);
	j = call_result(c);
	automation_rules(call_automation(c), in->project, &rules, &n, &enabled);
	json_begin_object(j);
	json_member_bool(j, "enabled", enabled);
	json_key(j, "rules");
	json_begin_array(j);
	for (unsigned i = 0; i < n; i++)
		write_rule(j, &rules[i]);
	json_end_array(j);
	json_end_object(j);
	return call_reply(c);
}

/* ---- what they did ---- */

static void write_execution(struct json *j, const struct rule_execution *e)
{
	json_begin_object(j);
	write_time(j, "time", e->time_ms);
	write_name(j, e->project, e->rule);
	json_member_text(j, "event", e->event_type);
	json_member_text(j, "status", e->status);
	json_member_text(j, "task", e->task);
	json_member_text(j, "error", e->error);
	json_end_object(j);
}

static struct done handle_log(struct call *c)
{
	const struct place_in *in = c->in;
	const struct rule_execution *log = NULL;
	unsigned n = 0;
	unsigned first;
	struct json *j;
	int r = need_automation(c);

	if (r == 0 && in->limit < 1)
		r = refuse_field(&c->why, "limit", "limit must be at least 1");
	if (r != 0)
		return call_fail(c, r);
	automation_log(call_automation(c), in->project, &log, &n);
	first = (int64_t)n > in->limit ? n - (unsigned)in->limit : 0;
	j = call_result(c);
	json_begin_object(j);
	json_key(j, "log");
	json_begin_array(j);
	for (unsigned i = first; i < n; i++)
		write_execution(j, &log[i]);
	json_end_array(j);
	json_end_object(j);
	return call_reply(c);
}

/* ---- by hand ---- */

static void on_run(void *arg, int r, const struct why *why)
{
	struct call *c = arg;
	const struct run_in *in = c->in;
	struct json *j;

	if (r > 0)
		c->why = *why;
	if (r != 0) {
		(void)call_fail(c, r);
		return;
	}
	j = call_result(c);
	json_begin_object(j);
	json_member_text(j, "rule", in->rule);
	json_member_bool(j, "run", true);
	json_end_object(j);
	(void)call_reply(c);
}

static struct done handle_run(struct call *c)
{
	const struct run_in *in = c->in;
	int r = need_automation(c);

	if (r != 0)
		return call_fail(c, r);
	/* What it acts with is not waited for: nothing to cancel. */
	(void)call_later(c, NULL, NULL);
	automation_run(call_automation(c), in->project, in->rule, on_run, c);
	return call_settled(c);
}

/* ---- the rows ---- */

#define PROJECT(in)                                                                                \
	{                                                                                          \
		.name = "project", .type = FIELD_STRING,                                           \
		.doc = "Those of one folder; \"\": those of the settings; all without",            \
		.offset = offsetof(in, project)                                                    \
	}

static const struct field rules_fields[] = {PROJECT(struct place_in)};

static const struct field log_fields[] = {
	{.name = "limit",
	 .type = FIELD_INT,
	 .default_number = RULE_LOG_MAX,
	 .doc = "How many of the newest, up to 100",
	 .offset = offsetof(struct place_in, limit)},
	PROJECT(struct place_in),
};

static const struct field run_fields[] = {
	{.name = "rule",
	 .type = FIELD_STRING,
	 .required = true,
	 .doc = "Its name",
	 .offset = offsetof(struct run_in, rule)},
	PROJECT(struct run_in),
};

const struct method koine_automation_methods[] = {
	{.name = "automation.rules",
	 .doc = "The rules there are, and when they last did something",
	 .result = "{\"type\":\"object\",\"properties\":{\"enabled\":{\"type\":\"boolean\"},"
		   "\"rules\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}}}",
	 FIELDS(rules_fields),
	 .in_size = sizeof(struct place_in),
	 .handle = handle_rules},
	{.name = "automation.run",
	 .doc = "Does what a rule says, whatever its trigger and cooldown",
	 .result = "{\"type\":\"object\",\"properties\":{\"rule\":{\"type\":\"string\"},"
		   "\"run\":{\"const\":true}}}",
	 FIELDS(run_fields),
	 .in_size = sizeof(struct run_in),
	 .handle = handle_run,
	 .flags = METHOD_LATER},
	{.name = "automation.log",
	 .doc = "What rules did, oldest first",
	 .result = "{\"type\":\"object\",\"properties\":{\"log\":{\"type\":\"array\","
		   "\"items\":{\"type\":\"object\"}}}}",
	 FIELDS(log_fields),
	 .in_size = sizeof(struct place_in),
	 .handle = handle_log},
};

const unsigned koine_n_automation_methods =
	sizeof(koine_automation_methods) / sizeof(koine_automation_methods[0]);
