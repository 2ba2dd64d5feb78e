/* What clients can do with existing tasks: cancel, release and stash them. retry.c queues one again. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "engine/event/event.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { LOOKS_MAX = 8 };

int task_refuse_found(unsigned n, struct text id, struct error *error)
{
	struct text shown = text_cut(id, 100);

	if (n == 0)
		return refuse(error, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(shown));
	return refuse_field(
		error, "project",
		"several projects have a task %.*s; pass 'project' to select its project",
		TEXT_ARGS(shown));
}

static int refuse_ended(const struct task *task, struct error *error)
{
	return refuse(error, REFUSE_CONFLICT, "Task %.*s is already %s", TEXT_ARGS(task->id),
		      task_state_name(task->state));
}

/* ---- tasks that are not in memory ---- */

/* The task has ended, or never existed: the store is asked. */
struct lookup {
	struct request request;
	struct text project;
	struct text id;
	struct task found;
	struct task_named news; /* of another host, that we have not heard of */
	unsigned n;
	enum { LOOKUP_ONLY, LOOKUP_CANCEL } then;
	unsigned n_looks; /* how often it was looked up to be cancelled */
};

static int lookup_run(struct work *w, int lane)
{
	struct lookup *l = list_entry(w, struct lookup, request.work);
	struct connection *db = store_lane(l->request.tasks->store, lane);
	int r = task_find_row(db, &l->request.arena, l->project, l->id, &l->found, &l->n);

	l->news.found = false;
	if (r != 0 || l->n != 1 || l->found.state > TASK_RUNNING)
		return r;
	l->news = (struct task_named) {.project = l->found.project, .id = l->id};
	return store_task_find_named(db, &l->request.arena, &l->news, 1);
}

static int check_found(const struct lookup *l, struct error *error)
{
	if (l->n != 1)
		return task_refuse_found(l->n, l->id, error);
	if (l->news.found)
		return task_refuse_changed(l->id, error);
	return refuse_ended(&l->found, error);
}

static int cancel_found(struct lookup *l, struct live *found);

/* All open tasks are in memory, so another host has just brought this one there, or changed it. Returns it if it
 * is to be cancelled. */
static struct live *take_news(struct lookup *l)
{
	unsigned n;

	task_sync(l->request.tasks, &l->news);
	return l->then == LOOKUP_CANCEL ? live_find(l->request.tasks, l->news.project, l->id, &n)
					: NULL;
}

static void lookup_finished(struct work *w, int result)
{
	struct lookup *l = list_entry(w, struct lookup, request.work);
	struct live *found = result == 0 && l->news.found ? take_news(l) : NULL;

	if (found)
		result = cancel_found(l, found);
	else if (result == 0)
		result = check_found(l, &l->request.error);
	if (result != 0)
		request_done(&l->request, result);
}

/* NULL: no memory. */
static struct lookup *lookup_new(struct tasks *t, struct text project, struct text id, int then,
				 task_done_fn fn, void *arg)
{
	struct lookup *l = request_new(t, sizeof(*l), lookup_run, lookup_finished);

	if (!l)
		return NULL;
	l->then = then;
	l->request.fn = fn;
	l->request.arg = arg;
	if (arena_copy_text(&l->request.arena, project, &l->project) != 0 ||
	    arena_copy_text(&l->request.arena, id, &l->id) != 0) {
		request_free(l);
		return NULL;
	}
	return l;
}

static int lookup_start(struct lookup *l)
{
	return workers_submit(l->request.tasks->workers, &l->request.work, false);
}

static int look_up(struct tasks *t, struct text project, struct text id, int then, task_done_fn fn,
		   void *arg)
{
	struct lookup *l = lookup_new(t, project, id, then, fn, arg);
	int r;

	if (!l)
		return -ENOMEM;
	r = lookup_start(l);
	if (r != 0)
		request_free(l);
	return r;
}

int task_find_open(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
		   struct live **ret_live, struct error *error)
{
	unsigned n;
	struct live *l = live_find(t, project, id, &n);

	*ret_live = NULL;
	if (n == 0)
		return look_up(t, project, id, LOOKUP_ONLY, fn, arg);
	if (n > 1)
		return task_refuse_found(n, id, error);
	if (l->task.state > TASK_RUNNING)
		return refuse_ended(&l->task, error);
	*ret_live = l;
	return 0;
}

/* ---- cancelling ---- */

static void cancel_queued(struct tasks *t, struct live *l, struct task_change *c)
{
	task_end(t, l, TASK_CANCELLED, (struct text) {0}, (struct text) {0}, c);
}

/* The request is stored first: if the daemon dies now, the next one does not retry the task. */
static void cancel_running(struct tasks *t, struct live *l, struct task_change *c)
{
	live_set_text(l, &l->task.error, TEXT(TASK_CANCEL_REQUESTED));
	task_write(t, l, NULL, c);
	run_end_with(l->run, INTENT_CANCEL);
}

/* What another host runs: it is asked to cancel it. fn is called when that is on disk. */

struct cancel_request {
	struct request request;
	struct task row; /* its names are in the arena */
	struct store_task_kept kept;
};

static int cancel_request_run(struct work *w, int lane)
{
	struct cancel_request *c = list_entry(w, struct cancel_request, request.work);
	struct tasks *t = c->request.tasks;

	(void)lane;
	return store_task_wish(store_writer(t->store), c->row.seq, &c->kept)
		       ?: task_event_add(t, "task.cancel_requested", &c->row, 0, (struct text) {0});
}

/* It is not running any more, or runs again: an event will report that. */
static void cancel_request_finished(struct work *w, int result)
{
	struct cancel_request *c = list_entry(w, struct cancel_request, request.work);

	if (result == -ENOENT)
		result = task_refuse_changed(c->row.id, &c->request.error);
	request_done(&c->request, result);
}

