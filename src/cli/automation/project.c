/* koine project: which projects are served, what their files would do, and trusting them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/automation/automation.h"
#include "cli/commands.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/value.h"

/* The folder that was typed, or else the current one. */
static int folder_of(const struct cli *cli, char folder[PATH_MAX])
{
	const char *named = cli->n_args > 0 ? cli->args[0] : ".";

	if (realpath(named, folder))
		return 0;
	complain("%s: %s", named, strerror(errno));
	return EX_NOINPUT;
}

/* ---- the list ---- */

void automation_print_left_out(FILE *to, int64_t n)
{
	if (n > 0)
		fprintf(to, "%lld rule%s omitted (limit: [project] rules in koine.conf(5))\n",
			(long long)n, n == 1 ? " is" : "s are");
}

static int64_t sum_left_out(const struct koine_value *projects)
{
	int64_t n = 0;

	for (const struct koine_value *p = koine_value_first(projects); p; p = koine_value_next(p))
		n += member_number(p, "left_out");
	return n;
}

static int print_list(const struct cli *cli, const struct koine_value *projects)
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
		automation_print_left_out(stderr, sum_left_out(projects));
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
	for (const struct koine_value *v = koine_value_first(object); v; v = koine_value_next(v)) {
		fputs("    ", stdout);
		print_exact(stdout, text_of_key(v));
		print_value(": ", v);
	}
}

static void print_rules(const struct koine_value *rules)
{
	for (const struct koine_value *r = koine_value_first(rules); r; r = koine_value_next(r)) {
		print_value("rule ", koine_value_get(r, "rule"));
		print_members("when", koine_value_get(r, "trigger"));
		print_members("does", koine_value_get(r, "action"));
		if (member_flag(r, "forbidden"))
			puts("  forbidden by [project] webhooks in koine.conf");
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
	const struct koine_value *v;
	int r = 0;

	print_value("project ", koine_value_get(p, "folder"));
	print_value("state   ", koine_value_get(p, "state"));
	print_value("digest  ", koine_value_get(p, "digest"));
	print_rules(koine_value_get(p, "rules"));
	automation_print_left_out(stdout, member_number(p, "left_out"));
	for (v = member_first(p, "watches"); v; v = koine_value_next(v))
		print_value("watches ", v);
	for (v = member_first(p, "jobs"); v; v = koine_value_next(v)) {
		print_value("job ", koine_value_get(v, "id"));
		print_value("  cron: ", koine_value_get(v, "cron"));
	}
	for (v = member_first(p, "held"); r == 0 && v; v = koine_value_next(v))
		r = print_task(cli, folder, v);
	return r;
}

static int show(struct cli *cli, char folder[PATH_MAX], struct koine_answer **ret)
{
	int r = folder_of(cli, folder) ?: call_with(cli, "project.show", "folder", folder, ret);

	if (r != 0)
		return r;
	if (!cli->options.json)
		return print_project(cli, folder, koine_answer_result(*ret));
	print_json_compact(stdout, koine_answer_result(*ret));
	return 0;
}

static int cmd_show(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];

	return show(cli, folder, &a);
}

/* ---- trusting ---- */

/* A person at a terminal is asked; a script has already decided. */
static bool is_sure(const struct cli *cli)
{
	char line[16];

	if (!cli->terminal || !isatty(STDIN_FILENO))
		return true;
	fputs("Trust this project? [y/N] ", stdout);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

/* Trust what was shown, and nothing else. */
static int send_trust(struct cli *cli, const char *folder, const struct koine_value *shown)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct text digest = member_text(shown, "digest");
	struct koine_json *j = params_new();

	params_add(j, "folder", folder);
	params_add_text(j, "digest", digest.data ? digest : TEXT(""));
	if (j) {
		koine_json_key(j, "tasks");
		koine_json_value(j, koine_value_get(shown, "held"));
	}
	return call_send(cli, "project.trust", j, &a);
}

static int cmd_trust(struct cli *cli)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char folder[PATH_MAX];
	int r = show(cli, folder, &a);

	if (r != 0)
		return r;
	if (!is_sure(cli)) {
		complain("project not trusted");
		return EXIT_ERROR_ANSWER;
	}
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

	if (r == 0 && cli->options.json)
		print_json_compact(stdout, koine_answer_result(a));
	else if (r == 0)
		puts("project no longer trusted");
	return r;
}

#define LIST    .request = {"project.list", "projects", .print = print_list}
#define ONE_DIR ARGS(0, 1, "takes at most one DIR")

static const struct command subs[] = {
	{"list", "", "List served projects and their trust state", NULL, NO_ARGS, LIST,
	 .examples = {"koine project list", "koine project list --json"}},
	{"show", "[DIR]", "Show the rules, watches and schedules of a project", NULL, cmd_show,
	 ONE_DIR, .examples = {"koine project show ~/src/app", "koine project show"}},
	{"trust", "[DIR]", "Trust a project and enable its automation",
	 "Shows the rules, watches and schedules of the project and asks for confirmation. If you "
	 "confirm, held tasks of the project start.\n",
	 cmd_trust, ONE_DIR, .examples = {"koine project trust ~/src/app", "koine project trust"}},
	{"distrust", "[DIR]", "Stop trusting a project", NULL, cmd_distrust, ONE_DIR,
	 .examples = {"koine project distrust ~/src/app", "koine project distrust"}},
	{NULL},
};

const struct command project_commands[] = {
	{"project", "[COMMAND] [DIR]", "List projects, or trust one",
	 "A project's rules, watches and schedules (.aiwg/daemon.json), and tasks that came with "
	 "its folder, are inactive until you trust the project. If .aiwg/daemon.json changes, you "
	 "need to trust the project again. Without a command, `koine project` lists projects. DIR "
	 "defaults to the current folder.\n",
	 NULL, subs, LIST, .completes = COMPLETES_PROJECT,
	 .examples = {"koine project", "koine project trust ~/src/app"}},
	{NULL},
};
