/* koine task: options, the table, and the commands that need one or two calls each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/talk.h"
#include "cli/task/task.h"

/* ---- which project is meant, and the parameters of calls ---- */

/* A task's program has its project in the environment, whatever its working directory is. */
static int task_find_project(struct cli *cli)
{
	struct task_options *o = cli->own;
	const char *given = o->project ? o->project : getenv("KOINE_PROJECT");

	if (!given) {
		if (!task_project_above(".", o->project_path))
			o->project_path[0] = '\0';
		return 0;
	}
	if (given[0] == '\0' || realpath(given, o->project_path))
		return 0;
	return fail_with(EX_NOINPUT, "%s %s: %s", o->project ? "--project" : "KOINE_PROJECT", given,
			 strerror(errno));
}

void task_scope(const struct cli *cli, struct koine_json *params)
{
	const struct task_options *o = cli->own;

	params_add(params, "project", o->all_projects ? NULL : o->project_path);
}

struct koine_json *task_params(const struct cli *cli)
{
	struct koine_json *j = params_new();

	task_scope(cli, j);
	return j;
}

/* The daemon does not know our working directory: says what to do about it. */
static void task_print_hint(const struct cli *cli, const struct koine_answer *error)
{
	const struct task_options *o = cli->own;

	if (member_is(koine_answer_error_data(error), "field", "runner"))
		fputs("koine agents lists the configured agents; for an agent of Claude Code, use "
		      "--claude-agent\n",
		      stderr);
	if (o->project_path[0] && member_is(koine_answer_error_data(error), "field", "project"))
		fprintf(stderr,
			"to serve this project, start koined with --project %s; to use no project, "
			"pass --project \"\"\n",
			o->project_path);
}

bool task_read_id(const char *typed, char id[TASK_ID_MAX])
{
	if (task_id(typed, id))
		return true;
	complain("invalid task id '%.60s': expected task-NNNN, a number or a label", typed);
	return false;
}

int task_params_id(const struct cli *cli, const char *typed, struct koine_json **ret_params)
{
	char id[TASK_ID_MAX];

	if (!task_read_id(typed, id))
		return EX_USAGE;
	*ret_params = task_params(cli);
	params_add(*ret_params, "id", id);
	return 0;
}

int task_send_id(struct cli *cli, const char *method, const char *typed,
		 struct koine_answer **ret_answer)
{
	struct koine_json *j = NULL;
	int r = task_params_id(cli, typed, &j);

	return r != 0 ? r : call_send(cli, method, j, ret_answer);
}

/* ---- the options ---- */

#define AT(member) OPTION_AT(struct task_options, member)

/* clang-format off */
#define ALL_PROJECTS \
	{"--all-projects", NULL, NULL, "include all projects", option_flag, AT(all_projects)}
#define GROUP(help) {"--group", "-g", "GROUP", help, option_word, AT(group), .param = "group"}
#define LABEL(help) {"--label", "-l", "LABEL", help, option_word, AT(label), .param = "label"}
/* clang-format on */

/* clang-format off */
#define PROJECT \
	{"--project", NULL, "DIR", "select a project (default: KOINE_PROJECT, or the nearest folder with .aiwg)", option_text, \
	 AT(project)}
#define PRIORITY {"--priority", "-p", "N", "set the priority; tasks with a higher priority start first (default: 0)", option_decimal, .param = "priority"}
#define AFTER \
	{"--after", NULL, "ID", "start after task ID has completed (repeatable)", option_list, \
	 AT(after), .max = 64}
#define TIMEOUT(help, least) \
	{"--timeout", NULL, "TIME", "set the timeout of each attempt: 90, 10m, 2h" help, \
	 option_span, .min = least, .param = "timeout"}
#define WHERE \
	{"--host", NULL, "NAME", "run on host NAME; \"any\" means any host", \
	 option_word, .param = "host"}, \
	{"--on", NULL, "LABEL", "run only on a host with this label", option_word, .param = "on"}
