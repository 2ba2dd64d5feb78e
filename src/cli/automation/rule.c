/* koine automation: the rules, what they did, and switching them on and off. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "model/rule.h"
#include "cli/automation/automation.h"
#include "cli/commands.h"
#include "cli/kit/duration.h"
#include "cli/kit/list.h"
#include "cli/kit/request.h"
#include "cli/kit/talk.h"
#include "cli/kit/value.h"

struct automation_options {
	const char *project; /* NULL: all rules; "": those of the settings */
	char path[PATH_MAX]; /* of the project */
};

/* ---- calling ---- */

static int find_project(struct cli *cli)
{
	struct automation_options *o = cli->own;

	if (!o->project || !o->project[0] || realpath(o->project, o->path))
		return 0;
	complain("--project %s: %s", o->project, strerror(errno));
	return EX_NOINPUT;
}

/* Without --project it applies to the rules of all projects: there are few, and their names
 * differ. */
static void scope(const struct cli *cli, struct koine_json *params)
{
	const struct automation_options *o = cli->own;

	params_add(params, "project", o->project ? o->path : NULL);
}

/* ---- printing ---- */

/* "cron 0 9 * * 1", "every 1h00m", "files /src": its first member and that member's value. */
static void cell_first(const struct cell *c)
{
	const struct koine_value *first = member_first(c->row, c->member);
	const struct koine_value *v =
		koine_value_kind(first) == KOINE_ARRAY ? koine_value_first(first) : first;
	struct text key = text_of_key(first);
	struct text value = text_of_value(v);
	char shown[512];
	char span[SPAN_SHOWN];
	int64_t ms;

	if (text_is(key, "every") && koine_value_int(v, &ms)) {
		duration_format(ms, span);
		value = text_of(span);
	}
	if (value.len > 400)
		value.len = 400;
	snprintf(shown, sizeof(shown), "%.*s %.*s", TEXT_ARGS(key.data ? key : TEXT("-")),
		 TEXT_ARGS(value));
	table_cell_str(c->table, shown);
}

/* How long ago, or how soon. */
static void cell_when(const struct cell *c)
{
	int64_t at = member_time(c->row, c->member);
	int64_t ms = at - clock_utc_ms();
	char span[SPAN_SHOWN];
	char shown[SPAN_SHOWN + 8];

	duration_format_age(ms < 0 ? -ms : ms, span);
	snprintf(shown, sizeof(shown), ms < 0 ? "%s ago" : "in %s", span);
	table_cell_str(c->table, at > 0 ? shown : "-");
}

static void cell_enabled(const struct cell *c)
{
	if (member_flag(c->row, c->member))
		table_cell_color(c->table, TEXT("on"), COLOR_GREEN);
	else
		table_cell_color(c->table, TEXT("off"), COLOR_GREY);
}

static int print_rules(const struct cli *cli, const struct koine_value *result)
{
	static const struct column columns[] = {
		{"RULE", "rule"},
		{"STATE", "enabled", cell_enabled},
		{"FIRED", "fired", NULL, 'r'},
		{"LAST", "fired_at", cell_when},
		{"NEXT", "next_at", cell_when},
		{"WHEN", "trigger", cell_first},
		{"DOES", "action", cell_first},
		{NULL},
	};
	bool enabled = true;
	int r;

	koine_value_bool(koine_value_get(result, "enabled"), &enabled);
	if (!enabled)
		fputs("automation is disabled\n", stderr);
	r = list_print(cli, columns, koine_value_get(result, "rules"));
	automation_print_left_out(stderr, member_number(result, "left_out"));
	return r;
}

static void cell_exit(const struct cell *c)
{
	int64_t signal = member_number(c->row, "signal");
	char shown[32];

	if (signal > 0) {
		snprintf(shown, sizeof(shown), "%lld", 128 + (long long)signal);
		table_cell_str(c->table, shown);
	} else {
		table_cell_value(c->table, koine_value_get(c->row, "exit_status"));
	}
}

static void cell_took(const struct cell *c)
{
	char span[SPAN_SHOWN] = "-";
	int64_t ms;

	if (koine_value_int(koine_value_get(c->row, c->member), &ms))
		duration_format(ms, span);
	table_cell_str(c->table, span);
}

