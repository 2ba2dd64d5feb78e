/*
 * koine project lists projects, shows what their files would do, and trusts them. koine
 * rule lists rules, runs them, and prints their log.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "model/rule.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/signals.h"
#include "cli/kit/talk.h"

/* ---- projects ---- */

/* The folder that was typed, or else the current one. */
static int folder_of(const struct cli *cli, char folder[PATH_MAX])
{
	const char *named = cli->n_args > 0 ? cli->args[0] : ".";

	if (realpath(named, folder))
		return 0;
	return fail_with(EX_NOINPUT, "%s: %s", named, strerror(errno));
}

/* ---- the list ---- */

static void print_left_out(FILE *to, int64_t n)
{
	if (n > 0)
		fprintf(to,
			"%lld rule%s ignored: the project.rules setting limits their number (see "
			"koine.conf(5))\n",
			(long long)n, n == 1 ? " is" : "s are");
}

static int64_t sum_left_out(const struct koine_value *projects)
{
	int64_t n = 0;

	for (EACH(p, koine_value_first(projects)))
		n += member_number(p, "left_out");
	return n;
}

static int print_projects(const struct cli *cli, const struct koine_value *projects)
{
	static const struct column columns[] = {
		{"STATE", "state"},
		{"RULES", "rules", NULL, 'r'},
		{"WATCHES", "watches", NULL, 'r'},
		{"JOBS", "jobs", NULL, 'r'},
		{"HELD", "held", NULL, 'r'},
		{"PROJECT", "folder"},
		{NULL},
	};
	int r;

	if (koine_value_first(projects)) {
		r = list_print(cli, columns, projects);
		print_left_out(stderr, sum_left_out(projects));
		return r;
	}
	puts("No projects. Serve one with koined --project DIR.");
	return 0;
}

/* ---- what one would do ---- */

/* Prints on one line, so that no text can pass for another line. */
static void print_value(const char *before, const struct koine_value *v)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	struct text t = text_of_value(v);

	fputs(before, stdout);
	if (!t.data && koine_json_new(&j) == 0) {
		koine_json_value(j, v);
		t.data = koine_json_text(j, &t.len);
	}
	print_exact(stdout, t.data ? t : TEXT("?"));
	fputc('\n', stdout);
}

/* "  type: memory.added", a line for each of its members. */
static void print_members(const char *title, const struct koine_value *object)
{
	printf("  %s\n", title);
	for (EACH(v, koine_value_first(object))) {
		fputs("    ", stdout);
		print_exact(stdout, text_of_key(v));
		print_value(": ", v);
	}
}

static void print_project_rules(const struct koine_value *rules)
{
	for (EACH(r, koine_value_first(rules))) {
		print_value("rule ", koine_value_get(r, "rule"));
		print_members("when", koine_value_get(r, "trigger"));
		print_members("does", koine_value_get(r, "action"));
		if (member_flag(r, "forbidden"))
			puts("  webhook not allowed by [project] webhooks in koine.conf");
	}
}

/* The prompt is printed whole: a part that is cut off may be what matters. */
static int print_task(struct cli *cli, const char *folder, const struct koine_value *id)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	params_add(j, "project", folder);
	params_add_text(j, "id", text_of_value(id));
	r = call_send(cli, "task.show", j, &a);
	if (r != 0)
		return r;
	print_value("held ", id);
	print_value("  agent: ", koine_value_get(koine_answer_result(a), "agent"));
	print_value("  prompt: ", koine_value_get(koine_answer_result(a), "prompt"));
	return 0;
}

static int print_project(struct cli *cli, const char *folder, const struct koine_value *p)
{
	int r = 0;

	print_value("project ", koine_value_get(p, "folder"));
	print_value("state   ", koine_value_get(p, "state"));
	print_value("digest  ", koine_value_get(p, "digest"));
	print_project_rules(koine_value_get(p, "rules"));
	print_left_out(stdout, member_number(p, "left_out"));
	for (EACH(v, member_first(p, "watches")))
		print_value("watches ", v);
	for (EACH(v, member_first(p, "jobs"))) {
		print_value("job ", koine_value_get(v, "id"));
		print_value("  cron: ", koine_value_get(v, "cron"));
	}
	for (EACH(v, member_first(p, "held")))
		r = r ?: print_task(cli, folder, v);
	return r;
}

