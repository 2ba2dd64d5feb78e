#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "engine/approval/approval.h"
#include "engine/automation/automation.h"
#include "engine/chat/chat.h"
#include "engine/event/event.h"
#include "engine/extract/extract.h"
#include "engine/automation/job.h"
#include "engine/memory/memory.h"
#include "engine/bridge/bridge.h"
#include "engine/node/node.h"
#include "engine/notify/notify.h"
#include "engine/program/process.h"
#include "engine/session/session.h"
#include "engine/task/task.h"
#include "engine/program/tool.h"
#include "engine/automation/trust.h"
#include "engine/page_session/page_session.h"
#include "io/process/child.h"
#include "store/store.h"

int engine_open(const struct engine_opts *opts, struct engine **ret_engine, struct error *error)
{
	const struct store_opts store_opts = {
		.n_readers = opts->n_readers, .host = opts->host, .accepted = opts->accepted};
	struct engine *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	r = store_open(opts->store, &store_opts, &s->store, error);
	if (r != 0) {
		engine_close(s);
		return r;
	}
	s->owner = store_owner(s->store);
	*ret_engine = s;
	return 0;
}

void engine_close(struct engine *s)
{
	if (!s)
		return;
	/* Programs have ended by now; the others may take over what is left. */
	node_free(s->node);
	automation_free(s->automation);
	notify_free(s->notify);
	jobs_free(s->jobs);
	trust_free(s->trust);
	page_sessions_free(s->page_sessions);
	tools_free(s->tools);
	processes_free(s->processes);
	sessions_free(s->sessions);
	bridges_free(s->bridges);
	approvals_free(s->approvals);
	tasks_free(s->tasks);
	chat_free(s->chat);
	extracts_free(s->extracts);
	memories_free(s->memories);
	events_free(s->events);
	store_close(s->store);
	free(s);
}

int engine_begin(void *engine)
{
	struct engine *s = engine;

	memories_dropped(s->memories);
	events_dropped(s->events);
	return store_begin(s->store);
}

int engine_commit(void *engine)
{
	struct engine *s = engine;
	int r = events_store(s->events);

	if (r == 0)
		r = store_commit(s->store);
	else
		store_fail(s->store, r);
	if (r == 0) {
		memories_committed(s->memories);
		chat_committed(s->chat);
		events_committed(s->events);
	} else if (r == -EINPROGRESS) {
		events_doubt(s->events);
	}
	memories_dropped(s->memories);
	events_dropped(s->events);
	return r;
}

int engine_enter(void *engine)
{
	struct engine *s = engine;
	int r = events_mark(s->events);

	memories_mark(s->memories);
	return r != 0 ? r : store_savepoint(s->store);
}

int engine_leave(void *engine, bool keep)
{
	struct engine *s = engine;

	if (keep)
		return store_release(s->store);
	memories_undo(s->memories);
	events_undo(s->events);
	return store_rollback_to(s->store);
}

bool engine_trails(const struct engine *s)
{
	return events_ready(s->events);
}

struct work *engine_trailer(struct engine *s)
{
	return events_trailer(s->events);
}

int engine_backup(struct engine *s, const char *path, struct error *error)
{
	return store_backup(s->store, path, error);
}

int engine_shrink(struct engine *s, bool *ret_more)
{
	return store_shrink(s->store, ret_more);
}

bool engine_shrinks(const struct engine *s)
{
	return store_shrinks(s->store);
}

void engine_stop(struct engine *s)
{
	store_stop(s->store);
}

const char *engine_failing(const struct engine *s)
{
	int fault = store_failing(s->store);

	if (store_hangs(s->store))
		return "a write has blocked all other writes for several seconds";
	return fault == 0 ? NULL : fault_words(fault);
}

const char *engine_ailing(const struct engine *s)
{
	const char *words = engine_failing(s) ?: node_fault(s->node);

	if (words || !s->node || node_epoch(s->node) != 0)
		return words;
	return "this host has lost its lease";
}

unsigned engine_children(void)
{
	return children_running();
}

const char *engine_store_path(const struct engine *s)
{
	return store_path(s->store);
}

bool engine_need_check(const struct engine *s)
{
	return !store_was_clean(s->store);
}

void engine_check(struct engine *s, int lane, struct store_health *ret_health)
{
	struct error error = {.text = ""};
	int r = store_quick_check(s->store, lane, &error);

	/* If it was told to stop, it knows nothing, and the check stays due. */
	*ret_health = (struct store_health) {.checked = r != -ECANCELED};
	ret_health->failed = ret_health->checked && r != 0;
	if (ret_health->failed)
		snprintf(ret_health->text, sizeof(ret_health->text), "%s", error_words(r, &error));
}

void engine_set_health(struct engine *s, const struct store_health *health)
{
	s->health = *health;
}

const struct store_health *engine_health(const struct engine *s)
{
	return &s->health;
}
