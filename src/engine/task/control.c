/*
 * The requests of clients, and what they can do with existing tasks: cancel, release and stash them. retry.c queues
 * one again.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { LOOKS_MAX = 8 };

/* ---- requests ---- */

static int refuse_changed(struct text id, struct error *error)
{
	return refuse(error, REFUSE_CONFLICT,
		      "Task %.*s was changed on another host; read it again and retry",
		      TEXT_ARGS(id));
}

int task_refuse(unsigned n, struct text id, struct error *error)
{
	struct text shown = text_cut(id, 100);

	if (n == 0)
		return refuse(error, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(shown));
	if (n == 1)
		return refuse_changed(id, error);
	return refuse_field(
		error, "project",
		"several projects have a task %.*s; pass 'project' to select its project",
		TEXT_ARGS(shown));
}

static void request_stored(struct record_waiter *w, int outcome)
{
	struct request *r = list_entry(w, struct request, waiter);

	if (outcome == REFUSE_CONFLICT)
		refuse_changed(r->id, &r->error);
	request_done(r, outcome);
}

void request_free(void *request)
{
	struct request *r = request;

	if (!r)
		return;
	list_remove(&r->link);
	arena_done(&r->arena);
	free(r);
}

void *request_new(struct tasks *t, size_t size, struct text project, struct text id,
		  int (*run)(struct work *w, int lane),
		  void (*finished)(struct work *w, int result))
{
	struct request *r = calloc(1, size);

	if (!r)
		return NULL;
	r->tasks = t;
	list_append(&t->requests, &r->link);
	r->work = (struct work) {.run = run, .finished = finished, .arena = &r->arena};
	list_init(&r->waiter.link);
	r->waiter.fn = request_stored;
	arena_init(&r->arena, TASK_ARENA_MAX);
	if (arena_copy_text(&r->arena, project, &r->project) == 0 &&
	    arena_copy_text(&r->arena, id, &r->id) == 0)
		return r;
	request_free(r);
	return NULL;
}

int request_submit(void *request, int result, bool writes)
{
	struct request *r = request;

	if (result == 0)
		result = workers_submit(r->tasks->workers, &r->work, writes);
	if (result != 0)
		request_free(r);
	return result;
}

/* ---- tasks that have ended, or are not in memory ---- */

static int refuse_ended(const struct task *task, struct error *error)
{
	return refuse(error, REFUSE_CONFLICT, "Task %.*s is already %s", TEXT_ARGS(task->id),
		      task_state_name(task->state));
}

/* The task has ended, or never existed: the store is asked. */
struct lookup {
	struct request request;
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
	int r = store_task_find(db, l->request.project, l->request.id, &l->request.arena, &l->found,
				&l->n);

	l->news.found = false;
	if (r != 0 || l->n != 1 || l->found.state > TASK_RUNNING)
		return r;
	l->news = (struct task_named) {.project = l->found.project, .id = l->request.id};
	return store_task_find_named(db, &l->request.arena, &l->news, 1);
}

static int check_found(const struct lookup *l, struct error *error)
{
	if (l->n != 1 || l->news.found)
		return task_refuse(l->n, l->request.id, error);
	return refuse_ended(&l->found, error);
}

static int cancel_found(struct lookup *lookup, struct live *l);

/* All open tasks are in memory, so another host has just brought this one there, or changed it. Returns it if it
 * is to be cancelled. */
static struct live *take_news(struct lookup *l)
{
	unsigned n;

	task_sync(l->request.tasks, &l->news);
	return l->then == LOOKUP_CANCEL
		       ? live_find(l->request.tasks, l->news.project, l->request.id, &n)
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
	struct lookup *l = request_new(t, sizeof(*l), project, id, NULL, NULL);

	if (!l)
		return NULL;
	l->then = then;
	l->request.fn = fn;
	l->request.arg = arg;
	return l;
}

static int look_up(struct lookup *l)
{
	l->request.work.run = lookup_run;
	l->request.work.finished = lookup_finished;
	return workers_submit(l->request.tasks->workers, &l->request.work, false);
}

int task_find_open(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
		   struct live **ret_live, struct error *error)
{
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	struct lookup *lookup;
	int r;

	*ret_live = NULL;
	if (n > 1)
		return task_refuse(n, id, error);
	if (l && l->task.state > TASK_RUNNING)
		return refuse_ended(&l->task, error);
	*ret_live = l;
	if (l)
		return 0;
	lookup = lookup_new(t, project, id, LOOKUP_ONLY, fn, arg);
	r = lookup ? look_up(lookup) : -ENOMEM;
	if (r != 0)
		request_free(lookup);
	return r;
}

/* ---- cancelling ---- */

static void cancel_queued(struct tasks *t, struct live *l, struct record_change *c)
{
	task_end(t, l, TASK_CANCELLED, (struct text) {0}, (struct text) {0}, c);
}

/* The request is stored first: if the daemon dies now, the next one does not retry the task. */
static void cancel_running(struct tasks *t, struct live *l, struct record_change *c)
{
	live_set_text(l, &l->task.error, TEXT(TASK_CANCEL_REQUESTED));
	task_write(t, l, NULL, c);
	run_end_with(l->run, INTENT_CANCEL);
}

/* ---- what another host runs: it is asked to cancel it. fn is called when that is on disk ---- */

static int ask_run(struct work *w, int lane)
{
	struct lookup *l = list_entry(w, struct lookup, request.work);
	struct tasks *t = l->request.tasks;
	struct store_task_kept kept;

	return store_task_wish(store_writer(t->store), l->found.seq, &kept)
		       ?: task_event_add(t, "task.cancel_requested", &l->found, 0,
					 (struct text) {0});
}