static int print_log(const struct cli *cli, const struct koine_value *log)
{
	static const struct column columns[] = {
		{"TIME", "time", cell_time},
		{"RULE", "rule"},
		{"EVENT", "event"},
		{"STATUS", "status"},
		{"EXIT", "duration", cell_exit, 'r', .if_given = true},
		{"TOOK", "duration", cell_took, 'r', .if_given = true},
		{"TASK", "task"},
		{"ERROR", "error"},
		{NULL},
	};
	const struct list list = {.columns = columns,
				  .below = "output",
				  .below_bytes = "output_bytes",
				  .below_kept = RULE_OUTPUT_MAX};

	return list_print_as(cli, &list, log);
}

/* ---- the commands ---- */

static int cmd_list(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = request_send(cli, request_begin(cli, NULL), &a);

	if (r != 0)
		return r;
	if (!cli->options.json)
		return print_rules(cli, koine_answer_result(a));
	print_json_compact(stdout, koine_value_get(koine_answer_result(a), "rules"));
	return 0;
}

/* Whether any rule of that name asks first. If there is none, the call itself will say so. */
static int needs_approval(struct cli *cli, const char *name, bool *ret)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	const struct koine_value *rule;
	int r;

	scope(cli, j);
	r = call_send(cli, "automation.rules", j, &a);
	rule = member_first(koine_answer_result(a), "rules");
	for (; rule && !*ret; rule = koine_value_next(rule))
		*ret = member_is(rule, "rule", name) && member_flag(rule, "needs_approval");
	return r;
}

static int cmd_run(struct cli *cli)
{
	bool asks = false;
	int r = needs_approval(cli, cli->args[0], &asks);

	if (r != 0)
		return r;
	if (asks) {
		complain("waiting for approval; see koine approvals");
		/* A human takes longer than a call may. */
		talk_be_patient(cli);
	}
	return request_run(cli);
}

#define AT(member) OPTION_AT(struct automation_options, member)

static const struct option options[] = {
	{"--project", NULL, "DIR",
	 "select the rules of project folder DIR; \"\" selects the rules of koine.conf",
	 option_text, AT(project)},
	{NULL},
};

static const struct option log_options[] = {
	{"--limit", "-n", "N", "show the last N entries; default 20", option_number, .min = 1,
	 .param = "limit", .usual = "20"},
	{NULL},
};

static const struct command subs[] = {
	{"list", "", "List rules and when they last ran", NULL, cmd_list, NO_ARGS,
	 .request = {"automation.rules"},
	 .examples = {"koine automation list", "koine automation list --project ~/src/app"}},
	{"enable", "[RULE]", "Enable a rule, or all rules", NULL,
	 ARGS(0, 1, "takes at most one RULE"),
	 .request = {"automation.enable", .arg = "ruleId", .did = "is enabled",
		     .nobody = "automation"},
	 .examples = {"koine automation enable nightly", "koine automation enable"}},
	{"disable", "[RULE]", "Disable a rule, or all rules",
	 "The rule stays disabled after a restart.\n", ARGS(0, 1, "takes at most one RULE"),
	 .request = {"automation.disable", .arg = "ruleId", .did = "is disabled",
		     .nobody = "automation"},
	 .examples = {"koine automation disable nightly", "koine automation disable"}},
	{"run", "RULE", "Run the action of a rule now",
	 "Ignores the trigger and the cooldown of the rule. If the rule needs approval, the "
	 "command waits for the decision.\n",
	 cmd_run, ARGS(1, 1, "requires one RULE"),
	 .request = {"automation.run", .arg = "rule", .did = "was run"},
	 .examples = {"koine automation run nightly",
		      "koine automation run nightly --project ~/src/app"}},
	{"log", "", "Show the log of rule actions, newest last", NULL, NULL, NULL, log_options,
	 NO_ARGS, .request = {"automation.log", "log", .print = print_log},
	 .examples = {"koine automation log -n 50", "koine automation log --project ~/src/app"}},
	{NULL},
};

const struct command automation_commands[] = {
	{"automation", "COMMAND [ARGUMENT]...", "List and control rules",
	 "A rule starts a task, a command, a webhook or a desktop notification on a schedule, an "
	 "event or a file change. See [rule NAME] in koine.conf(5).\n",
	 NULL, subs, options, sizeof(struct automation_options), .begin = find_project,
	 .scope = scope, .examples = {"koine automation list", "koine automation run nightly"}},
	{NULL},
};
