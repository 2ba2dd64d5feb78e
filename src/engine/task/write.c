/*
 * A task's changes on their way to the store, one after another. One that fails (a full disk) is tried
 * again, and those behind it wait: what a task has become must not be lost, nor what it was be
 * written over it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/record.h"
#include "base/utf8.h"
#include "engine/event/event.h"
#include "engine/services.h"
#include "engine/task/inner.h"
#include "store/store.h"

/* Bytes of them in an event. */
enum { PROMPT_TOLD = 80, RESULT_TOLD = 64 << 10 };

enum { AGAIN_MS = 1000 };

/* One change; those of a task go one after another, in the order they were made. */
struct task_change {
	struct list link; /* in live->changes */
	struct work work;
	struct tasks *tasks;
	struct live *live;
	struct arena arena;   /* of the texts */
	struct arena scratch; /* of one try */
	struct task row;
	const char *event;
	int64_t queue_size;
	int result;
	task_done_fn fn; /* NULL: nobody waits, or they were told that it takes longer */
	void *arg;
};

/* ---- the event ---- */

static struct text begin_of(struct text t, size_t max)
{
	if (t.len > max)
		t.len = utf8_whole(t.data, max);
	return t;
}

static void say_end(struct record *r, const struct task *row)
{
	if (row->error.data)
		record_text(r, "error", row->error);
	if (row->exit_status >= 0)
		record_int(r, "exitCode", row->exit_status);
	if (row->signal > 0)
		record_int(r, "signal", row->signal);
	if (row->started_ms > 0 && row->completed_ms > 0)
		record_int(r, "duration", row->completed_ms - row->started_ms);
}

static void say(struct record *r, const char *event, const struct task *row, int64_t queue_size)
{
	record_text(r, "taskId", row->id);
	if (strcmp(event, "task.queued") == 0) {
		record_text(r, "prompt", begin_of(row->prompt, PROMPT_TOLD));
		record_int(r, "queueSize", queue_size);
	} else if (strcmp(event, "task.started") == 0) {
		if (row->pid > 0)
			record_int(r, "pid", row->pid);
		record_int(r, "attempt", row->attempts);
	} else {
		if (row->state == TASK_COMPLETED)
			record_text(r, "result", begin_of(row->result, RESULT_TOLD));
		say_end(r, row);
	}
}

int task_event_add(struct services *s, struct arena *a, const char *event, const struct task *row,
		   int64_t queue_size)
{
	struct event_new e = {.type = event, .project = row->project, .run = row->id};
	struct record r;

	record_begin(&r, a);
	say(&r, event, row, queue_size);
	if (r.err != 0)
		return r.err;
	e.data = r.root;
	return event_add(s->events, &e);
}

/* ---- the change ---- */

static int change_run(struct work *w, int lane)
{
	struct task_change *c = list_entry(w, struct task_change, work);
	struct services *s = c->tasks->services;
	int r;

	(void)lane;
	arena_reset(&c->scratch);
	r = store_task_update(store_writer(s->store), &c->row);
	if (r == 0 && c->event)
		r = task_event_add(s, &c->scratch, c->event, &c->row, c->queue_size);
	return r;
}

static void change_free(struct task_change *c)
{
	if (c->tasks)
		c->tasks->n_changes--;
	list_remove(&c->link);
	arena_done(&c->arena);
	arena_done(&c->scratch);
	free(c);
}

static struct task_change *first_change(struct live *l)
{
	struct list *first = list_first(&l->changes);

	return first ? list_entry(first, struct task_change, link) : NULL;
}

static void change_submit(struct task_change *c);

static void tell(struct task_change *c, int result)
{
	const struct why why = {0};
	task_done_fn fn = c->fn;

	c->fn = NULL;
	if (fn)
		fn(c->arg, result, &why);
}

/* Those behind it wait, too: the last of them is what the task has become. But whoever waits for one
 * of them is told: nobody knows how long it takes, and a stop does not last as long. */
