/*
 * A task's changes on their way to the store, each with the event that reports it; its watches; and how tasks start
 * and stop.
 */
#include "engine/task/task.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/error.h"
#include "engine/event/event.h"
#include "io/process/supervisor.h"
#include "io/process/tree.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "base/log.h"
#include "io/process/output_file.h"
#include "store/task.h"
#include "store/store.h"

enum { STOP_INTERRUPT_MS = 5000 };

/* ---- events: stores rely on these names; each table lists them in output order ---- */

/* Bytes of a text in an event. */
enum { PROMPT_MAX = 80, RESULT_MAX = 64 << 10 };

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

static const struct schema queued = SCHEMA(struct task, queued_members);
static const struct schema started = SCHEMA(struct task, started_members);
static const struct schema edited = SCHEMA(struct task, edited_members);
static const struct schema other = SCHEMA(struct task, other_members);

/* The last one is for all others. */
static const struct kind {
	const char *event;
	const struct schema *members;
	size_t text_max;
} kinds[] = {
	{"task.queued", &queued, PROMPT_MAX},
	{"task.started", &started, 0},
	{"task.edited", &edited, PROMPT_MAX},
	{NULL, &other, RESULT_MAX},
};

static int add_event(struct tasks *t, struct event_new *e, const struct task *task,
		     int64_t queue_size, struct text tool_use_id)
{
	const struct selection members = {.without =
						  task->state == TASK_COMPLETED ? 0 : OF_COMPLETED};
	const struct kind *kind = kinds;
	struct event_data d;

	while (kind->event && strcmp(kind->event, e->type) != 0)
		kind++;
	e->project = task->project;
	e->run = task->id;
	event_data_begin(&d);
	packer_members(&d.members, kind->members, members, task, kind->text_max);
	if (kind->members == &queued)
		packer_int(&d.members, "queue_size", queue_size);
	if (!kind->event && task->started_ms > 0 && task->completed_ms > 0)
		packer_int(&d.members, "duration_ms", task->completed_ms - task->started_ms);
	packer_given(&d.members, "tool_use_id", tool_use_id);
	return event_add_data(t->events, e, &d);
}

int task_event_add(struct tasks *t, const char *event, const struct task *task, int64_t queue_size,
		   struct text tool_use_id)
{
	struct event_new e = {.type = event};

	return add_event(t, &e, task, queue_size, tool_use_id);
}