/* For both ways to add one. */
#define ADDING \
	PRIORITY, \
	WHERE, \
	GROUP("add the task to a group"), \
	LABEL("set a label, a short name shown in lists"), \
	AFTER, \
	{"--dir", "-C", "DIR", "run in DIR (default: the current directory)", option_word, \
	 AT(folder)}, \
	TIMEOUT("", 1), \
	{"--delay", NULL, "TIME", "wait at least TIME before starting", option_span, .param = "delay"}, \
	{"--retry", NULL, "N", "retry up to N times if the task fails", option_number, .min = 1, .max = 1000, \
	 .param = "retries"}, \
	{"--retry-delay", NULL, "TIME", "wait TIME before the first retry, then double it (default: 1s)", option_span, \
	 .min = 1, .param = "retry_delay"}, \
	{"--stash", NULL, NULL, "add the task stashed: it starts only after `koine task enqueue`", option_flag, .param = "stash"}, \
	{"--env", "-e", "NAME[=VALUE]", "set an environment variable; without VALUE, copy it from your environment (repeatable)", \
	 option_list, AT(env)}, \
	{"--wait", "-w", NULL, "wait until the task ends, and exit with its exit code", option_flag, AT(wait)}, \
	{"--follow", "-f", NULL, "print the output of the task, then exit as with --wait", option_flag, AT(follow)}
/* clang-format on */

static const struct option task_options[] = {PROJECT, {NULL}};

static const struct option task_add_options[] = {
	ADDING,
	{"--agent", "-a", "NAME", "run this agent: claude, or an agent defined in koine.conf",
	 option_word, .param = "runner", .completes = COMPLETES_AGENT},
	{"--claude-agent", NULL, "NAME", "run claude with --agent NAME", option_word,
	 .param = "agent"},
	{"--stdin", NULL, NULL, "read the prompt from stdin, or append stdin to PROMPT",
	 option_flag, AT(from_stdin)},
	{NULL},
};

static const struct option task_run_options[] = {
	{"--shell", "-c", "LINE", "run LINE with sh instead of a PROGRAM", option_word, AT(line)},
	ADDING,
	PROJECT,
	{NULL},
};

static const struct option task_edit_options[] = {
	{"--prompt", NULL, "TEXT", "set the prompt", option_word, AT(prompt), .param = "prompt"},
	{"--editor", "-e", NULL,
	 "edit the prompt in your editor; without options, this is the "
	 "default",
	 option_flag, AT(editor)},
	PRIORITY,
	{"--label", "-l", "LABEL", "set the label, a short name shown in lists; \"\" removes it",
	 option_text, .param = "label"},
	AFTER,
	{"--no-after", NULL, NULL, "remove all dependencies", option_flag, AT(no_after)},
	{"--agent", "-a", "NAME",
	 "run this agent: claude, or an agent defined in koine.conf; \"\" selects the default",
	 option_text, .param = "runner", .completes = COMPLETES_AGENT},
	TIMEOUT("; 0 selects the default", 0),
	{"--host", NULL, "NAME", "run on host NAME; \"any\" means any host", option_word,
	 .param = "host"},
	{"--on", NULL, "LABEL", "run only on a host with this label; \"\" means any host",
	 option_text, .param = "on"},
	{NULL},
};

static const struct option task_list_options[] = {
	{"--state", NULL, "STATE",
	 "show only tasks with this state: queued, running, completed, failed, skipped or "
	 "cancelled",
	 option_choice, AT(state), .param = "state",
	 .choices = "queued|running|completed|failed|skipped|cancelled"},
	GROUP("show only tasks of this group"),
	LABEL("show only tasks with this label"),
	{"--limit", "-n", "N", "show at most N tasks (default: 20)", option_number, AT(limit),
	 .min = 1},
	ALL_PROJECTS,
	{NULL},
};

static const struct option task_log_options[] = {
	{"--follow", "-f", NULL, "print new output until the task ends", option_flag, AT(follow)},
	{"--lines", "-n", "N", "show only the last N lines", option_number, AT(limit), .min = 1},
	{NULL},
};

static const struct option task_wait_options[] = {
	{"--status", NULL, "success|any",
	 "with --status any, exit with status 0 even if tasks failed", option_choice, AT(status)},
	{NULL},
};

static const struct option task_watch_options[] = {
	{"--lines", "-n", "N", "print the last N lines of the task's output first", option_number,
	 AT(limit), .min = 1},
	GROUP("show only tasks of this group"),
	ALL_PROJECTS,
	{NULL},
};

