#include "engine/services.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/approval/approval.h"
#include "engine/automation/automation.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/automation/job.h"
#include "engine/memory/memory.h"
#include "engine/program/process.h"
#include "engine/session/session.h"
#include "engine/task/task.h"
#include "engine/program/tool.h"
#include "engine/automation/trust.h"
#include "store/store.h"

int services_open(const struct services_opts *opts, struct services **ret_services, struct why *why)
{
	const struct store_opts store_opts = {.n_readers = opts->n_readers};
	struct services *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = store_open(opts->store, &store_opts, &s->store, why);
	if (r != 0) {
		services_close(s);
		return r;
	}
	*ret_services = s;
	return 0;
}

void services_close(struct services *s)
{
	if (!s)
		return;
	automation_free(s->automation);
	jobs_free(s->jobs);
	trust_free(s->trust);
	tools_free(s->tools);
	processes_free(s->processes);
	sessions_free(s->sessions);
	approvals_free(s->approvals);
	tasks_free(s->tasks);
	chat_free(s->chat);
	events_free(s->events);
	memories_free(s->memories);
	store_close(s->store);
	free(s);
}

int services_begin(void *services)
{
	struct services *s = services;

	memories_dropped(s->memories);
	events_dropped(s->events);
	return store_begin(s->store);
}

int services_commit(void *services)
{
	struct services *s = services;
	int r = store_commit(s->store);

	if (r == 0) {
		memories_committed(s->memories);
		chat_committed(s->chat);
		events_committed(s->events);
	}
	memories_dropped(s->memories);
	events_dropped(s->events);
	return r;
}

int services_enter(void *services)
{
	struct services *s = services;

	memories_mark(s->memories);
	events_mark(s->events);
	return store_savepoint(s->store);
}

int services_leave(void *services, bool keep)
{
	struct services *s = services;

	if (keep)
		return store_release(s->store);
	memories_undo(s->memories);
	events_undo(s->events);
	return store_rollback_to(s->store);
}

bool services_trails(const struct services *s)
{
	return events_ready(s->events);
}

struct work *services_trailer(struct services *s)
{
	return events_trailer(s->events);
}

int services_backup(struct services *s, const char *path, struct why *why)
{
	return store_backup(s->store, path, why);
}

void services_stop(struct services *s)
{
	store_stop(s->store);
}

int services_failing(const struct services *s)
{
	return store_failing(s->store);
}

const char *services_store_path(const struct services *s)
{
	return store_path(s->store);
}

bool services_need_check(const struct services *s)
{
	return !store_was_clean(s->store);
}

void services_check(struct services *s, int lane, struct store_health *ret_health)
{
	struct why why = {.text = ""};
	int r = store_quick_check(s->store, lane, &why);

	/* Told to stop: it knows nothing, and the check stays due. */
	*ret_health = (struct store_health) {.checked = r != -ECANCELED};
	ret_health->failed = ret_health->checked && r != 0;
	if (ret_health->failed)
		snprintf(ret_health->text, sizeof(ret_health->text), "%s",
			 r > 0 ? why.text : strerror(-r));
}

void services_set_health(struct services *s, const struct store_health *health)
{
	s->health = *health;
}

const struct store_health *services_health(const struct services *s)
{
	return &s->health;
}
