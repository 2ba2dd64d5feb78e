#include "daemon/tasks.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/task/task.h"
#include "engine/automation/trust.h"

static const int64_t day_ms = 24 * 3600 * 1000LL;

/* Beside the store, and named for it: two stores in one folder do not share it. */
static int output_folder(const struct services *s, char out[PATH_MAX])
{
	char store[PATH_MAX];
	int n;

	if (!realpath(services_store_path(s), store))
		return -errno;
	n = snprintf(out, PATH_MAX, "%s.tasks", store);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static unsigned group_limits(const struct task_settings *t, struct task_group_limit *out)
{
	for (unsigned i = 0; i < t->n_groups; i++)
		out[i] = (struct task_group_limit) {t->groups[i].name, t->groups[i].parallel};
	return t->n_groups;
}

static int start_tasks(const struct settings *s, struct backstage *stage, struct services *services,
		       const struct environment *env, const char *folder, struct why *why)
{
	struct task_group_limit groups[GROUPS_MAX];
	const struct tasks_opts opts = {
		.loop = stage->server->loop,
		.background = backstage(stage),
		.output_folder = folder,
		.parallel = s->tasks.parallel,
		.project_parallel = s->tasks.project_parallel,
		.queue = s->tasks.queue,
		.timeout_ms = s->tasks.timeout_ms,
		.output_bytes = (int64_t)s->tasks.output_bytes,
		.keep_ms = s->tasks.keep_days * day_ms,
		.interrupt_ms = s->tasks.interrupt_ms,
		.runner = s->tasks.runner,
		.env = env,
		.groups = groups,
		.n_groups = group_limits(&s->tasks, groups),
	};

	return tasks_start(services, &opts, why);
}

int tasks_begin(const struct settings *s, struct backstage *stage, struct services *services,
		struct hosts *hosts, const struct environments *env, struct why *why)
{
	char folder[PATH_MAX];
	int r = output_folder(services, folder);

	if (r == 0)
		r = trust_new(services->store, services->events, &services->trust);
	hosts->means.task_folder = folder;
	hosts->means.task_bytes = (int64_t)s->tasks.output_bytes;
	if (r == 0)
		r = hosts_open(hosts);
	hosts->means.task_folder = NULL;
	return r != 0 ? r : start_tasks(s, stage, services, &env->tasks, folder, why);
}