static void change_failed(struct task_change *c, int result)
{
	struct live *l = c->live;
	struct tasks *t = c->tasks;

	if (!t->writes_fail && result != -ECANCELED)
		log_err("tasks are not kept yet", "task=%.*s error=%s", TEXT_ARGS(c->row.id),
			strerror(-result));
	t->writes_fail = true;
	if (list_empty(&l->failed_link))
		list_append(&t->failed_writes, &l->failed_link);
	timer_start(t->again, AGAIN_MS);
	/* More may be added meanwhile, but none goes. */
	list_for_each (at, following, &l->changes)
		tell(list_entry(at, struct task_change, link), result);
	tasks_check_stopped(t);
}

static void change_finished(struct work *w, int result)
{
	struct task_change *c = list_entry(w, struct task_change, work);
	struct live *l = c->live;
	struct task_change *next;
	struct tasks *t = c->tasks;
	bool failed = t->writes_fail;

	/* One that is not in the store any more has nothing to be kept. */
	if (result != 0 && result != -ENOENT) {
		change_failed(c, result);
		return;
	}
	t->writes_fail = false;
	list_remove(&c->link);
	next = first_change(l);
	if (next)
		change_submit(next);
	/* Only now: whoever is told may do anything, but not free a task with a change on its way. */
	tell(c, result);
	l->n_writes--;
	change_free(c);
	if (failed)
		queue_run(t);
	tasks_check_stopped(t);
}

static void change_submit(struct task_change *c)
{
	const struct background *b = &c->tasks->background;
	int r;

	c->work = (struct work) {.run = change_run, .finished = change_finished};
	r = b->submit(b->arg, &c->work, true);
	if (r != 0)
		change_failed(c, r);
}

void task_write_again(void *tasks)
{
	struct tasks *t = tasks;
	struct list lives;
	struct list *first;

	list_init(&lives);
	list_splice(&lives, &t->failed_writes);
	while ((first = list_first(&lives))) {
		struct live *l = list_entry(first, struct live, failed_link);

		list_remove(first);
		change_submit(first_change(l));
	}
}

void task_write_drop(struct live *l)
{
	struct task_change *c;

	while ((c = first_change(l)))
		change_free(c);
}

/* Without memory for it a text is left out, not the change. */
static void copy(struct arena *a, struct text *t)
{
	if (!t->data)
		return;
	t->data = arena_copy(a, t->data, t->len);
	if (!t->data)
		*t = (struct text) {0};
}

void task_change_forget(struct task_change *c)
{
	if (c)
		c->fn = NULL;
}

struct task_change *task_change_new(task_done_fn fn, void *arg)
{
	struct task_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	list_init(&c->link);
	arena_init(&c->arena, TASK_ARENA_MAX);
	arena_init(&c->scratch, TASK_ARENA_MAX);
	c->fn = fn;
	c->arg = arg;
	return c;
}

void task_write_row(struct tasks *t, struct live *l, const struct task *row, const char *event,
		    struct task_change *c)
{
	live_changed(l);
	if (!c)
		c = task_change_new(NULL, NULL);
	if (!c) {
		log_err("task not kept", "task=%.*s error=%s", TEXT_ARGS(row->id),
			strerror(ENOMEM));
		return;
	}
	c->tasks = t;
	c->live = l;
	c->row = *row;
	/* These stay as long as the task; the rest may change meanwhile. */
	c->row.project = l->project->name;
	c->row.id = l->task.id;
	copy(&c->arena, &c->row.mark);
	copy(&c->arena, &c->row.error);
	copy(&c->arena, &c->row.result);
	copy(&c->arena, &c->row.runner);
	if (event && strcmp(event, "task.queued") == 0)
		copy(&c->arena, &c->row.prompt);
	c->event = event;
	c->queue_size = l->project->n[TASK_QUEUED];
	l->n_writes++;
	t->n_changes++;
	list_append(&l->changes, &c->link);
	if (first_change(l) == c)
		change_submit(c);
}

void task_write(struct tasks *t, struct live *l, const char *event, struct task_change *c)
{
	task_write_row(t, l, &l->task, event, c);
}