static const struct option task_pause_options[] = {
	GROUP("apply to the tasks of one group, in all projects"), {NULL}};

static const struct option task_delete_options[] = {
	{"--all", NULL, NULL, "delete all ended tasks", option_flag, AT(all)},
	GROUP("with --all, delete only tasks of this group"),
	{"--successful-only", NULL, NULL, "with --all, delete only completed tasks", option_flag,
	 .param = "successful_only"},
	ALL_PROJECTS,
	{NULL},
};

static const struct option task_enqueue_options[] = {
	{"--delay", NULL, "TIME", "wait at least TIME before starting", option_span,
	 .param = "delay"},
	{NULL},
};

static const struct option task_count_options[] = {ALL_PROJECTS, {NULL}};

/* ---- lists ---- */

enum {
	PAGE = 1000, /* tasks that koined answers at once */
	RETRIED_MAX = 1 << 20,
};

static struct koine_json *page_params(const struct cli *cli, int64_t limit, int64_t before)
{
	struct koine_json *j = request_begin(cli, NULL);

	params_add_int(j, "limit", limit);
	if (before > 0)
		params_add_int(j, "before", before);
	return j;
}

/* With --json the pages are one array. */
static int cmd_list(struct cli *cli)
{
	const struct task_options *o = cli->own;
	int64_t left = o->limit ? o->limit : 20;
	int64_t before = 0;
	int r;

	do {
		CLEANUP(answer_freep) struct koine_answer *a = NULL;
		const struct koine_value *found;
		bool first = before == 0;
		bool last;

		r = request_send(cli, page_params(cli, left < PAGE ? left : PAGE, before), &a);
		if (r != 0)
			return r;
		found = koine_answer_result(a);
		before = member_number(found, "next");
		left -= PAGE;
		last = left <= 0 || before == 0;
		if (!cli->options.json) {
			r = task_print_list(cli, found, last,
					    (o->limit ? o->limit : 20) - (left > 0 ? left : 0));
		} else {
			fputs(first ? "[" : "", stdout);
			print_json_items(stdout, koine_value_get(found, "tasks"), first);
			fputs(last ? "]\n" : "", stdout);
		}
	} while (r == 0 && left > 0 && before > 0);
	return r;
}

static int print_cleaned(const struct cli *cli, const struct koine_value *result)
{
	printf("%lld deleted\n", (long long)member_number(result, "cleaned"));
	return 0;
}

static int cmd_delete(struct cli *cli)
{
	static const struct cli_request all = {"task.clean", .patient = true,
					       .print = print_cleaned};
	const struct task_options *o = cli->own;

	if ((cli->n_args == 0) != o->all)
		return args_refuse(cli);
	return o->all ? request_run_as(cli, &all, NULL) : request_run(cli);
}

/* ---- retrying ---- */

/* Whether a retry of an earlier argument has queued it, too: one id on each line. */
static bool is_retried(const struct buf *retried, const char *typed)
{
	struct text rest = buf_text(retried), line;
	char id[TASK_ID_MAX];

	while (task_id(typed, id) && rest.len > 0 && text_next(&rest, '\n', &line)) {
		if (text_is(line, id))
			return true;
	}
	return false;
}

/* A task brings those that were skipped because of it: each is named once. */
static int retry_one(struct cli *cli, const char *typed, struct buf *retried)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	int r = task_send_id(cli, "task.retry", typed, &a);

	if (r != 0)
		return r;
	if (cli->options.json)
		call_say(cli, a, TEXT(""), "");
	for (EACH(id, member_first(koine_answer_result(a), "tasks"))) {
		struct text t = text_of_value(id);

		if (!cli->options.json)
			call_say(cli, a, t, "queued");
		buf_add(retried, t.data, t.len);
		buf_add_char(retried, '\n');
	}
	return retried->err ? out_of_memory() : 0;
}

static int by_number(const void *a, const void *b)
{
	char x[TASK_ID_MAX], y[TASK_ID_MAX];
	const char *const *p = a, *const *q = b;

	if (!task_id(*p, x) || !task_id(*q, y))
		return strcmp(*p, *q);
	return strlen(x) == strlen(y) ? strcmp(x, y) : strlen(x) < strlen(y) ? -1 : 1;
}

