/*
 * A project's .aiwg/daemon.json, read as the original does: limits, rules, watched folders,
 * the schedule. Everything is optional; anything wrong is reported with its line and left out.
 */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "engine/automation/automation.h"
#include "engine/automation/changes.h"

enum {
	AIWG_CONFIG_MAX = 1 << 20, /* bytes of the file */
	AIWG_PATHS_MAX = 64,
	AIWG_JOBS_MAX = 256,
};

struct aiwg_watched {
	struct text path;          /* as written: relative to the project, or absolute */
	unsigned changes;          /* bits of enum change */
	const struct text *ignore; /* parts of paths below it, with "*" for anything */
	unsigned n_ignore;
	const struct text *extensions; /* endings of its files; none: any file */
	unsigned n_extensions;
};

struct aiwg_job_config {
	struct text id;
	struct text cron;
	const struct value *action; /* sent along with the event; may be NULL */
	struct text where;          /* "FILE:LINE" */
};

struct aiwg_config {
	unsigned parallel;    /* daemon.max_parallel_actions; 0: not given */
	int64_t timeout_ms;   /* daemon.action_timeout_minutes; 0: not given */
	unsigned queue;       /* supervisor.max_queue_depth; 0: not given */
	int64_t heartbeat_ms; /* daemon.heartbeat_interval_seconds; 0: not given */
	struct rule *rules;
	unsigned n_rules;
	unsigned n_left_out; /* rules beyond max_rules */
	bool watch;
	int64_t debounce_ms;
	const struct aiwg_watched *watched;
	unsigned n_watched;
	bool schedule;
	const struct aiwg_job_config *jobs;
	unsigned n_jobs;
};

typedef void (*aiwg_complain_fn)(void *arg, const char *sentence);

struct aiwg_config_file {
	const char *name; /* complaints name it */
	struct text text;
	struct text project;
	unsigned max_rules; /* only the first are used */
	aiwg_complain_fn complain;
	void *arg;
};

/*
 * The result is in the arena or points into the text, which must live as long. Refuses a text
 * that is not a JSON object, with the line.
 */
int aiwg_config_read(struct arena *a, const struct aiwg_config_file *file,
		     struct aiwg_config *ret_config, struct error *error);