static int add_fenced(struct tasks *t, const struct task *task,
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

/* ---- changes ---- */

enum { REPORTED_AT_ONCE = 500 }; /* of the watches of an end */

struct task_change {
	struct record_change change;
	struct tasks *tasks;
	struct arena arena; /* of the texts */
	struct task row;
	const char *event;
	int64_t queue_size;
	struct store_task_guard guard;
	struct store_task_kept kept; /* known once the batch is settled */
	struct list watches;         /* to be notified that it has ended */
};

static struct task_change *change_of(const struct record_change *c)
{
	return c ? list_entry(c, struct task_change, change) : NULL;
}

static struct text change_id(const struct record_change *c)
{
	return change_of(c)->row.id;
}

static struct live *live_of(const struct record_change *c)
{
	return list_entry(c->record, struct live, record);
}

/* Changes go one after another, so this is the version of the row unless another host has changed it. */
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

/* A server answers for all changes of a batch at its end; a file answers for each at once. */
static int change_write(struct record_change *change)
{
	struct task_change *c = change_of(change);
	struct tasks *t = c->tasks;
	struct event_new e = {.type = c->event, .change = &c->kept.version};
	int r = store_task_update_later(store_writer(t->store), &c->row, &c->guard, &c->kept);

	if (r == 0 && c->event)
		r = add_event(t, &e, &c->row, c->queue_size, (struct text) {0});
	/* Another host may run the task by now: the result of this attempt does not count. */
	if (r == 0 && c->guard.by == TASK_GUARD_RUN && c->guard.epoch)
		r = add_fenced(t, &c->row, &c->guard, &c->kept.version);
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

/* ---- watches: their callers wait for output or the end of a task ---- */

/* Its last change may not be stored yet; then its end is still to be told. */
static bool is_coming(const struct live *l)
{
	return l->task.state <= TASK_RUNNING || record_pending(&l->record);
}

static int64_t printed_so_far(const struct live *l)
{
	if (l->run && l->run->output)
		return output_file_end(l->run->output);
	return l->task.output_bytes;
}

bool task_watch(struct tasks *t, struct text project, struct text id, struct task_watch *w,
		int64_t *ret_end)
{
	unsigned n;
	struct live *l = live_find(t, project, id, &n);

	if (n != 1 || !is_coming(l))
		return false;
	w->live = l;
	list_append(&l->watches, &w->link);
	l->n_listening += w->printed != NULL;
	w->elsewhere = l->task.state == TASK_RUNNING && !l->run;
	*ret_end = printed_so_far(l);
	return true;
}

void task_unwatch(struct task_watch *w)
{
	if (w->link.next)
		list_remove(&w->link);
	if (w->live)
		w->live->n_listening -= w->printed != NULL;
	w->live = NULL;
}

/* Reports an end to some of its watches. Returns whether there are more. */
static bool report_end(struct task_change *c)
{
	struct list *first;

	/* A callback may do anything, such as ending another watch. */
	for (unsigned n = 0; n < REPORTED_AT_ONCE && (first = list_first(&c->watches)); n++) {
		struct task_watch *w = list_entry(first, struct task_watch, link);

		list_remove(first);
		w->ended(w, &c->row);
	}
	return !list_empty(&c->watches);
}

/* Frees the change when all watches know of it. */
static void report_then_free(struct tasks *t, struct live *l, struct task_change *c)
{
	/* A callback may do something that frees the task. */
	copy(&c->arena, &c->row.id);
	list_splice(&c->watches, &l->watches);
	l->n_listening = 0;
	list_for_each (at, following, &c->watches)
		list_entry(at, struct task_watch, link)->live = NULL;
	if (!report_end(c)) {
		change_free(&c->change);
		return;
	}
	list_append(&t->reporting, &c->change.link);
	wake_send(t->more);
}

void task_report(struct tasks *t, struct live *l, const struct task *row)
{
	struct task_change *c = change_of(list_empty(&l->watches) ? NULL : task_change_new(NULL));

	if (!c)
		return;
	c->tasks = t;
	c->row = *row;
	copy(&c->arena, &c->row.project);
	copy(&c->arena, &c->row.result);
	copy(&c->arena, &c->row.error);
	report_then_free(t, l, c);
}

static bool report_more(struct tasks *t)
{
	struct list *first = list_first(&t->reporting);
	struct task_change *c =
		first ? change_of(list_entry(first, struct record_change, link)) : NULL;

	if (c && !report_end(c)) {
		list_remove(&c->change.link);
		change_free(&c->change);
	}
	return !list_empty(&t->reporting);
}

/* ---- what becomes of a change ---- */

/* Another host has changed the task. It waits until it is read again. */
static void lost(struct live *l, bool claim)
{
	log_debug(claim ? "another host claimed the task first" : "another host changed the task",
		  "task=%.*s", TEXT_ARGS(l->task.id));
	if (l->run)
		run_lose(l->run);
	queue_remove(l);
	record_stale(&l->record);
}

static void change_stored(struct record_change *change, bool recovered)
{
	struct task_change *c = change_of(change);
	struct tasks *t = c->tasks;
	struct live *l = live_of(change);

	if (is_lost(c)) {
		lost(l, c->guard.by == TASK_GUARD_CLAIM);
		change_free(change);
	} else {
		task_cancel_requested(t, l, &c->row, c->kept.cancel != 0);
		/* The store has this end, unless the task was queued again meanwhile. */
		if (c->row.state > TASK_RUNNING && l->task.state > TASK_RUNNING)
			report_then_free(t, l, c);
		else
			change_free(change);
	}
	if (recovered)
		queue_run(t);
	if (t->records.stopping || (t->writes_left && t->records.n_changes < TASK_CHANGES_MAX / 2))
		wake_send(t->more);
}

static void on_failed(void *tasks)
{
	wake_send(((struct tasks *)tasks)->more);
}

static const struct record_change_ops task_changes = {
	.failed = "could not store tasks, retrying",
	.id = change_id,
	.prepare = change_prepare,
	.write = change_write,
	.took = change_took,
	.stored = change_stored,
	.on_failed = on_failed,
	.free = change_free,
};

/* No watch is notified any more. */
static void write_done(struct tasks *t)
{
	struct list *first;

	while ((first = list_first(&t->reporting))) {
		struct task_change *c = change_of(list_entry(first, struct record_change, link));
		struct list *watch;

		while ((watch = list_first(&c->watches)))
			list_remove(watch);
		list_remove(first);
		change_free(&c->change);
	}
	records_done(&t->records);
}

/* What an update writes may change in the task meanwhile, so it is copied; nothing else is used. */
static void copy_changing(struct task_change *c)
{
	schema_each(m, &task_schema)
	{
		struct text *t = member_bytes(m, &c->row);

		if (t && (m->flags & MEMBER_CHANGES))
			copy(&c->arena, t);
	}
	if (c->event && strcmp(c->event, "task.queued") == 0)
		copy(&c->arena, &c->row.prompt);
}

struct record_change *task_change_new(struct record_waiter *waiter)
{
	struct task_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	record_change_init(&c->change);
	list_init(&c->watches);
	if (waiter)
		record_change_wait(&c->change, waiter);
	arena_init(&c->arena, TASK_ARENA_MAX);
	return &c->change;
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
		    struct record_change *change)
{
	struct task_change *c = change_of(change ?: task_change_new(NULL));

	assert(task_is_legal(l));
	live_changed(l);
	if (!c && row->state != TASK_RUNNING) {
		c = change_of(l->reserved);
		l->reserved = NULL;
	}
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
	live_stored(l, row);
	c->queue_size = l->project->n[TASK_QUEUED];
	record_add_change(&l->record, &c->change);
	record_submit(&l->record);
	if (row->state != TASK_RUNNING && l->reserved) {
		change_free(l->reserved);
		l->reserved = NULL;
	}
}

/* ---- start and stop ---- */

static char **copy_program(const char *const *program)
{
	unsigned n = 0;
	char **copy_of;

	while (program[n])
		n++;
	copy_of = calloc(n + 1, sizeof(copy_of[0]));
	for (unsigned i = 0; copy_of && i < n; i++) {
		copy_of[i] = strdup(program[i]);
		if (!copy_of[i]) {
			for (unsigned k = 0; k < i; k++)
				free(copy_of[k]);
			free(copy_of);
			return NULL;
		}
	}
	return copy_of;
}

int tasks_add_project(struct tasks *t, const struct task_project *in)
{
	struct project *p = in->folder ? project_find(t, text_of(in->folder), true) : NULL;

	if (!in->folder) {
		t->project_parallel = in->parallel;
		wake_send(t->more);
		return 0;
	}
	if (!p)
		return -ENOMEM;
	p->served = true;
	p->parallel = in->parallel;
	p->timeout_ms = in->timeout_ms;
	p->queue = in->queue;
	if (in->program && !p->program) {
		p->program = copy_program(in->program);
		if (!p->program)
			return -ENOMEM;
	}
	/* A reload may have raised its limit. */
	wake_send(t->more);
	return 0;
}

static int make_folder(const char *path, struct error *error)
{
	int r = file_make_folder(path);

	if (r == 0)
		return 0;
	return refuse(error, REFUSE_UNAVAILABLE, "cannot use the folder %s: %s", path,
		      strerror(-r));
}

/* The stop is complete when nothing is running and all changes are stored, or cannot be. */
static void check_stopped(struct tasks *t)
{
	if (!t->records.stopping || t->n_running > 0 || !t->stopped)
		return;
	if (t->records.n_changes > 0 && !t->records.failing)
		return;
	if (t->stop_timer)
		timer_stop(t->stop_timer);
	t->stopped(t->stopped_arg);
	t->stopped = NULL;
}

/* A time has come, or there is more to do. */
static void on_turn(void *arg)
{
	struct tasks *t = arg;

	if (report_more(t))
		wake_send(t->more);
	queue_run(t);
	check_stopped(t);
}

static int set_up(struct tasks *t, const struct tasks_opts *opts, struct error *error)
{
	const struct records_opts records = {
		.events = t->events,
		.node = t->node,
		.loop = t->loop,
		.workers = t->workers,
		.name = "task",
		.arg = t,
		.changes = &task_changes,
		.reads = &task_reads,
		.owners = &task_owners,
	};
	int r = timer_new(t->loop, on_turn, t, &t->timer)
			?: wake_new(t->loop, on_turn, t, &t->more)
			?: records_start(&t->records, &records);

	if (r != 0)
		return r;
	wake_hold(t->more, false);
	r = tasks_add_project(t, &(struct task_project) {.folder = ""});
	for (unsigned i = 0; r == 0 && i < opts->n_projects; i++)
		r = tasks_add_project(t, &opts->projects[i]);
	for (unsigned i = 0; r == 0 && i < opts->n_groups; i++)
		r = tasks_set_parallel(t, text_of(opts->groups[i].name), opts->groups[i].parallel,
				       error);
	return r;
}

static void set_limits(struct tasks *t, const struct tasks_opts *opts)
{
	t->opts = *opts;
	t->opts.timeout_ms = opts->timeout_ms ?: 120 * 60 * 1000;
	t->opts.output_bytes = opts->output_bytes ?: 16 << 20;
	t->parallel = opts->parallel ?: 16;
	t->project_parallel = opts->project_parallel ?: 3;
	t->queue = opts->queue ?: 1000;
	t->interrupt_ms = opts->interrupt_ms ?: 5000;
	snprintf(t->runner, sizeof(t->runner), "%s", opts->runner ? opts->runner : "");
}

CLEANUP_POINTER(tasks, tasks_free)

static bool is_due_before(const struct sorted_link *a, const struct sorted_link *b)
{
	const struct live *first = list_entry(a, struct live, order);
	const struct live *second = list_entry(b, struct live, order);

	first->project->tasks->n_looked++;
	if (first->ready_ms != second->ready_ms)
		return first->ready_ms < second->ready_ms;
	return first->task.seq < second->task.seq;
}

static struct tasks *tasks_new(const struct tasks_opts *opts)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->store = opts->store;
	t->events = opts->events;
	t->chat = opts->chat;
	t->loop = opts->loop;
	t->workers = opts->workers;
	t->node = opts->node;
	list_init(&t->projects);
	list_init(&t->groups);
	list_init(&t->running);
	list_init(&t->elsewhere);
	list_init(&t->eager);
	list_init(&t->releases);
	list_init(&t->requests);
	list_init(&t->reporting);
	sorted_init(&t->timed, is_due_before);
	for (unsigned i = 0; i < N_TASK_STATES; i++)
		list_init(&t->dependents[i]), list_init(&t->orphans[i]);
	set_limits(t, opts);
	/* Marks of another store's daemon are not ours, whatever path that store has. */
	t->owner = store_owner(t->store);
	return t;
}

int tasks_start(const struct tasks_opts *opts, struct tasks **ret_tasks, struct error *error)
{
	CLEANUP(tasks_freep) struct tasks *t = tasks_new(opts);
	int r;

	if (!t)
		return -ENOMEM;
	t->output_folder = strdup(opts->output_folder);
	r = t->output_folder ? make_folder(t->output_folder, error) : -ENOMEM;
	if (r != 0)
		return r;
	r = set_up(t, opts, error) ?: tasks_recover(t, error) ?: task_sweeps_start(t);
	if (r != 0)
		return r;
	t->recount.wanted = true;
	/* Start on the next pass of the loop: until then, other services that are starting may
	 * write without a thread. */
	timer_start(t->timer, 0);
	*ret_tasks = TAKE(t);
	return 0;
}

static void stop_all(void *arg)
{
	struct tasks *t = arg;

	list_for_each (at, following, &t->running)
		run_end_with(list_entry(at, struct live, link)->run, INTENT_STOP);
}

/* The stop does not wait any longer. */
static void kill_all(struct tasks *t)
{
	stop_all(t);
	list_for_each (at, following, &t->running) {
		const struct run *r = list_entry(at, struct live, link)->run;

		if (r->attempt.program)
			supervised_end(r->attempt.program, 0);
	}
}

void tasks_stop(struct tasks *t, unsigned grace_ms, void (*fn)(void *arg), void *arg)
{
	t->records.stopping = true;
	t->stopped = fn;
	t->stopped_arg = arg;
	/* A stop must not take as long as a cancel may. */
	if (t->interrupt_ms > STOP_INTERRUPT_MS)
		t->interrupt_ms = STOP_INTERRUPT_MS;
	if (grace_ms == 0)
		t->interrupt_ms = 0;
	if (t->n_running > 0 && grace_ms == 0)
		kill_all(t);
	else if (t->n_running > 0 && !t->stop_timer &&
		 timer_new(t->loop, stop_all, t, &t->stop_timer) == 0)
		timer_start(t->stop_timer, grace_ms);
	else if (t->n_running > 0)
		stop_all(t);
	/* Not inside this call. */
	wake_send(t->more);
}

void tasks_drain(struct tasks *t, bool drain)
{
	if (!t)
		return;
	t->n_drains += drain ? 1 : -1U;
	queue_run(t);
}

static void free_project(struct project *p)
{
	struct list *first;

	while (p->recent.first) {
		struct live *l = list_entry(p->recent.first, struct live, recent_link);

		if (l->run)
			run_free(l->run);
		live_free(l);
	}
	while ((first = list_first(&p->lines))) {
		list_remove(first);
		free(list_entry(first, struct line, link));
	}
	for (char **word = p->program; word && *word; word++)
		free(*word);
	free(p->program);
	free(p->folder);
	free(p);
}

void tasks_free(struct tasks *t)
{
	struct list *first;

	if (!t)
		return;
	for (unsigned i = 0; i < RENDERED_SLOTS; i++)
		buf_done(&t->rendered[i].text);
	while ((first = list_first(&t->projects))) {
		list_remove(first);
		free_project(list_entry(first, struct project, link));
	}
	while ((first = list_first(&t->groups))) {
		list_remove(first);
		free(list_entry(first, struct group, link));
	}
	table_done(&t->projects_by_name);
	table_done(&t->groups_by_name);
	table_done(&t->by_name);
	table_done(&t->by_id);
	sweep_all(t->owner);
	timer_free(t->timer);
	wake_free(t->more);
	write_done(t);
	/* Those that wait for a change; their callers are gone. */
	while ((first = list_first(&t->requests)))
		request_free(list_entry(first, struct request, link));
	ticker_free(t->sweeper);
	timer_free(t->first_sweep);
	timer_free(t->stop_timer);
	free(t->output_folder);
	free(t);
}