/* The oldest first: most tasks come after older ones, and are refused before those were queued again. */
static int cmd_retry(struct cli *cli)
{
	CLEANUP(buf_donep) struct buf retried;
	int first = 0;
	int r = talk_connect(cli);

	buf_init(&retried, RETRIED_MAX);
	if (r != 0)
		return r;
	qsort(cli->args, (size_t)cli->n_args, sizeof(cli->args[0]), by_number);
	for (int i = 0; i < cli->n_args && r != EX_UNAVAILABLE; i++) {
		if (is_retried(&retried, cli->args[i]))
			continue;
		r = retry_one(cli, cli->args[i], &retried);
		first = first ? first : r;
	}
	return first;
}

/* ---- cancelling ---- */

/* The method is aiwg's, which has no labels. */
static int cancel_one(struct cli *cli, const char *typed)
{
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	char id[TASK_ID_MAX];
	int r = 0;

	if (!task_read_id(typed, id))
		return EX_USAGE;
	if (strncmp(id, "task-", 5) != 0) {
		r = task_send_id(cli, "task.show", id, &a);
		member_copy(koine_answer_result(a), "id", id, sizeof(id));
	}
	return r != 0 ? r : request_run_as(cli, &cli->sub->request, id);
}

static int cmd_cancel(struct cli *cli)
{
	int first = 0;
	int r = talk_connect(cli);

	if (r != 0)
		return r;
	for (int i = 0; i < cli->n_args && r != EX_UNAVAILABLE; i++) {
		r = cancel_one(cli, cli->args[i]);
		first = first ? first : r;
	}
	return first;
}

/* ---- pausing ---- */

#define STASH                                                                                      \
	{                                                                                          \
		"task.stash", .arg = "id", .named = "id", .did = "stashed"                         \
	}
#define ENQUEUE                                                                                    \
	{                                                                                          \
		"task.enqueue", .arg = "id", .named = "id", .did = "enqueued"                      \
	}

/* Of a group, or all; single ones are stashed. */
static int pause_all(struct cli *cli, const char *method, const char *did)
{
	const struct task_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j = params_new();
	char name[300] = "all tasks";
	int r;

	params_add(j, "group", o->group);
	if (o->group)
		snprintf(name, sizeof(name), "group %.200s", o->group);
	r = call_send(cli, method, j, &a);
	if (r == 0)
		call_say(cli, a, text_of(name), did);
	return r;
}

static int change(struct cli *cli, const struct cli_request *one, const char *method,
		  const char *did)
{
	const struct task_options *o = cli->own;

	if (cli->n_args > 0 && o->group)
		return fail_with(EX_USAGE, "task %s takes a group or IDs, not both",
				 cli->sub->name);
	return cli->n_args > 0 ? request_run_each(cli, one) : pause_all(cli, method, did);
}

static int cmd_pause(struct cli *cli)
{
	return change(cli, &(const struct cli_request)STASH, "task.pause", "paused");
}

static int cmd_resume(struct cli *cli)
{
	return change(cli, &(const struct cli_request)ENQUEUE, "task.resume", "resumed");
}

static int cmd_parallel(struct cli *cli)
{
	const struct task_options *o = cli->own;
	CLEANUP(answer_freep) struct koine_answer *a = NULL;
	struct koine_json *j;
	char name[300] = "all tasks:", did[64] = "no limit until koined restarts";
	char *end;
	long n = strtol(cli->args[0], &end, 10);
	int r;

	if (end == cli->args[0] || *end != '\0' || n < 0 || n > INT_MAX)
		return fail_with(EX_USAGE, "invalid number of tasks '%.60s': expected an integer",
				 cli->args[0]);
	j = params_new();
	params_add_int(j, "parallel", n);
	params_add(j, "group", o->group);
	r = call_send(cli, "task.parallel", j, &a);
	if (r != 0)
		return r;
	if (o->group)
		snprintf(name, sizeof(name), "group %.200s:", o->group);
	if (n > 0)
		snprintf(did, sizeof(did), "at most %ld tasks at a time until koined restarts", n);
	call_say(cli, a, text_of(name), did);
	return 0;
}

