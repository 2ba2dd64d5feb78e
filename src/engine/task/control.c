/* What clients can do with an existing task: cancel it, release it. retry.c queues one again. */
#include <errno.h>
#include <stdlib.h>

#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { LOOKS_MAX = 8 };

static int refuse_several(struct why *why)
{
	return refuse_field(
		why, "project",
		"several projects have a task with this id; pass 'project' to choose one");
}

static int refuse_ended(const struct task *task, struct why *why)
{
	return refuse(why, REFUSE_CONFLICT, "Task %.*s is already %s", TEXT_ARGS(task->id),
		      task_state_name(task->state));
}

/* ---- tasks that are not in memory ---- */

/* The task has ended, or never existed: the store is asked. */
struct lookup {
	struct list link; /* in tasks->cancels, while that is on its way to the store */
	struct work work;
	struct tasks *tasks;
	struct arena arena;
	struct text project;
	struct text id;
	struct task found;
	struct task_named news; /* of another host, that we have not heard of */
	unsigned n;
	enum { LOOKUP_ONLY, LOOKUP_CANCEL } then;
	unsigned n_looks; /* how often it was looked up to be cancelled */
	task_done_fn fn;
	void *arg;
};

static void lookup_free(struct lookup *l)
{
	if (!l)
		return;
	list_remove(&l->link);
	arena_done(&l->arena);
	free(l);
}

static int lookup_run(struct work *w, int lane)
{
	struct lookup *l = list_entry(w, struct lookup, work);
	struct connection *db = store_lane(l->tasks->store, lane);
	bool found = false;
	int r;

	l->news.found = false;
	if (l->project.data)
		r = store_task_find(db, l->project, l->id, &l->arena, &l->found, &found);
	else
		r = store_task_find_any(db, l->id, &l->arena, &l->found, &l->n);
	if (l->project.data)
		l->n = found;
	if (r != 0 || l->n != 1 || l->found.state > TASK_RUNNING)
		return r;
	l->news = (struct task_named) {.project = l->found.project, .id = l->id};
	return store_task_find_named(db, &l->arena, &l->news, 1);
}

static int check_found(const struct lookup *l, struct why *why)
{
	if (l->n == 0)
		return refuse(why, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(l->id));
	if (l->n > 1)
		return refuse_field(
			why, "project",
			"several projects have a task %.*s; pass 'project' to choose one",
			TEXT_ARGS(l->id));
	if (l->news.found)
		return refuse(why, REFUSE_CONFLICT,
			      "Task %.*s was changed on another host; read it again and retry",
			      TEXT_ARGS(l->id));
	return refuse_ended(&l->found, why);
}

static void cancel_found(struct lookup *l, struct live *found);

/* All open tasks are in memory, so another host has just brought this one there, or changed it. */
static bool heed_news(struct lookup *l)
{
	struct live *found;
	unsigned n;

	if (!l->news.found)
		return false;
	task_sync(l->tasks, &l->news);
	found = live_find(l->tasks, l->news.project, l->id, &n);
	if (l->then != LOOKUP_CANCEL || !found)
		return false;
	cancel_found(l, found);
	return true;
}

static void lookup_finished(struct work *w, int result)
{
	struct lookup *l = list_entry(w, struct lookup, work);
	struct why why = {0};

	if (result == 0 && heed_news(l))
		return;
	if (result == 0)
		result = check_found(l, &why);
	l->fn(l->arg, result, &why);
	lookup_free(l);
}

/* NULL: no memory. */
static struct lookup *lookup_new(struct tasks *t, struct text project, struct text id, int then,
				 task_done_fn fn, void *arg)
{
	struct lookup *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	*l = (struct lookup) {.tasks = t, .then = then, .fn = fn, .arg = arg};
	list_init(&l->link);
	arena_init(&l->arena, TASK_ARENA_MAX);
	if (arena_copy_text(&l->arena, project, &l->project) != 0 ||
	    arena_copy_text(&l->arena, id, &l->id) != 0) {
		lookup_free(l);
		return NULL;
	}
	return l;
}

