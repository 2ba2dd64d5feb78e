/* The options of the commands about tasks, rules and the daemon. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/chat/chat.h"
#include "cli/kit/duration.h"
#include "cli/task/task.h"

static bool set_project(struct cli_options *o, const char *value)
{
	o->task.project = value;
	return true;
}

static bool set_all_projects(struct cli_options *o, const char *value)
{
	o->task.all_projects = true;
	return true;
}

static bool set_priority(struct cli_options *o, const char *value)
{
	char *end;

	o->task.priority = strtod(value, &end);
	o->task.has_priority = true;
	return end != value && *end == '\0' && isfinite(o->task.priority);
}

static bool set_group(struct cli_options *o, const char *value)
{
	o->task.group = value;
	return value[0] != '\0';
}

static bool set_agent(struct cli_options *o, const char *value)
{
	o->task.agent = value;
	return value[0] != '\0';
}

static bool set_runner(struct cli_options *o, const char *value)
{
	o->task.runner = value;
	return value[0] != '\0';
}

static bool set_folder(struct cli_options *o, const char *value)
{
	o->task.folder = value;
	return value[0] != '\0';
}

static bool set_after(struct cli_options *o, const char *value)
{
	if (o->task.n_after == TASK_AFTER_ARGS)
		return false;
	o->task.after[o->task.n_after++] = value;
	return value[0] != '\0';
}

static bool set_env(struct cli_options *o, const char *value)
{
	if (o->task.n_env == TASK_ENV_ARGS)
		return false;
	o->task.env[o->task.n_env++] = value;
	return value[0] != '=' && strchr(value, '=');
}

static bool set_timeout(struct cli_options *o, const char *value)
{
	return duration_parse(value, &o->task.timeout_ms) && o->task.timeout_ms > 0;
}

static bool set_delay(struct cli_options *o, const char *value)
{
	return duration_parse(value, &o->task.delay_ms);
}

static bool set_retries(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->task.retries) && o->task.retries <= 1000;
}

static bool set_retry_delay(struct cli_options *o, const char *value)
{
	return duration_parse(value, &o->task.retry_delay_ms) && o->task.retry_delay_ms > 0;
}

static bool set_wait(struct cli_options *o, const char *value)
{
	o->task.wait = true;
	return true;
}

static bool set_follow(struct cli_options *o, const char *value)
{
	o->task.follow = true;
	return true;
}

static bool set_force(struct cli_options *o, const char *value)
{
	o->task.force = true;
	return true;
}

static bool set_status(struct cli_options *o, const char *value)
{
	o->task.any_status = strcmp(value, "any") == 0;
	return o->task.any_status || strcmp(value, "success") == 0;
}

static bool set_state(struct cli_options *o, const char *value)
{
	static const char *const states[] = {"queued", "running", "completed", "failed",
					     "cancelled"};

	o->task.state = value;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(value, states[i]) == 0)
			return true;
	}
	return false;
}

static bool set_limit(struct cli_options *o, const char *value)
{
	return chat_read_count(value, &o->task.limit);
}

#define ALL_PROJECTS                                                                               \
	{                                                                                          \
		"--all-projects", NULL, NULL, "of every project", set_all_projects                 \
	}
#define GROUP(help)                                                                                \
	{                                                                                          \
		"--group", "-g", "GROUP", help, set_group                                          \
	}

const struct option task_options[] = {
	{"--project", NULL, "DIR",
	 "whose tasks; else KOINE_PROJECT, else the nearest folder with .aiwg", set_project},
	{NULL},
};

const struct option task_add_options[] = {
	{"--priority", "-p", "N", "the highest goes first; 0", set_priority},
	GROUP("what it belongs to"),
	{"--after", NULL, "ID", "begin when that one is completed; may be given often", set_after},
	{"--agent", "-a", "NAME", "claude's --agent", set_agent},
	{"--runner", "-r", "NAME", "an agent of the daemon's settings, or claude", set_runner},
	{"--directory", "-d", "DIR", "where it runs; else where you stand", set_folder},
	{"--timeout", NULL, "TIME", "of one attempt: 90, 10s, 15m, 2h", set_timeout},
	{"--delay", NULL, "TIME", "begin no sooner than then", set_delay},
	{"--retry", NULL, "N", "try so often again when it fails", set_retries},
	{"--retry-delay", NULL, "TIME", "before the first of these; 1s, then doubled",
	 set_retry_delay},
	{"--env", "-e", "NAME=VALUE", "for its environment; may be given often", set_env},
	{"--wait", "-w", NULL, "wait for its end, and exit as it did", set_wait},
	{"--follow", "-f", NULL, "print what it prints, then as --wait", set_follow},
	{NULL},
};

const struct option task_list_options[] = {
	{"--state", NULL, "STATE", "queued, running, completed, failed or cancelled", set_state},
	GROUP("those of one group"),
	{"--limit", "-n", "N", "how many at most; 20", set_limit},
	ALL_PROJECTS,
	{NULL},
};

const struct option task_log_options[] = {
	{"--follow", "-f", NULL, "go on as it prints more, until it ends", set_follow},
	{"--lines", "-n", "N", "the last so many lines alone", set_limit},
	{NULL},
};

const struct option task_follow_options[] = {
	{"--lines", "-n", "N", "begin with the last so many lines", set_limit},
	{NULL},
};

const struct option task_wait_options[] = {
	{"--status", NULL, "success|any", "any: exit with 0 however they ended", set_status},
	{NULL},
};

const struct option task_watch_options[] = {
	GROUP("those of one group"),
	ALL_PROJECTS,
	{NULL},
};

const struct option task_count_options[] = {ALL_PROJECTS, {NULL}};

const struct option automation_options[] = {
	{"--project", NULL, "DIR", "those of one folder; \"\": of the settings", set_project},
	{NULL},
};

const struct option automation_log_options[] = {
	{"--limit", "-n", "N", "how many of the newest; 20", set_limit},
	{NULL},
};

const struct option daemon_log_options[] = {
	{"--lines", "-n", "N", "the last so many; 50, at most 1000", set_limit},
	{"--follow", "-f", NULL, "go on as more comes", set_follow},
	{NULL},
};

const struct option daemon_stop_options[] = {
	{"--force", NULL, NULL, "do not wait for what runs", set_force},
	{NULL},
};
