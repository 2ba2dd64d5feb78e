/* The options of koine task. */
#include <math.h>
#include <string.h>

#include "cli/task/task.h"

#define AT(member) offsetof(struct task_options, member)

void task_options_init(void *own)
{
	struct task_options *o = own;

	o->priority = NAN;
	o->timeout_ms = -1;
}

/* clang-format off */
#define ALL_PROJECTS \
	{"--all-projects", NULL, NULL, "of every project", option_flag, AT(all_projects)}
#define GROUP(help) {"--group", "-g", "GROUP", help, option_word, AT(group)}
#define LABEL(help) {"--label", "-l", "LABEL", help, option_word, AT(label)}
/* clang-format on */

/* clang-format off */
#define PROJECT \
	{"--project", NULL, "DIR", \
	 "whose tasks; else KOINE_PROJECT, else the nearest folder with .aiwg", option_text, \
	 AT(project)}
#define PRIORITY {"--priority", "-p", "N", "the highest goes first; 0", option_decimal, AT(priority)}
#define AFTER \
	{"--after", NULL, "ID", "begin when that one is completed; may be given often", option_list, \
	 AT(after), .max = 64}
#define TIMEOUT(help, least) \
	{"--timeout", NULL, "TIME", "of one attempt: 90, 10s, 15m, 2h" help, option_span, \
	 AT(timeout_ms), .min = least}
#define WHERE \
	{"--host", NULL, "NAME", "the host that runs it, or any", option_word, AT(host)}, \
	{"--on", NULL, "LABEL", "only a host with this label runs it", option_word, AT(on)}
/* For both ways to add one. */
#define ADDING \
	PRIORITY, \
	WHERE, \
	GROUP("what it belongs to"), \
	LABEL("a short name for lists"), \
	AFTER, \
	{"--directory", "-d", "DIR", "where it runs; else where you stand", option_word, \
	 AT(folder)}, \
	TIMEOUT("", 1), \
	{"--delay", NULL, "TIME", "begin no sooner than then", option_span, AT(delay_ms)}, \
	{"--retry", NULL, "N", "try so often again when it fails", option_number, AT(retries), NULL, \
	 1, 1000}, \
	{"--retry-delay", NULL, "TIME", "before the first of these; 1s, then doubled", option_span, \
	 AT(retry_delay_ms), .min = 1}, \
	{"--stash", NULL, NULL, "keep it back until koine task enqueue", option_flag, AT(stash)}, \
	{"--env", "-e", "NAME[=VALUE]", "for its environment, else with your own value; often", \
	 option_list, AT(env)}, \
	{"--wait", "-w", NULL, "wait for its end, and exit as it did", option_flag, AT(wait)}, \
	{"--follow", "-f", NULL, "print what it prints, then as --wait", option_flag, AT(follow)}
/* clang-format on */

const struct option task_options[] = {PROJECT, {NULL}};

const struct option task_add_options[] = {
	ADDING,
	{"--agent", "-a", "NAME", "claude's --agent", option_word, AT(agent)},
	{"--runner", "-r", "NAME", "an agent of the daemon's settings, or claude", option_word,
	 AT(runner), .completes = COMPLETES_AGENT},
	{"--stdin", NULL, NULL, "read the prompt, or the rest of it, from stdin", option_flag,
	 AT(from_stdin)},
	{NULL},
};

const struct option task_run_options[] = {
	{"--shell", "-c", "LINE", "run this line by sh, in place of a PROGRAM", option_word,
	 AT(line)},
	ADDING,
	PROJECT,
	{NULL},
};

const struct option task_edit_options[] = {
	{"--prompt", NULL, "TEXT", "what is to be done", option_word, AT(prompt)},
	{"--editor", "-e", NULL, "change the prompt in your editor; so without options",
	 option_flag, AT(editor)},
	PRIORITY,
	{"--label", "-l", "LABEL", "a short name for lists; \"\": none", option_text, AT(label)},
	AFTER,
	{"--no-after", NULL, NULL, "begin without waiting for others", option_flag, AT(no_after)},
	{"--runner", "-r", "NAME",
	 "an agent of the daemon's settings, or claude; \"\": the default", option_text, AT(runner),
	 .completes = COMPLETES_AGENT},
	TIMEOUT("; 0: the default", 0),
	{"--host", NULL, "NAME", "the host that runs it, or any", option_word, AT(host)},
	{"--on", NULL, "LABEL", "only a host with this label runs it; \"\": any", option_text,
	 AT(on)},
	{NULL},
};

const struct option task_list_options[] = {
	{"--state", NULL, "STATE", "queued, running, completed, failed, skipped or cancelled",
	 option_choice, AT(state), .choices = "queued|running|completed|failed|skipped|cancelled"},
	GROUP("those of one group"),
	LABEL("those with this label"),
	{"--limit", "-n", "N", "how many at most; 20", option_number, AT(limit), .min = 1},
	ALL_PROJECTS,
	{NULL},
};

const struct option task_log_options[] = {
	{"--follow", "-f", NULL, "go on as it prints more, until it ends", option_flag, AT(follow)},
	{"--lines", "-n", "N", "the last so many lines alone", option_number, AT(limit), .min = 1},
	{NULL},
};

const struct option task_follow_options[] = {
	{"--lines", "-n", "N", "begin with the last so many lines", option_number, AT(limit),
	 .min = 1},
	{NULL},
};

const struct option task_wait_options[] = {
	{"--status", NULL, "success|any", "any: exit with 0 however they ended", option_choice,
	 AT(status)},
	{NULL},
};

const struct option task_watch_options[] = {
	GROUP("those of one group"),
	ALL_PROJECTS,
	{NULL},
};

const struct option task_pause_options[] = {GROUP("of one group, in all projects"), {NULL}};

const struct option task_clean_options[] = {
	GROUP("those of one group"),
	{"--successful-only", "-s", NULL, "only those that were completed", option_flag,
	 AT(successful)},
	ALL_PROJECTS,
	{NULL},
};

const struct option task_enqueue_options[] = {
	{"--delay", NULL, "TIME", "begin no sooner than then", option_span, AT(delay_ms)},
	{NULL},
};

const struct option task_count_options[] = {ALL_PROJECTS, {NULL}};