static int lookup_start(struct lookup *l)
{
	struct workers *workers = l->tasks->workers;

	l->work = (struct work) {.run = lookup_run, .finished = lookup_finished};
	return workers_submit(workers, &l->work, false);
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
		lookup_free(l);
	return r;
}

struct live *task_find_open(struct tasks *t, struct text project, struct text id, task_done_fn fn,
			    void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	int r = 0;

	if (n == 0)
		r = look_up(t, project, id, LOOKUP_ONLY, fn, arg);
	else if (n > 1)
		r = refuse_several(&why);
	else if (l->task.state > TASK_RUNNING)
		r = refuse_ended(&l->task, &why);
	else
		return l;
	if (r != 0)
		fn(arg, r, &why);
	return NULL;
}

/* ---- cancelling ---- */

static void cancel_queued(struct tasks *t, struct live *l, struct task_change *c)
{
	queue_remove(t, l);
	task_end(t, l, TASK_CANCELLED, (struct text) {0}, (struct text) {0}, c);
}

/* The request is stored first: if the daemon dies now, the next one does not retry the task. */
static void cancel_running(struct tasks *t, struct live *l, struct task_change *c)
{
	live_set_text(l, &l->task.error, TEXT(TASK_CANCEL_REQUESTED));
	task_write(t, l, NULL, c);
	/* If it cannot be stored, the callback is called at once, and may have ended the run. */
	if (l->run)
		run_end_with(l->run, INTENT_CANCEL);
}

/* What another host runs: it is asked to cancel it. fn is called when that is on disk. */

struct wish {
	struct work work;
	struct tasks *tasks;
	struct arena arena;
	struct task row; /* its names are in the arena */
	struct store_task_kept kept;
	task_done_fn fn;
	void *arg;
};

static int wish_run(struct work *w, int lane)
{
	struct wish *s = list_entry(w, struct wish, work);
	int r;

	(void)lane;
	r = store_task_wish(store_writer(s->tasks->store), s->row.seq, &s->kept);
	return r != 0 ? r : task_event_add(s->tasks, "task.cancel_requested", &s->row, 0);
}

static void wish_done(struct wish *s, int result, const struct why *why)
{
	s->fn(s->arg, result, why);
	arena_done(&s->arena);
	free(s);
}

/* It is not running any more, or is again: we shall hear of that. */
static void wish_finished(struct work *w, int result)
{
	struct wish *s = list_entry(w, struct wish, work);
	struct why why = {0};

	if (result == -ENOENT)
		result = refuse(&why, REFUSE_CONFLICT,
				"Task %.*s was changed on another host; read it again and retry",
				TEXT_ARGS(s->row.id));
	wish_done(s, result, &why);
}

static void wish_cancel(struct tasks *t, struct live *l, task_done_fn fn, void *arg)
{
	struct wish *s = calloc(1, sizeof(*s));
	const struct why why = {0};
	int r;

	if (!s) {
		fn(arg, -ENOMEM, &why);
		return;
	}
	*s = (struct wish) {.work = {.run = wish_run, .finished = wish_finished},
			    .tasks = t,
			    .row = {.seq = l->task.seq, .exit_status = -1},
			    .fn = fn,
			    .arg = arg};
	arena_init(&s->arena, TASK_ARENA_MAX);
	r = arena_copy_text(&s->arena, l->project->name, &s->row.project)
		    ?: arena_copy_text(&s->arena, l->task.id, &s->row.id)
		    ?: workers_submit(t->workers, &s->work, true);
	if (r != 0)
		wish_done(s, r, &why);
}

static int cancel(struct tasks *t, struct live *l, task_done_fn fn, void *arg, struct why *why)
{
	struct task_change *c;

	if (l->task.state > TASK_RUNNING)
		return refuse_ended(&l->task, why);
	if (l->task.state == TASK_RUNNING && !l->run) {
		wish_cancel(t, l, fn, arg);
		return 0;
	}
	c = task_change_new(fn, arg);
	if (!c)
		return -ENOMEM;
	if (l->run)
		cancel_running(t, l, c);
	else
		cancel_queued(t, l, c);
	return 0;
}

