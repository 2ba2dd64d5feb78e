/* A task's changes on their way to the store, each with the event that reports it. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

/* ---- events: stores rely on these names; each table lists them in output order ---- */

/* Bytes of a text in an event. */
enum { PROMPT_TOLD = 80, RESULT_TOLD = 64 << 10 };

/* Only for a task that is completed, not for others that have ended. */
enum { OF_COMPLETED = MEMBER_OWN };

#define MEMBER(kind, field) NULL, MEMBER_OF(struct task, kind, field)
#define LEFT_OUT            .absent = ABSENT_LEFT_OUT

static const struct member queued_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"prompt", MEMBER(TEXT, prompt), MEMBER_CUT},
};

static const struct member started_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"pid", MEMBER(INT, pid), 0, NONE_IS_ZERO, LEFT_OUT},
	{"attempt", MEMBER(INT, attempts)},
};

static const struct member edited_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"prompt", MEMBER(TEXT, prompt), MEMBER_CUT},
	{"label", MEMBER(TEXT, label), LEFT_OUT},
};

static const struct member other_members[] = {
	{"task_id", MEMBER(TEXT, id)},
	{"result", MEMBER(BLOB, result), OF_COMPLETED | MEMBER_CUT},
	{"error", MEMBER(TEXT, error), LEFT_OUT},
	{"exit_status", MEMBER(INT, exit_status), 0, NONE_IS_NEGATIVE, LEFT_OUT},
	{"signal", MEMBER(INT, signal), 0, NONE_IS_ZERO, LEFT_OUT},
};

static const struct portrait queued = PORTRAIT(struct task, queued_members);
static const struct portrait started = PORTRAIT(struct task, started_members);
static const struct portrait edited = PORTRAIT(struct task, edited_members);
static const struct portrait other = PORTRAIT(struct task, other_members);

static void say_event(struct packer *p, const char *event, const struct task *task,
		      int64_t queue_size)
{
	const struct selection all = {0};
	const struct selection unless_completed = {.without = OF_COMPLETED};

	if (strcmp(event, "task.queued") == 0) {
		packer_members(p, &queued, all, task, PROMPT_TOLD);
		packer_int(p, "queue_size", queue_size);
		return;
	}
	if (strcmp(event, "task.started") == 0) {
		packer_members(p, &started, all, task, 0);
		return;
	}
	if (strcmp(event, "task.edited") == 0) {
		packer_members(p, &edited, all, task, PROMPT_TOLD);
		return;
	}
	packer_members(p, &other, task->state == TASK_COMPLETED ? all : unless_completed, task,
		       RESULT_TOLD);
	if (task->started_ms > 0 && task->completed_ms > 0)
		packer_int(p, "duration_ms", task->completed_ms - task->started_ms);
}

static int add_event(struct tasks *t, struct event_new *e, const struct task *task,
		     int64_t queue_size, struct text tool_use_id)
{
	struct event_data d;

	e->project = task->project;
	e->run = task->id;
	event_data_begin(&d);
	say_event(&d.members, e->type, task, queue_size);
	packer_given(&d.members, "tool_use_id", tool_use_id);
	return event_add_data(t->events, e, &d);
}

static int event_later(struct tasks *t, const char *event, const struct task *task,
		       int64_t queue_size, const int64_t *change)
{
	struct event_new e = {.type = event, .change = change};

	return add_event(t, &e, task, queue_size, (struct text) {0});
}

int task_event_add(struct tasks *t, const char *event, const struct task *task, int64_t queue_size)
{
	return event_later(t, event, task, queue_size, NULL);
}

static int event_fenced(struct tasks *t, const struct task *task,
			const struct store_task_guard *guard, const int64_t *change)
{
	struct event_new e = {.type = "task.fenced",
			      .project = task->project,
			      .run = task->id,
			      .change = change,
			      .unless = true};
	struct event_data d;

	event_data_begin(&d);
	packer_text(&d.members, "task_id", task->id);
	packer_int(&d.members, "attempt", guard->attempts);
	packer_text(&d.members, "host", node_name(t->node));
	return event_add_data(t->events, &e, &d);
}

int task_event_submitted(struct tasks *t, const struct task *task, int64_t queue_size,
			 struct text tool_use_id)
{
	struct event_new e = {.type = "task.queued"};

	return add_event(t, &e, task, queue_size, tool_use_id);
}

/* ---- changes ---- */

