/* koine automation: the rules, what they did, and switching them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/task/task.h"

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

static int takes(const struct cli *cli, int least, int most)
{
	static const char *const wants[] = {"takes no arguments", "wants one RULE"};

	if (cli->n_args >= least && cli->n_args <= most)
		return 0;
	complain("automation %s %s", cli->sub->name, most == 0 ? wants[0] : wants[1]);
	return EX_USAGE;
}

/* ---- calling ---- */

/* Rules of everywhere, unless a project is named: there are few, and their names differ. */
static int add_project(struct koine_json *j, const char *project)
{
	char path[PATH_MAX] = "";

	if (!project)
		return 0;
	if (project[0] && !realpath(project, path)) {
		complain("--project %s: %s", project, strerror(errno));
		return EX_NOINPUT;
	}
	koine_json_key(j, "project");
	koine_json_string(j, path);
	return 0;
}

static int send_params(struct cli *cli, const char *method, struct koine_json *j,
		       struct koine_answer **ret)
{
	const char *text;
	int r = add_project(j, cli->options.task.project);

	koine_json_end_object(j);
	text = koine_json_text(j, NULL);
	if (r == 0)
		r = text ? talk_once(cli, method, text, ret) : out_of_memory();
	koine_json_free(j);
	return r;
}

/* key NULL: no parameter of its own. */
static int call_with(struct cli *cli, const char *method, const char *key, const char *value,
		     int64_t limit, struct koine_answer **ret)
{
	struct koine_json *j = NULL;

	if (koine_json_new(&j) != 0)
		return out_of_memory();
	koine_json_begin_object(j);
	if (key && value) {
		koine_json_key(j, key);
		koine_json_string(j, value);
	}
	if (limit > 0) {
		koine_json_key(j, "limit");
		koine_json_int(j, limit);
	}
	return send_params(cli, method, j, ret);
}

/* ---- printing ---- */

/* "cron 0 9 * * 1", "every 1h00m", "files /src": its first member and that one's value. */
static void cell_first(struct table *t, const struct koine_value *object)
{
	const struct koine_value *first = koine_value_first(object);
	char shown[512];
	char span[SPAN_SHOWN];
	size_t key_len = 0;
	size_t len = 0;
	const char *key = koine_value_key(first, &key_len);
	const struct koine_value *v =
		koine_value_kind(first) == KOINE_ARRAY ? koine_value_first(first) : first;
	const char *text = koine_value_text(v, &len);
	int64_t ms;

	if (key_len == 5 && memcmp(key, "every", 5) == 0 && koine_value_int(v, &ms)) {
		duration_format(ms, span);
		text = span;
		len = strlen(span);
	}
	snprintf(shown, sizeof(shown), "%.*s %.*s", key ? (int)key_len : 1, key ? key : "-",
		 text ? (int)(len < 400 ? len : 400) : 0, text ? text : "");
	table_cell_str(t, shown);
}

/* How long ago, or how soon. */
static void cell_when(struct table *t, const struct koine_value *rule, const char *member)
{
	int64_t at = task_time(rule, member);
	int64_t ms = at - clock_utc_ms();
	char span[SPAN_SHOWN];
	char shown[SPAN_SHOWN + 8];

	duration_format_age(ms < 0 ? -ms : ms, span);
	snprintf(shown, sizeof(shown), ms < 0 ? "%s ago" : "in %s", span);
	table_cell_str(t, at > 0 ? shown : "-");
}

static void add_rule(struct table *t, const struct koine_value *rule)
{
	bool enabled = false;

	koine_value_bool(koine_value_get(rule, "enabled"), &enabled);
	table_cell_value(t, koine_value_get(rule, "rule"));
	table_cell_color(t, enabled ? "on" : "off", enabled ? 2 : 3,
			 enabled ? CELL_GREEN : CELL_GREY);
	table_cell_value(t, koine_value_get(rule, "fired"));
	cell_when(t, rule, "fired_at");
	cell_when(t, rule, "next_at");
	cell_first(t, koine_value_get(rule, "trigger"));
	cell_first(t, koine_value_get(rule, "action"));
}

static int print_rules(const struct cli *cli, const struct koine_value *result)
{
	static const char *const titles[] = {"RULE", "STATE", "FIRED", "LAST",
					     "NEXT", "WHEN",  "DOES"};
	const struct koine_value *rule = koine_value_first(koine_value_get(result, "rules"));
	CLEANUP(table_freep) struct table *t = table_new("llrllll");
	bool enabled = true;

	if (!t)
		return out_of_memory();
	koine_value_bool(koine_value_get(result, "enabled"), &enabled);
	if (!enabled)
		fputs("automation is off\n", stderr);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_cell_str(t, titles[i]);
	for (; rule; rule = koine_value_next(rule))
		add_rule(t, rule);
	if (cli->terminal)
		table_fit(t, terminal_columns());
	return table_print(t, stdout, cli->color);
}

