/*
 * Jobs: schedules that a client makes at run time. Each becomes a rule that has an agent do a task;
 * unlike the rules of the settings it is kept in the store.
 *
 * A job is the object that its client sent:
 *	{name, enabled, schedule: {kind: "cron", expr, tz} or {kind: "every", everyMs},
 *	 payload: {kind: "agentTurn", message, model}}
 * With {sessionTarget: "isolated"}, a missing kind of payload means agentTurn. All other members are
 * kept and shown.
 *
 * Hosts that share a store have the same jobs: what another one changes is followed. The event log has
 * job.added, job.changed and job.removed {id}.
 *
 * Everything runs on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "io/work.h"

struct automation;
struct chat;
struct events;
struct jobs;
struct loop;
struct store;

enum { JOBS_MAX = 100, JOB_ID_LEN = 48, JOB_BYTES_MAX = 256 << 10 };

struct job_info {
	const char *id;
	const struct value *data;
	bool enabled;
	int64_t created_ms;
	int64_t updated_ms;
	int64_t next_ms;  /* 0: none */
	int64_t fired_ms; /* 0: never */
	int64_t n_fired;
};

struct jobs_opts {
	struct loop *loop;
	struct workers *workers;
	struct store *store;
	struct events *events;
	struct automation *automation;
	struct chat *chat;
};

/* Reads them from the store. Call it before the threads start. */
int jobs_new(const struct jobs_opts *opts, struct jobs **ret_jobs);
void jobs_free(struct jobs *j); /* accepts NULL */

/* The oldest first; valid until the next pass of the loop. False: there is none. */
bool job_at(struct jobs *jobs, unsigned i, struct job_info *ret_info);

typedef void (*job_fn)(void *arg, int result, const struct job_info *job,
		       const struct error *error);

/*
 * All of these call fn once, when the change is stored, unless they refuse at once and return that.
 * REFUSE_PARAMS: an invalid schedule or payload; REFUSE_LIMIT: there are already JOBS_MAX;
 * REFUSE_NOT_FOUND; REFUSE_CONFLICT: somebody else has changed it meanwhile.
 */
int job_add(struct jobs *jobs, const struct value *data, job_fn fn, void *arg, struct error *error);
/* Members of the patch replace the job's own, and so do the members of an object in it; null
 * removes one. */
int job_update(struct jobs *jobs, struct text id, const struct value *patch, job_fn fn, void *arg,
	       struct error *error);
int job_remove(struct jobs *jobs, struct text id, job_fn fn, void *arg, struct error *error);

/* Runs it now. Calls fn when the task is submitted, as automation_run says. */
int job_run(struct jobs *jobs, struct text id, job_fn fn, void *arg, struct error *error);
