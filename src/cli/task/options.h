/* What the commands about tasks, rules and the daemon take beside the options of all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TASK_AFTER_ARGS = 64, TASK_ENV_ARGS = 256 };

struct task_options {
	const char *project; /* NULL: the one we stand in; "": none */
	bool all_projects;
	double priority;
	bool has_priority;
	const char *group;
	const char *agent;
	const char *runner;
	const char *folder; /* where it runs */
	const char *after[TASK_AFTER_ARGS];
	unsigned n_after;
	const char *env[TASK_ENV_ARGS];
	unsigned n_env;
	int64_t timeout_ms; /* 0: not given, for all of these */
	int64_t delay_ms;
	int64_t retries;
	int64_t retry_delay_ms;
	bool wait;
	bool follow;
	bool any_status;
	bool force;
	const char *state;
	int64_t limit;
};