static int print_log(const struct cli *cli, const struct koine_value *log)
{
	static const char *const titles[] = {"TIME", "RULE", "EVENT", "STATUS", "TASK", "ERROR"};
	const struct koine_value *entry = koine_value_first(log);
	CLEANUP(table_freep) struct table *t = table_new("llllll");

	if (!t)
		return out_of_memory();
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		table_cell_str(t, titles[i]);
	for (; entry; entry = koine_value_next(entry)) {
		table_cell_time(t, koine_value_get(entry, "time"));
		table_cell_value(t, koine_value_get(entry, "rule"));
		table_cell_value(t, koine_value_get(entry, "event"));
		table_cell_value(t, koine_value_get(entry, "status"));
		table_cell_value(t, koine_value_get(entry, "task"));
		table_cell_value(t, koine_value_get(entry, "error"));
	}
	if (cli->terminal)
		table_fit(t, terminal_columns());
	return table_print(t, stdout, cli->color);
}

/* ---- the commands ---- */

static int cmd_list(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = takes(cli, 0, 0);

	if (r == 0)
		r = call_with(cli, "automation.rules", NULL, NULL, 0, &a);
	if (r != 0)
		return r;
	if (!cli->options.json)
		return print_rules(cli, koine_answer_result(a));
	print_json_compact(stdout, koine_value_get(koine_answer_result(a), "rules"));
	return 0;
}

static int cmd_log(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int64_t limit = cli->options.task.limit ? cli->options.task.limit : 20;
	const struct koine_value *log;
	int r = takes(cli, 0, 0);

	if (r == 0)
		r = call_with(cli, "automation.log", NULL, NULL, limit, &a);
	if (r != 0)
		return r;
	log = koine_value_get(koine_answer_result(a), "log");
	if (!cli->options.json)
		return print_log(cli, log);
	print_json_compact(stdout, log);
	return 0;
}

static int change(struct cli *cli, const char *method, const char *key, int least, const char *did)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const char *rule = cli->n_args > 0 ? cli->args[0] : NULL;
	int r = takes(cli, least, 1);

	if (r == 0)
		r = call_with(cli, method, key, rule, 0, &a);
	if (r != 0)
		return r;
	if (cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else
		printf("%s %s\n", rule ? rule : "automation", did);
	return 0;
}

static int cmd_enable(struct cli *cli)
{
	return change(cli, "automation.enable", "ruleId", 0, "is on");
}

static int cmd_disable(struct cli *cli)
{
	return change(cli, "automation.disable", "ruleId", 0, "is off");
}

/* Of any rule of that name: what is not there is for the call itself to say. */
static int needs_approval(struct cli *cli, const char *name, bool *ret)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	const struct koine_value *rule;
	int r = call_with(cli, "automation.rules", NULL, NULL, 0, &a);

	rule = koine_value_first(koine_value_get(koine_answer_result(a), "rules"));
	for (; r == 0 && rule && !*ret; rule = koine_value_next(rule)) {
		if (value_is(koine_value_get(rule, "rule"), name))
			koine_value_bool(koine_value_get(rule, "needs_approval"), ret);
	}
	return r;
}

/* A human takes longer than a call does. */
static int cmd_run(struct cli *cli)
{
	bool asks = false;
	int r = cli->n_args == 1 ? needs_approval(cli, cli->args[0], &asks) : 0;

	if (r != 0)
		return r;
	if (asks)
		complain("it asks for approval first; koine approvals shows it");
	if (asks && cli->options.timeout_ms == 0)
		cli->options.timeout_ms = UINT32_MAX;
	return change(cli, "automation.run", "rule", 1, "was run");
}

const struct command automation_commands[] = {
	{"list", "", "list the rules, and when they last did something", NULL, cmd_list},
	{"enable", "[RULE]", "switch a rule on, or all of automation", NULL, cmd_enable},
	{"disable", "[RULE]", "switch a rule off, or all of automation",
	 "It stays so over a restart.\n", cmd_disable},
	{"run", "RULE", "do now what a rule does",
	 "Whatever its trigger and cooldown say. One that asks for approval waits for it.\n",
	 cmd_run},
	{"log", "", "show what rules did, newest last", NULL, cmd_log, NULL,
	 automation_log_options},
	{NULL},
};