static void cancel_stored(struct record_waiter *w, int outcome)
{
	struct lookup *l = list_entry(w, struct lookup, request.waiter);

	/* Another host was quicker: what it made of the task is looked up, and cancelled. */
	if (outcome == REFUSE_CONFLICT && l->n_looks++ < LOOKS_MAX && look_up(l) == 0)
		return;
	if (outcome == REFUSE_CONFLICT)
		task_refuse(1, l->request.id, &l->request.error);
	request_done(&l->request, outcome);
}

/* It is not running any more, or runs again: an event will report that. */
static void ask_finished(struct work *w, int result)
{
	struct lookup *l = list_entry(w, struct lookup, request.work);

	cancel_stored(&l->request.waiter, result == -ENOENT ? (int)REFUSE_CONFLICT : result);
}

static int cancel_elsewhere(struct lookup *lookup, const struct live *l)
{
	struct request *r = &lookup->request;

	lookup->found = (struct task) {
		.seq = l->task.seq, .exit_status = -1, .project = r->project, .id = r->id};
	r->work.run = ask_run;
	r->work.finished = ask_finished;
	return workers_submit(r->tasks->workers, &r->work, true);
}

static int cancel_found(struct lookup *lookup, struct live *l)
{
	struct tasks *t = lookup->request.tasks;
	struct record_change *c;

	if (l->task.state > TASK_RUNNING)
		return refuse_ended(&l->task, &lookup->request.error);
	if (l->task.state == TASK_RUNNING && !l->run)
		return cancel_elsewhere(lookup, l);
	lookup->request.waiter.fn = cancel_stored;
	c = task_change_new(&lookup->request.waiter);
	if (!c)
		return -ENOMEM;
	if (l->run)
		cancel_running(t, l, c);
	else
		cancel_queued(t, l, c);
	return 0;
}

int task_cancel(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg,
		struct error *error)
{
	unsigned n;
	struct live *found = live_find(t, project, id, &n);
	struct lookup *l;
	int r;

	if (n > 1)
		return task_refuse(n, id, error);
	l = lookup_new(t, found ? found->project->name : project, id, LOOKUP_CANCEL, fn, arg);
	if (!l)
		return -ENOMEM;
	r = found ? cancel_found(l, found) : look_up(l);
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

/* ---- keeping one back, and letting it go ---- */

static int check_held(const struct task *task, enum task_hold hold, struct error *error)
{
	bool stashes = hold == TASK_STASH;

	if (hold == TASK_RELEASE)
		return task->state == TASK_QUEUED && task->held
			       ? 0
			       : refuse(error, REFUSE_CONFLICT, "Task %.*s is not held",
					TEXT_ARGS(task->id));
	if (task->state != TASK_QUEUED)
		return refuse(error, REFUSE_CONFLICT,
			      "Task %.*s is %s; only queued tasks can be stashed or enqueued",
			      TEXT_ARGS(task->id), task_state_name(task->state));
	if (task->stashed != stashes)
		return 0;
	return refuse(error, REFUSE_CONFLICT, "Task %.*s is %s", TEXT_ARGS(task->id),
		      stashes ? "already stashed" : "not stashed");
}

static int set_hold(struct tasks *t, struct live *l, enum task_hold hold, int64_t delay_ms,
		    task_done_fn fn, void *arg)
{
	static const char *const events[] = {[TASK_STASH] = "task.stashed",
					     [TASK_ENQUEUE] = "task.enqueued",
					     [TASK_RELEASE] = "task.released"};
	struct request *r = request_new(t, sizeof(*r), l->project->name, l->task.id, NULL, NULL);
	struct record_change *c = r ? task_change_new(&r->waiter) : NULL;

	if (!c) {
		request_free(r);
		return -ENOMEM;
	}
	r->fn = fn;
	r->arg = arg;
	if (delay_ms > 0) {
		l->task.not_before_ms = clock_utc_ms() + delay_ms;
		l->ready_ms = clock_steady_ms() + (uint64_t)delay_ms;
	}
	if (hold == TASK_RELEASE)
		l->task.held = false;
	else
		l->task.stashed = hold == TASK_STASH;
	queue_place(l);
	task_write(t, l, events[hold], c);
	queue_run(t);
	return 0;
}

static int release_soon(struct tasks *t, struct live *l)
{
	if (list_empty(&l->held_link))
		return 0;
	list_remove(&l->held_link);
	list_append(&t->releases, &l->held_link);
	wake_send(t->more);
	return 0;
}

int task_hold(struct tasks *t, struct text project, struct text id, enum task_hold hold,
	      int64_t delay_ms, task_done_fn fn, void *arg, struct error *error)
{
	struct live *l = NULL;
	unsigned n;
	int r = task_is_time(delay_ms)
			? 0
			: refuse_field(error, "delay",
				       "delay must be between 0 and 100 years, not %lld ms",
				       (long long)delay_ms);

	if (r == 0 && hold == TASK_RELEASE) {
		l = live_find(t, project, id, &n);
		r = n == 1 ? 0 : task_refuse(n, id, error);
	} else if (r == 0) {
		r = task_find_open(t, project, id, fn, arg, &l, error);
	}
	if (r == 0 && !fn)
		return release_soon(t, l);
	if (r == 0 && l)
		r = check_held(&l->task, hold, error) ?: set_hold(t, l, hold, delay_ms, fn, arg);
	return r;
}
