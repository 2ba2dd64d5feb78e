/* The options of koine task. */
#include <string.h>

#include "cli/task/task.h"

#define AT(member) OPTION_AT(struct task_options, member)

/* clang-format off */
#define ALL_PROJECTS \
	{"--all-projects", NULL, NULL, "include all projects", option_flag, AT(all_projects)}
#define GROUP(help) {"--group", "-g", "GROUP", help, option_word, AT(group), .param = "group"}
#define LABEL(help) {"--label", "-l", "LABEL", help, option_word, AT(label), .param = "label"}
/* clang-format on */

/* clang-format off */
#define PROJECT \
	{"--project", NULL, "DIR", "select a project; default: KOINE_PROJECT, or the nearest folder with .aiwg", option_text, \
	 AT(project)}
#define PRIORITY {"--priority", "-p", "N", "set the priority; higher numbers start first; default 0", option_decimal, .param = "priority"}
#define AFTER \
	{"--after", NULL, "ID", "start after task ID has completed (repeatable)", option_list, \
	 AT(after), .max = 64}
#define TIMEOUT(help, least) \
	{"--timeout", NULL, "TIME", "set the timeout of each attempt: 90, 10s, 15m, 2h" help, \
	 option_span, .min = least, .param = "timeout"}
#define WHERE \
	{"--host", NULL, "NAME", "run on host NAME, or on any host if NAME is any", \
	 option_word, .param = "host"}, \
	{"--on", NULL, "LABEL", "run only on a host with this label", option_word, .param = "on"}
/* For both ways to add one. */
#define ADDING \
	PRIORITY, \
	WHERE, \
	GROUP("add the task to a group"), \
	LABEL("set a label, a short name shown in lists"), \
	AFTER, \
	{"--directory", "-d", "DIR", "run in DIR; default: the current folder", option_word, \
	 AT(folder)}, \
	TIMEOUT("", 1), \
	{"--delay", NULL, "TIME", "wait at least TIME before starting", option_span, .param = "delay"}, \
	{"--retry", NULL, "N", "retry up to N times if the task fails", option_number, .min = 1, .max = 1000, \
	 .param = "retries"}, \
	{"--retry-delay", NULL, "TIME", "wait TIME before the first retry, then double it; default 1s", option_span, \
	 .min = 1, .param = "retry_delay"}, \
	{"--stash", NULL, NULL, "do not start the task before `koine task enqueue`", option_flag, .param = "stash"}, \
	{"--env", "-e", "NAME[=VALUE]", "set an environment variable; default VALUE: from your environment (repeatable)", \
	 option_list, AT(env)}, \
	{"--wait", "-w", NULL, "wait until the task ends, and exit with its exit code", option_flag, AT(wait)}, \
	{"--follow", "-f", NULL, "print the output of the task, then exit as with --wait", option_flag, AT(follow)}
/* clang-format on */

const struct option task_options[] = {PROJECT, {NULL}};

const struct option task_add_options[] = {
	ADDING,
	{"--agent", "-a", "NAME", "run claude with --agent NAME", option_word, .param = "agent"},
	{"--runner", "-r", "NAME", "run this agent: claude, or an agent of koine.conf", option_word,
	 .param = "runner", .completes = COMPLETES_AGENT},
	{"--stdin", NULL, NULL, "read the prompt from stdin, or append stdin to PROMPT",
	 option_flag, AT(from_stdin)},
	{NULL},
};

const struct option task_run_options[] = {
	{"--shell", "-c", "LINE", "run LINE with sh instead of a PROGRAM", option_word, AT(line)},
	ADDING,
	PROJECT,
	{NULL},
};

const struct option task_edit_options[] = {
	{"--prompt", NULL, "TEXT", "set the prompt", option_word, AT(prompt), .param = "prompt"},
	{"--editor", "-e", NULL, "edit the prompt in your editor; default without other options",
	 option_flag, AT(editor)},
	PRIORITY,
	{"--label", "-l", "LABEL", "set the label, a short name shown in lists; \"\" removes it",
	 option_text, .param = "label"},
	AFTER,
	{"--no-after", NULL, NULL, "remove all dependencies", option_flag, AT(no_after)},
	{"--runner", "-r", "NAME",
	 "run this agent: claude, or an agent of koine.conf; \"\" selects the default", option_text,
	 .param = "runner", .completes = COMPLETES_AGENT},
	TIMEOUT("; 0 selects the default", 0),
	{"--host", NULL, "NAME", "run on host NAME, or on any host if NAME is any", option_word,
	 .param = "host"},
	{"--on", NULL, "LABEL", "run only on a host with this label; \"\" means any host",
	 option_text, .param = "on"},
	{NULL},
};

const struct option task_list_options[] = {
	{"--state", NULL, "STATE",
	 "filter by state: queued, running, completed, failed, skipped or cancelled", option_choice,
	 AT(state), .param = "state",
	 .choices = "queued|running|completed|failed|skipped|cancelled"},
	GROUP("show only tasks of this group"),
	LABEL("show only tasks with this label"),
	{"--limit", "-n", "N", "show at most N tasks; default 20", option_number, AT(limit),
	 .min = 1},
	ALL_PROJECTS,
	{NULL},
};

const struct option task_log_options[] = {
	{"--follow", "-f", NULL, "keep printing until the task ends", option_flag, AT(follow)},
	{"--lines", "-n", "N", "show only the last N lines", option_number, AT(limit), .min = 1},
	{NULL},
};

const struct option task_follow_options[] = {
	{"--lines", "-n", "N", "start with the last N lines", option_number, AT(limit), .min = 1},
	{NULL},
};

const struct option task_wait_options[] = {
	{"--status", NULL, "success|any", "with any, exit with 0 even if tasks failed",
	 option_choice, AT(status)},
	{NULL},
};

const struct option task_watch_options[] = {
	GROUP("show only tasks of this group"),
	ALL_PROJECTS,
	{NULL},
};

const struct option task_pause_options[] = {
	GROUP("apply to the tasks of one group, in all projects"), {NULL}};

const struct option task_clean_options[] = {
	GROUP("delete only tasks of this group"),
	{"--successful-only", "-s", NULL, "delete only completed tasks", option_flag,
	 .param = "successful_only"},
	ALL_PROJECTS,
	{NULL},
};

const struct option task_enqueue_options[] = {
	{"--delay", NULL, "TIME", "wait at least TIME before starting", option_span,
	 .param = "delay"},
	{NULL},
};

const struct option task_count_options[] = {ALL_PROJECTS, {NULL}};
