/*
 * The projects that koined serves: each has a socket in its folder, settings of its own there
 * (.aiwg/daemon.json), files that say that a daemon runs, and rules.
 */
#pragma once

#include "daemon/backstage.h"
#include "daemon/daemon.h"
#include "dialect/aiwg/aiwg.h"
#include "engine/task/task.h"

struct projects;

/* One for each row of the plan that is a project's. */
int projects_new(const struct settings *s, const struct plan *plan, struct projects **ret_projects);
void projects_free(struct projects *p); /* accepts NULL; before the server is freed */

/* Those that no file of ours should be written to are told and passed over. Before there is a socket. */
void projects_check(struct projects *p);
bool projects_skipped(const struct projects *p, const struct plan_row *row);
/* Its socket cannot be: true where that is the project's own fault, which is then passed over. */
bool projects_skip(struct projects *p, const struct plan_row *row, const struct why *why);

/* For the endpoint of that row; then, the endpoint. NULL for a row of no project. */
const struct aiwg_project *projects_settings(const struct projects *p, const struct plan_row *row);
void projects_listening(struct projects *p, const struct plan_row *row, struct endpoint *e);

/* Reads their settings, for what follows; what is wrong there is logged. */
int projects_read(struct projects *p);

/* Their limits, as far as they have some. At most PROJECTS_MAX + LISTENS_MAX. */
unsigned projects_limits(const struct projects *p, struct task_project *out, unsigned max);

/* Takes over, once, what an earlier original has kept; the last two as in tasks_opts. Before
 * tasks_start and the threads. */
int projects_import(struct projects *p, struct services *s, const char *output_folder,
		    int64_t output_bytes);

/* After all services: rules, watches, clients that listen, and the files. */
int projects_start(struct projects *p, struct backstage *stage, struct services *s);

/* SIGHUP: settings and rules of those that can be read again. */
void projects_reload(struct projects *p);

/* The last word in the files. */
void projects_stopped(struct projects *p);