struct task_change {
	struct record_change change;
	struct tasks *tasks;
	struct arena arena; /* of the texts */
	struct task row;
	const char *event;
	int64_t queue_size;
	struct store_task_guard guard;
	struct store_task_kept kept; /* known once the batch is settled */
	struct list watches;         /* who is still to be told that it has ended */
	struct record_waiter waiter;
	task_done_fn fn; /* NULL: nobody is waiting */
	void *arg;
};

static struct task_change *change_of(const struct record_change *c)
{
	return list_entry(c, struct task_change, change);
}

static struct text change_id(const struct record_change *c)
{
	return change_of(c)->row.id;
}

static struct live *live_of(const struct record_change *c)
{
	return list_entry(c->record, struct live, record);
}

/* Changes go one after another, so this is what the row is like if nobody else has changed it. */
static void change_prepare(struct record_change *change)
{
	change_of(change)->guard.version = live_of(change)->task.version;
}

/* Another host has changed the task, or taken it away. */
static bool is_lost(const struct task_change *c)
{
	return c->kept.version < 0;
}

static bool change_took(struct record_change *change)
{
	const struct task_change *c = change_of(change);

	if (!is_lost(c))
		live_of(change)->task.version = c->kept.version;
	return !is_lost(c);
}

/* Of all changes of a batch, the server is asked at once which were made; a file says so at once. */
static int change_write(struct record_change *change)
{
	struct task_change *c = change_of(change);
	struct tasks *t = c->tasks;
	int r = store_task_update_later(store_writer(t->store), &c->row, &c->guard, &c->kept);

	if (r == 0 && c->event)
		r = event_later(t, c->event, &c->row, c->queue_size, &c->kept.version);
	/* What was run meanwhile, somebody else may run by now: its result counts for nothing. */
	if (r == 0 && c->guard.by == TASK_GUARD_RUN && c->guard.epoch)
		r = event_fenced(t, &c->row, &c->guard, &c->kept.version);
	return r;
}

static void change_free(struct record_change *change)
{
	struct task_change *c = change_of(change);

	arena_done(&c->arena);
	free(c);
}

/* If memory runs out, the text is left out, not the change. */
static void copy(struct arena *a, struct text *t)
{
	if (arena_copy_text(a, *t, t) != 0)
		*t = (struct text) {0};
}

/* The store has this end, and the task was not queued again meanwhile. */
static bool is_its_end(const struct live *l, const struct task *row)
{
	return row->state > TASK_RUNNING && l->task.state > TASK_RUNNING;
}

/* Returns whether somebody is still to be told. */
static bool tell_end(struct live *l, struct task_change *c)
{
	if (list_empty(&l->watches) || !is_its_end(l, &c->row))
		return false;
	/* Whoever is told may do something that frees the task. */
	copy(&c->arena, &c->row.id);
	watch_take(l, &c->watches);
	return watch_tell_end(&c->watches, &c->row);
}

void task_tell_ended(struct tasks *t, struct live *l, const struct task *row)
{
	struct task_change *c = list_empty(&l->watches) ? NULL : task_change_new(NULL, NULL);

	if (!c)
		return;
	c->tasks = t;
	c->row = *row;
	copy(&c->arena, &c->row.project);
	copy(&c->arena, &c->row.result);
	copy(&c->arena, &c->row.error);
	if (tell_end(l, c)) {
		list_append(&t->telling, &c->change.link);
		wake_send(t->more);
	} else {
		change_free(&c->change);
	}
}

bool task_write_tell(struct tasks *t)
{
	struct list *first = list_first(&t->telling);
	struct task_change *c =
		first ? change_of(list_entry(first, struct record_change, link)) : NULL;

	if (c && !watch_tell_end(&c->watches, &c->row)) {
		list_remove(&c->change.link);
		change_free(&c->change);
	}
	return !list_empty(&t->telling);
}

static void change_stored(struct record_change *change, bool recovered)
{
	struct task_change *c = change_of(change);
	struct tasks *t = c->tasks;
	struct live *l = live_of(change);

	if (is_lost(c))
		task_lost(t, l, c->guard.by == TASK_GUARD_CLAIM);
	else
		task_heed_wish(t, l, &c->row, c->kept.cancel != 0);
	if (!is_lost(c) && tell_end(l, c)) {
		list_append(&t->telling, &change->link);
		wake_send(t->more);
	} else {
		change_free(change);
	}
	if (recovered)
		queue_run(t);
	queue_kept(t);
	tasks_check_stopped(t);
}

static void on_failed(void *tasks)
{
	tasks_check_stopped(tasks);
}