/* ---- the table ---- */

#define ONE_ID ARGS(1, 1, "requires one ID")
#define IDS    ARGS(1, INT_MAX, "requires at least one ID")
#define BY_ID                                                                                      \
	"ID is the id of a task, its number (3 is task-0003) or its label, if no other task has "  \
	"the same.\n"
#define EXITS                                                                                      \
	"The exit code is 0 if the task completed, the exit code of its program if the program "   \
	"failed, 130 if the task was cancelled, and 1 otherwise.\n"

static const struct command subs[] = {
	{"add", "[OPTION]... [--] PROMPT... | -", "Add a task and print its id",
	 "Use - to read the prompt from stdin; --stdin appends stdin to PROMPT. TIME "
	 "is a number of seconds, or 10m, 2h, 7d, 1h30m. With --follow, stdout "
	 "contains only the output of the task.\n" EXITS,
	 cmd_task_add, NULL, task_add_options, ARGS(0, INT_MAX, "requires PROMPT, or - for stdin"),
	 .request = {"task.add"},
	 .examples = {"koine task add fix the tests",
		      "koine task add --follow --after task-0007 \"update the changelog\"",
		      "koine task add --delay 2h --retry 3 -- check the links"}},
	{"list", "", "List running, then waiting, then ended tasks", NULL, cmd_list, NULL,
	 task_list_options, NO_ARGS, .request = {"task.find", .with = {"open_first", "true"}},
	 .examples = {"koine task list", "koine task list --state failed --all-projects"}},
	{"show", "ID", "Show one task in full", BY_ID, ONE_ID,
	 .request = {"task.show", .arg = "id", .form = &task_form},
	 .examples = {"koine task show 3", "koine task show task-0003 --json"}},
	{"log", "ID", "Print the output of a task",
	 BY_ID "With -n, koine reads at most the last million bytes of the output.\n", cmd_task_log,
	 NULL, task_log_options, ONE_ID,
	 .examples = {"koine task log 3", "koine task log -n 20 -f 3"}},
	{"watch", "[ID]", "Watch all tasks live, or one until it ends",
	 "Without ID, the command shows running, waiting and ended tasks; q or Ctrl-C quits. With "
	 "ID, it prints the task's output until the task ends. " BY_ID EXITS,
	 cmd_task_watch, NULL, task_watch_options, ARGS(0, 1, "takes at most one ID"),
	 .examples = {"koine task watch", "koine task watch --all-projects",
		      "koine task watch 3 -n 20"}},
	{"wait", "ID...", "Wait until tasks have ended",
	 BY_ID EXITS "With several tasks, the first failure sets the exit code.\n", cmd_task_wait,
	 NULL, task_wait_options, IDS,
	 .examples = {"koine task wait 3 4 5", "koine task wait --status any 3"}},
	{"cancel", "ID...", "Cancel tasks and terminate their processes", BY_ID, cmd_cancel, IDS,
	 .request = {"task.cancel", .arg = "taskId", .did = "cancelled"},
	 .examples = {"koine task cancel 3", "koine task cancel 3 4 5"}},
	{"release", "ID...", "Release held tasks",
	 BY_ID "koined holds tasks of projects that you do not trust, and of adopted "
	       "stores.\n",
	 IDS, .request = {"task.release", .arg = "id", .named = "id", .did = "released"},
	 .examples = {"koine task release 3", "koine task release 3 4 5"}},
	{"delete", "ID... | --all", "Delete ended tasks and their output",
	 BY_ID "koined keeps tasks that a queued task depends on. --all applies to the current "
	       "project.\n",
	 cmd_delete, NULL, task_delete_options,
	 ARGS(0, INT_MAX, "requires --all or at least one ID"),
	 .request = {"task.clean", .arg = "id", .did = "deleted"},
	 .examples = {"koine task delete 3", "koine task delete --all --successful-only",
		      "koine task delete --all -g docs --all-projects"}},
	{"retry", "ID...", "Retry failed or cancelled tasks",
	 BY_ID "The command also requeues the tasks that were skipped because ID failed. If "
	       "a dependency of a task did not complete, the command fails; retry the "
	       "dependency instead.\n",
	 cmd_retry, IDS, .examples = {"koine task retry 3", "koine task retry 3 4 5"}},
	{"edit", "ID", "Change a queued task",
	 BY_ID "Omitted options keep their values; --after replaces all dependencies. Without "
	       "options, the command opens the prompt in VISUAL, EDITOR or vi.\n",
	 cmd_task_edit, NULL, task_edit_options, ONE_ID,
	 .request = {"task.edit", .arg = "id", .named = "id", .did = "changed"},
	 .examples = {"koine task edit 3", "koine task edit 3 --priority 5 --label docs"}},
	{"stash", "ID...", "Stash queued tasks so that they do not start",
	 BY_ID "The tasks do not start until `koine task enqueue`. `koine task pause ID` does the "
	       "same.\n",
	 IDS, .request = STASH, .examples = {"koine task stash 3", "koine task stash 3 4 5"}},
	{"enqueue", "ID...", "Requeue stashed tasks", BY_ID, NULL, NULL, task_enqueue_options, IDS,
	 .request = ENQUEUE,
	 .examples = {"koine task enqueue 3 --delay 1h", "koine task enqueue 3 4 5"}},
	{"pause", "[ID...]", "Pause all tasks, one group, or tasks by ID",
	 BY_ID "Running tasks continue. No new task starts until `koine task resume`, even "
	       "if koined restarts. The pause applies to all projects.\n",
	 cmd_pause, NULL, task_pause_options,
	 .examples = {"koine task pause", "koine task pause -g docs"}},
	{"resume", "[ID...]", "Resume paused tasks", BY_ID, cmd_resume, NULL, task_pause_options,
	 .examples = {"koine task resume", "koine task resume -g docs"}},
	{"parallel", "N", "Set how many tasks run at the same time",
	 "The limit applies at once, on this host only, until koined restarts. Running tasks "
	 "continue. With --group, N is the limit of that group in all projects, and 0 removes "
	 "it.\n",
	 cmd_parallel, NULL, task_pause_options, ARGS(1, 1, "requires one N"),
	 .examples = {"koine task parallel 8", "koine task parallel 1 -g docs"}},
	{"stats", "", "Count tasks by state", NULL, NULL, NULL, task_count_options, NO_ARGS,
	 .request = {"task.stats", .print = task_print_counts},
	 .examples = {"koine task stats", "koine task stats --all-projects"}},
	{"groups", "", "Count tasks by group", NULL, NULL, NULL, task_count_options, NO_ARGS,
	 .request = {"task.groups", "groups", .columns = task_group_columns},
	 .examples = {"koine task groups", "koine task groups --all-projects"}},
	{NULL},
};