static void cancel_told(void *lookup, int result, const struct why *why)
{
	struct lookup *l = lookup;

	list_remove(&l->link);
	/* Another host was quicker: what it made of the task is looked up, and cancelled. */
	if (result == REFUSE_CONFLICT && l->n_looks++ < LOOKS_MAX && lookup_start(l) == 0)
		return;
	l->fn(l->arg, result, why);
	lookup_free(l);
}

static void cancel_found(struct lookup *l, struct live *found)
{
	struct why why = {0};
	int r;

	list_append(&l->tasks->cancels, &l->link);
	r = cancel(l->tasks, found, cancel_told, l, &why);
	if (r == 0)
		return;
	l->fn(l->arg, r, &why);
	lookup_free(l);
}

void task_cancels_free(struct tasks *t)
{
	struct list *first;

	while ((first = list_first(&t->cancels)))
		lookup_free(list_entry(first, struct lookup, link));
}

void task_cancel(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *found = live_find(t, project, id, &n);
	struct lookup *l;
	int r = -ENOMEM;

	if (n == 0) {
		r = look_up(t, project, id, LOOKUP_CANCEL, fn, arg);
	} else if (n > 1) {
		r = refuse_several(&why);
	} else {
		l = lookup_new(t, found->project->name, id, LOOKUP_CANCEL, fn, arg);
		if (l) {
			cancel_found(l, found);
			return;
		}
	}
	if (r != 0)
		fn(arg, r, &why);
}

void task_heed_wish(struct tasks *t, struct live *l, const struct task *row, bool cancel)
{
	if (!cancel || row->state > TASK_RUNNING)
		return;
	if (l->run)
		run_end_with(l->run, INTENT_CANCEL);
	else if (l->task.state == TASK_QUEUED && row->state == TASK_QUEUED)
		cancel_queued(t, l, NULL);
}

/* ---- releasing ---- */

static int release(struct tasks *t, struct live *l, task_done_fn fn, void *arg, struct why *why)
{
	struct task_change *c;

	if (l->task.state != TASK_QUEUED || !l->task.held)
		return refuse(why, REFUSE_CONFLICT, "Task %.*s is not held", TEXT_ARGS(l->task.id));
	c = task_change_new(fn, arg);
	if (!c)
		return -ENOMEM;
	l->task.held = false;
	queue_move(t, l);
	task_write(t, l, "task.released", c);
	queue_run(t);
	return 0;
}

void task_release(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct why why = {0};
	unsigned n;
	struct live *l = live_find(t, project, id, &n);
	int r;

	if (n == 0)
		r = refuse(&why, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(id));
	else
		r = n > 1 ? refuse_several(&why) : release(t, l, fn, arg, &why);
	if (r != 0)
		fn(arg, r, &why);
}

void task_release_soon(struct tasks *t, struct text project, struct text id)
{
	unsigned n;
	struct live *l = live_find(t, project, id, &n);

	if (n != 1 || list_empty(&l->held_link))
		return;
	list_remove(&l->held_link);
	list_append(&t->releases, &l->held_link);
	wake_send(t->more);
}

bool task_release_next(struct tasks *t)
{
	struct list *first = list_first(&t->releases);
	struct live *l = first ? list_entry(first, struct live, held_link) : NULL;

	if (!l)
		return false;
	l->task.held = false;
	queue_move(t, l);
	task_write(t, l, "task.released", NULL);
	return true;
}

void tasks_each_held(struct tasks *t, struct text project, void (*fn)(void *arg, struct text id),
		     void *arg)
{
	struct project *p = t ? project_find(t, project) : NULL;

	if (!p)
		return;
	list_for_each (at, following, &p->held)
		fn(arg, list_entry(at, struct live, held_link)->task.id);
}

unsigned tasks_count_held(const struct tasks *t, struct text project)
{
	const struct project *p = t ? project_find(t, project) : NULL;

	return p ? p->n_held : 0;
}