static int automation_show(struct cli *cli, char folder[PATH_MAX], struct koine_answer **ret)
{
	int r = folder_of(cli, folder) ?: call_with(cli, "project.show", "folder", folder, ret);

	if (r != 0)
		return r;
	return print_if_json(cli, koine_answer_result(*ret))
		       ? 0
		       : print_project(cli, folder, koine_answer_result(*ret));
}

static int cmd_show(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];

	return automation_show(cli, folder, &a);
}

/* ---- trusting ---- */

/* A person at a terminal is asked; a script has already decided. */
static bool is_sure(const struct cli *cli)
{
	return !cli->terminal || !isatty(STDIN_FILENO) || args_confirm("Trust this project?");
}

/* Trust what was shown, and nothing else. */
static int send_trust(struct cli *cli, const char *folder, const struct koine_value *shown)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text digest = member_text(shown, "digest");
	struct koine_json *j = params_new();

	params_add(j, "folder", folder);
	params_add_text(j, "digest", digest.data ? digest : TEXT(""));
	params_add_value(j, "tasks", koine_value_get(shown, "held"));
	return call_send(cli, "project.trust", j, &a);
}

static int cmd_trust(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];
	int r = automation_show(cli, folder, &a);

	if (r != 0)
		return r;
	if (!is_sure(cli))
		return fail_with(EXIT_ERROR_ANSWER, "not confirmed; the project is not trusted");
	r = send_trust(cli, folder, koine_answer_result(a));
	if (r == 0 && !cli->options.json)
		puts("trusted");
	return r;
}

static int cmd_distrust(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];
	int r = folder_of(cli, folder) ?: call_with(cli, "project.distrust", "folder", folder, &a);

	if (r == 0 && !print_if_json(cli, koine_answer_result(a)))
		puts("project no longer trusted");
	return r;
}

#define PROJECTS .request = {"project.list", "projects", .print = print_projects}
#define ONE_DIR  ARGS(0, 1, "takes at most one DIR")

static const struct command project_subs[] = {
	{"list", "", "List served projects and their trust state", NULL, NO_ARGS, PROJECTS,
	 .examples = {"koine project list", "koine project list --json"}},
	{"show", "[DIR]", "Show the rules, watches and schedules of a project", NULL, cmd_show,
	 ONE_DIR, .examples = {"koine project show ~/src/app", "koine project show"}},
	{"trust", "[DIR]", "Trust a project and enable its automation",
	 "The command shows the rules, watches and schedules of the project and asks "
	 "for confirmation. After you confirm, koined also starts the tasks that it "
	 "holds for this project.\n",
	 cmd_trust, ONE_DIR, .examples = {"koine project trust ~/src/app", "koine project trust"}},
	{"distrust", "[DIR]", "Stop trusting a project", NULL, cmd_distrust, ONE_DIR,
	 .examples = {"koine project distrust ~/src/app", "koine project distrust"}},
	{NULL},
};

const struct command project_commands[] = {
	{"project", "[COMMAND] [DIR]", "List projects, or trust one",
	 "A project's rules, watches and schedules (.aiwg/daemon.json), and tasks "
	 "that were already stored in its folder, stay inactive until you trust the "
	 "project. If .aiwg/daemon.json changes, you need to trust the project again. "
	 "Without a command, `koine project` lists projects. DIR defaults to the "
	 "current directory.\n",
	 NULL, project_subs, PROJECTS, .completes = COMPLETES_PROJECT,
	 .examples = {"koine project", "koine project trust ~/src/app"}},
	{NULL},
};

/* ---- rules ---- */

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
	return fail_with(EX_NOINPUT, "--project %s: %s", o->project, strerror(errno));
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