const struct command task_commands[] = {
	{"task", "COMMAND [ARGUMENT]...", "Queue work for agents and follow it",
	 "The project of a task is --project, KOINE_PROJECT, or the nearest parent folder with "
	 ".aiwg; otherwise the task has no project.\n",
	 NULL, subs, task_options, sizeof(struct task_options), task_find_project, task_print_hint,
	 .completes = COMPLETES_TASK, .scope = task_scope, .read_arg = task_read_id,
	 .examples = {"koine task add fix the tests", "koine task list", "koine task log -f 3"}},
	{"run", "[OPTION]... [--] PROGRAM [ARG]... | -c LINE",
	 "Run a command as a task, without an agent",
	 "The arguments go to the program unchanged; -c LINE runs a line with sh. The "
	 "program runs in the current directory, with the environment of koined's "
	 "tasks and the variables set with --env. koine prints the task id, which you "
	 "can pass to `koine task log`, watch, wait and cancel. Agents cannot use "
	 "this command.\n" EXITS,
	 cmd_run, NULL, task_run_options, sizeof(struct task_options), task_find_project,
	 task_print_hint, ARGS(0, INT_MAX, "requires PROGRAM, or -c LINE"),
	 .completes = COMPLETES_TASK, .scope = task_scope, .request = {"task.run"},
	 .examples = {"koine run make test", "koine run --follow -c \"make 2>&1 | tail -20\""}},
	{NULL},
};
