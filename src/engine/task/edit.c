/*
 * Changing a task that has not begun. The store decides whether it still may be changed, by its
 * row; until that is known the task is kept back here. Then it takes over what is stored, and its
 * place in the queue is found again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { LOOKS_AGAIN = 3 };

struct edit {
	struct work work;
	struct tasks *tasks;
	struct arena arena;
	struct text project;
	struct text id;
	struct task_edit wanted;
	double priority;
	int64_t timeout_ms;
	struct texts after;
	struct task row; /* as it is stored then */
	struct store_task_kept kept;
	enum task_state *after_states;
	struct why why;
	task_done_fn fn;
	void *arg;
};

static int refuse_begun(struct text id, enum task_state state, struct why *why)
{
	return refuse(why, REFUSE_CONFLICT, "Task %.*s is %s; only queued tasks can be edited",
		      TEXT_ARGS(id), task_state_name(state));
}

/* ---- on the writer's thread ---- */

static struct text text_or(struct text given, struct text is)
{
	if (!given.data)
		return is;
	return given.len > 0 ? given : (struct text) {0};
}

static void overlay(struct edit *e)
{
	struct task *row = &e->row;

	row->prompt = text_or(e->wanted.prompt, row->prompt);
	row->label = text_or(e->wanted.label, row->label);
	row->runner = text_or(e->wanted.runner, row->runner);
	row->on_host = !text_is(e->wanted.on_host, TASK_ANY_HOST)
			       ? text_or(e->wanted.on_host, row->on_host)
			       : (struct text) {0};
	row->on_label = text_or(e->wanted.on_label, row->on_label);
	if (e->wanted.priority)
		row->priority = e->priority;
	if (e->wanted.timeout_ms)
		row->timeout_ms = e->timeout_ms;
	if (e->wanted.after)
		row->after = e->after;
}

static int refuse_command(const struct edit *e, struct why *why)
{
	const char *field = e->wanted.prompt.data ? "prompt" : "runner";

	return refuse_field(why, field, "Task %.*s is a command: it has no %s to edit",
			    TEXT_ARGS(e->id), field);
}

/* "task-0001 would come after itself: task-0001 after task-0002 after task-0001" */
static int refuse_circle(const struct edit *e, const struct text *ids, unsigned n, struct why *why)
{
	enum { SHOWN = 4 };
	struct buf way;
	int r;

	buf_init(&way, sizeof(why->text));
	for (unsigned i = 0; i < n && i < SHOWN; i++)
		buf_printf(&way, "%.*s after ", TEXT_ARGS(ids[i]));
	r = refuse_field(why, "after", "dependency cycle: %.*s would depend on itself: %.*s%s%.*s",
			 TEXT_ARGS(e->id), (int)way.len, way.data, n > SHOWN ? "... after " : "",
			 TEXT_ARGS(e->id));
	buf_done(&way);
	return r;
}

/* In the same transaction as the change, so that two changes cannot close a circle together. */
static int check_circle(struct edit *e, struct connection *db)
{
	struct text *ids;
	unsigned n;
	int r = store_task_circle(db, e->row.project, e->row.id, &e->arena, &ids, &n);

	return r != 0 || n == 0 ? r : refuse_circle(e, ids, n, &e->why);
}

static int find_row(struct edit *e, struct connection *db)
{
	bool found;
	int r = store_task_find(db, e->project, e->id, &e->arena, &e->row, &found);

	if (r != 0)
		return r;
	if (!found)
		return refuse(&e->why, REFUSE_NOT_FOUND, "Task not found: %.*s", TEXT_ARGS(e->id));
	if (e->row.state != TASK_QUEUED)
		return refuse_begun(e->id, e->row.state, &e->why);
	if (e->row.command.bytes.data && (e->wanted.prompt.data || e->wanted.runner.data))
		return refuse_command(e, &e->why);
	return 0;
}

static int change(struct edit *e, struct connection *db)
{
	bool after = e->wanted.after != NULL;
	int r = find_row(e, db);

	if (r != 0)
		return r;
	overlay(e);
	if (after)
		r = task_after_states(e->tasks, &e->arena, &e->row, &e->after_states, &e->why);
	return r != 0 ? r : store_task_edit(db, &e->row, after, &e->kept);
}

/* Another host may change it in between: then it is looked at again. */
static int edit_run(struct work *w, int lane)
{
	struct edit *e = list_entry(w, struct edit, work);
	struct connection *db = store_writer(e->tasks->store);
	bool after = e->wanted.after != NULL;
	int r = after ? store_task_lock_project(db, e->project) : 0;

	(void)lane;
	if (r == 0)
		r = change(e, db);
	for (unsigned i = 0; i < LOOKS_AGAIN && r == -ENOENT; i++)
		r = change(e, db);
	if (r == -ENOENT)
		return refuse_begun(e->id, TASK_RUNNING, &e->why);
	if (r == 0 && after)
		r = check_circle(e, db);
	return r != 0 ? r : task_event_add(e->tasks, "task.edited", &e->row, 0);
}

/* ---- on the loop ---- */

static void edit_free(struct edit *e)
{
	arena_done(&e->arena);
	free(e);
}

/* What its user may change, and what is in memory only if all of it fits. */
static struct task edited(const struct task *was, const struct task *row)
{
	struct task task = *was;