static int cancel_elsewhere(struct tasks *t, struct live *l, task_done_fn fn, void *arg)
{
	struct cancel_request *c =
		request_new(t, sizeof(*c), cancel_request_run, cancel_request_finished);
	int r;

	if (!c)
		return -ENOMEM;
	c->row = (struct task) {.seq = l->task.seq, .exit_status = -1};
	c->request.fn = fn;
	c->request.arg = arg;
	r = arena_copy_text(&c->request.arena, l->project->name, &c->row.project)
		    ?: arena_copy_text(&c->request.arena, l->task.id, &c->row.id)
		    ?: workers_submit(t->workers, &c->request.work, true);
	if (r != 0)
		request_free(c);
	return r;
}

static int cancel(struct tasks *t, struct live *l, task_done_fn fn, void *arg, struct error *error)
{
	struct task_change *c;

	if (l->task.state > TASK_RUNNING)
		return refuse_ended(&l->task, error);
	if (l->task.state == TASK_RUNNING && !l->run)
		return cancel_elsewhere(t, l, fn, arg);
	c = task_change_new(fn, arg);
	if (!c)
		return -ENOMEM;
	if (l->run)
		cancel_running(t, l, c);
	else
		cancel_queued(t, l, c);
	return 0;
}

static void cancel_stored(void *lookup, int result, const struct error *error)
{
	struct lookup *l = lookup;

	/* Another host was quicker: what it made of the task is looked up, and cancelled. */
	if (result == REFUSE_CONFLICT && l->n_looks++ < LOOKS_MAX && lookup_start(l) == 0)
		return;
	l->request.error = *error;
	request_done(&l->request, result);
}

static int cancel_found(struct lookup *l, struct live *found)
{
	return cancel(l->request.tasks, found, cancel_stored, l, &l->request.error);
}

int task_cancel(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
		struct error *error)
{
	unsigned n;
	struct live *found = live_find(t, project, id, &n);
	struct lookup *l;
	int r;

	if (n == 0)
		return look_up(t, project, id, LOOKUP_CANCEL, fn, arg);
	if (n > 1)
		return task_refuse_found(n, id, error);
	l = lookup_new(t, found->project->name, id, LOOKUP_CANCEL, fn, arg);
	if (!l)
		return -ENOMEM;
	r = cancel_found(l, found);
	if (r != 0) {
		*error = l->request.error;
		request_free(l);
	}
	return r;
}

void task_cancel_requested(struct tasks *t, struct live *l, const struct task *row, bool cancel)
{
	if (!cancel || row->state > TASK_RUNNING)
		return;
	if (l->run)
		run_end_with(l->run, INTENT_CANCEL);
	else if (l->task.state == TASK_QUEUED && row->state == TASK_QUEUED)
		cancel_queued(t, l, NULL);
}

/* ---- releasing ---- */

static int release(struct tasks *t, struct live *l, task_done_fn fn, void *arg, struct error *error)
{
	struct task_change *c;

	if (l->task.state != TASK_QUEUED || !l->task.held)
		return refuse(error, REFUSE_CONFLICT, "Task %.*s is not held",
			      TEXT_ARGS(l->task.id));
	c = task_change_new(fn, arg);
	if (!c)
		return -ENOMEM;
	l->task.held = false;
	queue_place(l);
	task_write(t, l, "task.released", c);
	queue_run(t);
	return 0;
}

int task_release(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
		 struct error *error)
{
	unsigned n;
	struct live *l = live_find(t, project, id, &n);

	return n == 1 ? release(t, l, fn, arg, error) : task_refuse_found(n, id, error);
}

/* ---- keeping one back ---- */

static int check_stashed(const struct live *l, bool stashed, struct error *error)
{
	if (l->task.state != TASK_QUEUED)
		return refuse(error, REFUSE_CONFLICT,
			      "Task %.*s is %s; only queued tasks can be stashed or enqueued",
			      TEXT_ARGS(l->task.id), task_state_name(l->task.state));
	if (l->task.stashed == stashed)
		return 0;
	return refuse(error, REFUSE_CONFLICT, "Task %.*s is %s", TEXT_ARGS(l->task.id),
		      stashed ? "not stashed" : "already stashed");
}

static int set_stashed(struct tasks *t, struct live *l, bool stashed, int64_t delay_ms,
		       task_done_fn fn, void *arg, struct error *error)
{
	int r = check_stashed(l, !stashed, error);
	struct task_change *c = r == 0 ? task_change_new(fn, arg) : NULL;

	if (!c)
		return r ?: -ENOMEM;
	if (delay_ms > 0) {
		l->task.not_before_ms = clock_utc_ms() + delay_ms;
		l->ready_ms = clock_steady_ms() + (uint64_t)delay_ms;
	}
	l->task.stashed = stashed;
	queue_place(l);
	task_write(t, l, stashed ? "task.stashed" : "task.enqueued", c);
	queue_run(t);
	return 0;
}

int task_stash(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
	       struct error *error)
{
	struct live *l;
	int r = task_find_open(t, project, id, fn, arg, &l, error);

	return l ? set_stashed(t, l, true, 0, fn, arg, error) : r;
}

int task_enqueue(struct tasks *t, struct text project, struct text id, int64_t delay_ms,
		 task_done_fn fn, void *arg, struct error *error)
{
	struct live *l = NULL;
	int r = task_check_delay(delay_ms, error)
			?: task_find_open(t, project, id, fn, arg, &l, error);

	return l ? set_stashed(t, l, false, delay_ms, fn, arg, error) : r;
}