static int print_rules(const struct cli *cli, const struct koine_value *result)
{
	static const struct word_color colors[] = {
		{"on", COLOR_GREEN}, {"off", COLOR_GREY}, {NULL}};
	static const struct column columns[] = {
		{"RULE", "rule"},
		{"STATE", "enabled", .truth = {"off", "on"}, .colors = colors},
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
	print_left_out(stderr, member_number(result, "left_out"));
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
	const struct cli_list list = {.columns = columns,
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
	return print_if_json(cli, koine_value_get(koine_answer_result(a), "rules"))
		       ? 0
		       : print_rules(cli, koine_answer_result(a));
}

/* Whether any rule of that name asks first. If there is none, the call itself will say so. */
static int needs_approval(struct cli *cli, const char *name, bool *ret)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	int r;

	scope(cli, j);
	r = call_send(cli, "automation.rules", j, &a);
	for (EACH(rule, member_first(koine_answer_result(a), "rules")))
		*ret |= member_is(rule, "rule", name) && member_flag(rule, "needs_approval");
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
		signals_say_on_interrupt("\nkoine: stopped waiting; the rule runs as soon as its "
					 "request is approved (see: koine approvals)\n");
		/* A human takes longer than a call may. */
		talk_be_patient(cli);
	}
	return request_run(cli);
}

#define AT(member) OPTION_AT(struct automation_options, member)

static const struct option options[] = {
	{"--project", NULL, "DIR",
	 "select the rules of the project in DIR; \"\" selects the rules in koine.conf",
	 option_text, AT(project)},
	{NULL},
};

static const struct option log_options[] = {
	{"--limit", "-n", "N", "show the last N entries (default: 20)", option_number, .min = 1,
	 .param = "limit", .usual = "20"},
	{NULL},
};

static const struct command subs[] = {
	{"list", "", "List rules and when they last ran", NULL, cmd_list, NO_ARGS,
	 .request = {"automation.rules"},
	 .examples = {"koine rule list", "koine rule list --project ~/src/app"}},
	{"enable", "[RULE]", "Enable a rule, or all rules", NULL,
	 ARGS(0, 1, "takes at most one RULE"),
	 .request = {"automation.enable", .arg = "ruleId", .did = "is enabled",
		     .unnamed = "automation"},
	 .examples = {"koine rule enable nightly", "koine rule enable"}},
	{"disable", "[RULE]", "Disable a rule, or all rules",
	 "The rule stays disabled after a restart.\n", ARGS(0, 1, "takes at most one RULE"),
	 .request = {"automation.disable", .arg = "ruleId", .did = "is disabled",
		     .unnamed = "automation"},
	 .examples = {"koine rule disable nightly", "koine rule disable"}},
	{"run", "RULE", "Run a rule's action now",
	 "The action runs even if the rule's trigger has not fired or its cooldown "
	 "has not ended. If the rule needs approval, the command waits for the "
	 "decision.\n",
	 cmd_run, ARGS(1, 1, "requires one RULE"),
	 .request = {"automation.run", .arg = "rule", .did = "has run"},
	 .examples = {"koine rule run nightly", "koine rule run nightly --project ~/src/app"}},
	{"log", "", "Show the log of rule actions, oldest first", NULL, NULL, NULL, log_options,
	 NO_ARGS, .request = {"automation.log", "log", .print = print_log},
	 .examples = {"koine rule log -n 50", "koine rule log --project ~/src/app"}},
	{NULL},
};

const struct command automation_commands[] = {
	{"rule", "COMMAND [ARGUMENT]...", "List and control rules",
	 "A rule adds a task, runs a command, calls a webhook or shows a desktop notification: at "
	 "scheduled times, or after an event or a file change. See [rule NAME] in koine.conf(5).\n",
	 NULL, subs, options, sizeof(struct automation_options), .begin = find_project,
	 .scope = scope, .examples = {"koine rule list", "koine rule run nightly"}},
	{NULL},
};