	task.prompt = row->prompt;
	task.label = row->label;
	task.runner = row->runner;
	task.priority = row->priority;
	task.timeout_ms = row->timeout_ms;
	task.on_host = row->on_host;
	task.on_label = row->on_label;
	task.command = row->command;
	task.env = row->env;
	task.metadata = row->metadata;
	return task;
}

static int apply(struct edit *e, struct live *l)
{
	struct tasks *t = e->tasks;
	const struct task next = edited(&l->task, &e->row);
	int r;

	/* Another host's change came after it, and is here already. */
	if (l->task.version >= e->kept.version)
		return 0;
	r = live_replace(l, &next);
	l->task.version = e->kept.version;
	if (r == 0 && e->wanted.after)
		r = live_set_after(l, &e->after);
	if (r == 0 && e->wanted.after)
		(void)behind_wait(t, l, e->after_states, false);
	return r;
}

/* It may have been cancelled meanwhile, or even forgotten. */
static void edit_finished(struct work *w, int result)
{
	struct edit *e = list_entry(w, struct edit, work);
	struct tasks *t = e->tasks;
	bool holds = false;
	unsigned n;
	struct live *l = live_find(t, e->project, e->id, &n);

	if (l && l->n_edits > 0) {
		l->n_edits--;
		holds = true;
	}
	if (result == 0 && l && l->task.state == TASK_QUEUED)
		result = apply(e, l);
	else if (result == 0)
		result = refuse_begun(e->id, l ? l->task.state : TASK_CANCELLED, &e->why);
	if (l && l->task.version < e->kept.version)
		l->task.version = e->kept.version;
	if (l && l->task.state == TASK_QUEUED)
		queue_move(t, l);
	if (holds)
		record_release(&l->record);
	e->fn(e->arg, result, &e->why);
	edit_free(e);
	queue_run(t);
}

static int copy_wanted(struct edit *e, const struct live *l, const struct task_edit *in)
{
	e->wanted = *in;
	if (in->priority) {
		e->priority = *in->priority;
		e->wanted.priority = &e->priority;
	}
	if (in->timeout_ms) {
		e->timeout_ms = *in->timeout_ms ? *in->timeout_ms
						: task_default_timeout(e->tasks, l->project);
		e->wanted.timeout_ms = &e->timeout_ms;
	}
	if (in->after)
		e->wanted.after = &e->after;
	return arena_copy_text(&e->arena, l->project->name, &e->project)
		       ?: arena_copy_text(&e->arena, l->task.id, &e->id)
		       ?: arena_copy_text(&e->arena, in->prompt, &e->wanted.prompt)
		       ?: arena_copy_text(&e->arena, in->label, &e->wanted.label)
		       ?: arena_copy_text(&e->arena, in->runner, &e->wanted.runner)
		       ?: arena_copy_text(&e->arena, in->on_host, &e->wanted.on_host)
		       ?: arena_copy_text(&e->arena, in->on_label, &e->wanted.on_label)
		       ?: (in->after ? task_copy_after(&e->arena, in->after, &e->after) : 0);
}

static int submit(struct tasks *t, struct live *l, const struct task_edit *in, task_done_fn fn,
		  void *arg)
{
	struct edit *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	*e = (struct edit) {
		.work = {.run = edit_run, .finished = edit_finished, .arena = &e->arena},
		.tasks = t,
		.fn = fn,
		.arg = arg};
	arena_init(&e->arena, TASK_ARENA_MAX);
	r = copy_wanted(e, l, in) ?: workers_submit(t->workers, &e->work, true);
	if (r != 0) {
		edit_free(e);
		return r;
	}
	l->n_edits++;
	record_hold(&l->record);
	queue_move(t, l);
	return 0;
}

static struct text unless_empty(struct text t)
{
	return t.len > 0 ? t : (struct text) {0};
}

/* By the rules for a new one. */
static int check(const struct tasks *t, const struct live *l, const struct task_edit *in,
		 struct why *why)
{
	const struct task_new like = {
		.task = {.prompt = in->prompt.data ? in->prompt : TEXT("unchanged"),
			 .label = unless_empty(in->label),
			 .runner = unless_empty(in->runner),
			 .on_host = in->on_host,
			 .on_label = unless_empty(in->on_label),
			 .priority = in->priority ? *in->priority : 0,
			 .timeout_ms = in->timeout_ms ? *in->timeout_ms : 0,
			 .after = in->after ? *in->after : (struct texts) {0}}};

	if (t->stopping)
		return refuse(why, REFUSE_STOPPING, "koined is stopping");
	if (!in->prompt.data && !in->label.data && !in->runner.data && !in->priority &&
	    !in->timeout_ms && !in->after && !in->on_host.data && !in->on_label.data)
		return refuse(why, REFUSE_PARAMS, "no changes given");
	if (l->task.state != TASK_QUEUED)
		return refuse_begun(l->task.id, l->task.state, why);
	return task_check_new(t, &like, why);
}

void task_edit(struct tasks *t, struct text project, struct text id, const struct task_edit *in,
	       task_done_fn fn, void *arg)
{
	struct live *l = task_find_open(t, project, id, fn, arg);
	struct why why = {0};
	int r;

	if (!l)
		return;
	r = check(t, l, in, &why) ?: submit(t, l, in, fn, arg);
	if (r != 0)
		fn(arg, r, &why);
}
