/*
 * A project's .aiwg/daemon.json, as the original reads it: limits, rules, what to watch, what is
 * due when. Everything is optional; what is wrong is reported with its line and left out.
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
	struct text path;          /* as it was written: relative to the project, or absolute */
	unsigned changes;          /* bits of enum change */
	const struct text *ignore; /* parts of paths below it, with "*" for anything */
	unsigned n_ignore;
	const struct text *extensions; /* how its files end; none: any */
	unsigned n_extensions;
};

struct aiwg_job_config {
	struct text id;
	struct text cron;
	const struct value *action; /* told with the event; may be NULL */
	struct text where;          /* "FILE:LINE" */
};

struct aiwg_config {
	unsigned parallel;    /* daemon.max_parallel_actions; 0: not said */
	int64_t timeout_ms;   /* daemon.action_timeout_minutes; 0: not said */
	unsigned queue;       /* supervisor.max_queue_depth; 0: not said */
	int64_t heartbeat_ms; /* daemon.heartbeat_interval_seconds; 0: not said */
	struct rule *rules;
	unsigned n_rules;
	bool watch;
	int64_t debounce_ms;
	const struct aiwg_watched *watched;
	unsigned n_watched;
	bool schedule;
	const struct aiwg_job_config *jobs;
	unsigned n_jobs;
};

typedef void (*aiwg_complain_fn)(void *arg, const char *sentence);

/*
 * Its parts are in the arena, or point into `text`, which must live as long. Complaints name
 * `file`. Refuses what is no JSON object, with the line.
 */
int aiwg_config_read(struct arena *a, const char *file, struct text text, struct text project,
		     aiwg_complain_fn complain, void *arg, struct aiwg_config *ret_config,
		     struct why *why);