static void tell(struct record_waiter *w, int result)
{
	struct task_change *c = list_entry(w, struct task_change, waiter);
	struct why why = {0};

	if (result == REFUSE_CONFLICT)
		refuse(&why, REFUSE_CONFLICT,
		       "Task %.*s was changed on another host; read it again and retry",
		       TEXT_ARGS(c->row.id));

	c->fn(c->arg, result, &why);
}

const struct record_change_ops task_changes = {
	.failed = "could not store tasks, retrying",
	.id = change_id,
	.prepare = change_prepare,
	.write = change_write,
	.took = change_took,
	.stored = change_stored,
	.on_failed = on_failed,
	.free = change_free,
};

/* Nobody is told any more. */
void task_write_done(struct tasks *t)
{
	struct list *first;

	while ((first = list_first(&t->telling))) {
		struct task_change *c = change_of(list_entry(first, struct record_change, link));
		struct list *watch;

		while ((watch = list_first(&c->watches)))
			list_remove(watch);
		list_remove(first);
		change_free(&c->change);
	}
	records_done(&t->records);
}

static void free_unwritten(struct task_change *c)
{
	if (c)
		change_free(&c->change);
}

static struct task_change *take_reserved(struct live *l)
{
	struct task_change *c = l->reserved;

	l->reserved = NULL;
	return c;
}

void task_write_drop(struct live *l)
{
	list_for_each (at, following, &l->record.changes)
		task_change_forget(change_of(list_entry(at, struct record_change, link)));
	record_drop(&l->record);
	free_unwritten(take_reserved(l));
}

/* What an update writes may change in the task meanwhile, so it is copied; nothing else is used. */
static void copy_changing(struct task_change *c)
{
	portrait_each (m, &task_portrait) {
		struct text *t = member_bytes(m, &c->row);

		if (t && (m->flags & MEMBER_CHANGES))
			copy(&c->arena, t);
	}
	if (c->event && strcmp(c->event, "task.queued") == 0)
		copy(&c->arena, &c->row.prompt);
}

int task_reserve_change(struct live *l)
{
	if (!l->reserved)
		l->reserved = task_change_new(NULL, NULL);
	return l->reserved ? 0 : -ENOMEM;
}

void task_change_forget(struct task_change *c)
{
	if (c)
		list_remove(&c->waiter.link);
}

struct task_change *task_change_new(task_done_fn fn, void *arg)
{
	struct task_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	record_change_init(&c->change);
	list_init(&c->waiter.link);
	list_init(&c->watches);
	if (fn)
		record_change_wait(&c->change, &c->waiter);
	arena_init(&c->arena, TASK_ARENA_MAX);
	c->waiter.fn = tell;
	c->fn = fn;
	c->arg = arg;
	return c;
}

static struct store_task_guard guard_after(const struct tasks *t, const struct former *was,
					   const struct task *row)
{
	bool ours = !row->host.data || node_is_us(t->node, row->host);

	if (was->state == TASK_RUNNING)
		return (struct store_task_guard) {.by = TASK_GUARD_RUN,
						  .attempts = was->attempts,
						  .epoch = was->epoch,
						  .host = ours ? node_name(t->node)
							       : (struct text) {0}};
	return (struct store_task_guard) {.by = row->state == TASK_RUNNING ? TASK_GUARD_CLAIM
									   : TASK_GUARD_VERSION,
					  .epoch = row->epoch};
}

void task_write_row(struct tasks *t, struct live *l, const struct task *row, const char *event,
		    struct task_change *c)
{
	assert(task_is_legal(l));
	live_changed(l);
	if (!c)
		c = task_change_new(NULL, NULL);
	if (!c && row->state != TASK_RUNNING)
		c = take_reserved(l);
	if (!c) {
		log_err("could not store task", "task=%.*s error=%s", TEXT_ARGS(row->id),
			strerror(ENOMEM));
		return;
	}
	c->tasks = t;
	c->row = *row;
	/* These live as long as the task. */
	c->row.project = l->project->name;
	c->row.id = l->task.id;
	c->event = event;
	copy_changing(c);
	c->guard = guard_after(t, &l->former, row);
	l->former = (struct former) {row->state, row->attempts, row->epoch};
	c->queue_size = l->project->n[TASK_QUEUED];
	record_add_change(&l->record, &c->change);
	record_submit(&l->record);
	if (row->state != TASK_RUNNING)
		free_unwritten(take_reserved(l));
}

void task_write(struct tasks *t, struct live *l, const char *event, struct task_change *c)
{
	task_write_row(t, l, &l->task, event, c);
}
