/* How tasks start and stop, the requests of their callers, and the deletion of ended tasks. */
#include "engine/task/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
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

/* ---- requests ---- */

void *request_new(struct tasks *t, size_t size, int (*run)(struct work *w, int lane),
		  void (*finished)(struct work *w, int result))
{
	struct request *r = calloc(1, size);

	if (!r)
		return NULL;
	r->tasks = t;
	list_append(&t->requests, &r->link);
	r->work = (struct work) {.run = run, .finished = finished, .arena = &r->arena};
	arena_init(&r->arena, TASK_ARENA_MAX);
	return r;
}

void request_free(void *request)
{
	struct request *r = request;

	list_remove(&r->link);
	arena_done(&r->arena);
	free(r);
}

void request_done(struct request *r, int result)
{
	r->fn(r->arg, result, &r->error);
	request_free(r);
}

/* ---- deleting tasks that have ended, some at a time, with all of their output: old ones, and those that their user
 * wants gone ---- */

enum { SWEEP_EVERY_MS = 10 * 60 * 1000, DELETED_AT_ONCE = 100 };

struct deletion {
	struct request request;
	struct arena_mark names; /* what is allocated after them belongs to one step */
	struct task_cleaning which;
	int64_t before_ms; /* 0: its user wants them gone */
	struct task *rows;
	unsigned n;
	int64_t n_all;
	task_cleaned_fn fn; /* NULL if the daemon sweeps */
};

/* For other hosts it names them. */
static int add_cleaned(struct tasks *t, const struct task_cleaning *which, const struct task *rows,
		       unsigned n)
{
	struct event_new e = {.type = "task.cleaned", .project = which->project};
	struct event_data d;
	struct buf seqs;

	event_data_begin(&d);
	packer_text(&d.members, "group", which->group);
	packer_int(&d.members, "count", n);
	buf_init(&seqs, n * (size_t)24 + 1);
	for (unsigned i = 0; node_shares(t->node) && i < n; i++)
		buf_printf(&seqs, "%lld ", (long long)rows[i].seq);
	packer_given(&d.members, "seqs", (struct text) {.data = seqs.data, .len = seqs.len});
	buf_done(&seqs);
	return event_add_data(t->events, &e, &d);
}

/* The task that was named. */
static int deletion_find(struct deletion *d, struct connection *db, int64_t *ret_seq)
{
	struct error *error = &d->request.error;
	struct text id = d->which.id;
	struct task row;
	unsigned n;
	int r = task_find_row(db, &d->request.arena, d->which.project, id, &row, &n);

	if (r == 0 && n != 1)
		r = task_refuse_found(n, id, error);
	if (r == 0 && row.state <= TASK_RUNNING)
		r = refuse(error, REFUSE_CONFLICT, "task %.*s has not ended; cancel it first",
			   TEXT_ARGS(row.id));
	if (r == 0)
		*ret_seq = row.seq;
	return r;
}

static int deletion_clean(struct deletion *d, struct connection *db)
{
	struct store_task_query q = {
		.project = d->which.project,
		.group = d->which.group,
		.state = d->which.successful_only ? TASK_COMPLETED : -1,
		.limit = DELETED_AT_ONCE,
	};
	int r = d->which.id.data ? deletion_find(d, db, &q.seq) : 0;

	r = r ?: store_task_clean(db, &q, &d->request.arena, &d->rows, &d->n);
	if (r == 0 && d->which.id.data && d->n == 0)
		r = refuse(&d->request.error, REFUSE_CONFLICT, "an open task depends on task %.*s",
			   TEXT_ARGS(d->which.id));
	return r;
}

static int deletion_run(struct work *w, int lane)
{
	struct deletion *d = list_entry(w, struct deletion, request.work);
	struct connection *db = store_writer(d->request.tasks->store);
	/* Of old tasks only other hosts want to know. */
	bool reports = !d->before_ms || node_shares(d->request.tasks->node);
	int r = d->before_ms ? store_task_sweep(db, d->before_ms, DELETED_AT_ONCE,
						&d->request.arena, &d->rows, &d->n)
			     : deletion_clean(d, db);

	(void)lane;
	return r == 0 && d->n > 0 && reports
		       ? add_cleaned(d->request.tasks, &d->which, d->rows, d->n)
		       : r;
}

/* The store has deleted it: it goes from memory, with its output. */
static void forget(struct tasks *t, const struct task *row)
{
	struct project *p = project_find(t, row->project, false);
	unsigned n;
	struct live *l = live_find(t, row->project, row->id, &n);
	char path[4096];

	task_path(t->output_folder, row->seq, path, sizeof(path));
	output_file_remove(path);
	/* A task that is being retried counts with its new state. */
	if (!p || (l && l->task.state != row->state))
		return;
	project_count(p, row->state, -1);
	if (l && !record_pending(&l->record))
		live_free(l);
}

static void deletion_done(struct deletion *d, int result)
{
	if (d->fn)
		d->fn(d->request.arg, result, d->n_all, &d->request.error);
	else
		d->request.tasks->sweeping = false;
	if (!d->fn && result != 0 && result != -ECANCELED)
		log_err("could not delete old tasks", "error=%s", fault_words(result));
	request_free(d);
}

static void deletion_go(struct deletion *d)
{
	int r = workers_submit(d->request.tasks->workers, &d->request.work, true);

	if (r != 0)
		deletion_done(d, r);
}

static void deletion_finished(struct work *w, int result)
{
	struct deletion *d = list_entry(w, struct deletion, request.work);
	struct tasks *t = d->request.tasks;

	for (unsigned i = 0; result == 0 && i < d->n; i++)
		forget(t, &d->rows[i]);
	if (result == 0)
		d->n_all += d->n;
	if (result != 0 || d->n < DELETED_AT_ONCE || t->records.stopping) {
		deletion_done(d, result);
		return;
	}
	arena_rewind(&d->request.arena, &d->names);
	deletion_go(d);
}

int task_clean(struct tasks *t, const struct task_cleaning *which, task_cleaned_fn fn, void *arg)
{
	struct deletion *d = request_new(t, sizeof(*d), deletion_run, deletion_finished);
	int r;

	if (!d)
		return -ENOMEM;
	d->which = *which;
	d->fn = fn;
	d->request.arg = arg;
	r = arena_copy_text(&d->request.arena, which->id, &d->which.id)
		    ?: arena_copy_text(&d->request.arena, which->project, &d->which.project)
		    ?: arena_copy_text(&d->request.arena, which->group, &d->which.group);
	d->names = arena_mark(&d->request.arena);
	r = r ?: workers_submit(t->workers, &d->request.work, true);
	if (r != 0)
		request_free(d);
	return r;
}

static void on_sweep(void *tasks)
{
	struct tasks *t = tasks;
	struct deletion *d;

	if (t->sweeping || t->records.stopping || t->opts.keep_ms == 0)
		return;
	d = request_new(t, sizeof(*d), deletion_run, deletion_finished);
	if (!d)
		return;
	d->before_ms = clock_utc_ms() - t->opts.keep_ms;
	t->sweeping = true;
	deletion_go(d);
}

/* The first sweep runs on the next pass of the loop. */
static int sweep_start(struct tasks *t)
{
	int r = ticker_new(t->loop, SWEEP_EVERY_MS, on_sweep, t, &t->sweeper)
			?: timer_new(t->loop, on_sweep, t, &t->first_sweep);

	if (r == 0 && t->opts.keep_ms > 0)
		timer_start(t->first_sweep, 0);
	return r;
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
	struct project *p = project_find(t, text_of(in->folder), true);

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
	int r = timer_new(t->loop, queue_on_turn, t, &t->timer)
			?: wake_new(t->loop, queue_on_turn, t, &t->more)
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

const char *tasks_owner(const struct tasks *t)
{
	return t ? t->owner : NULL;
}

static void tasks_freep(struct tasks **t)
{
	tasks_free(*t);
}

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
	r = set_up(t, opts, error);
	if (r != 0)
		return r;
	r = tasks_recover(t, error);
	if (r != 0)
		return r;
	r = sweep_start(t);
	if (r != 0)
		return r;
	t->recount.wanted = node_shares(t->node);
	/* Start on the next pass of the loop: until then, other services that are starting may
	 * write without a thread. */
	timer_start(t->timer, 0);
	*ret_tasks = TAKE(t);
	return 0;
}

/* The stop is complete when nothing is running and all changes are stored, or cannot be. */
void tasks_check_stopped(struct tasks *t)
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
	tasks_check_stopped(t);
}

void tasks_drain(struct tasks *t, bool drain)
{
	if (!t)
		return;
	t->n_drains += drain ? 1 : -1U;
	queue_run(t);
}

bool tasks_draining(const struct tasks *t)
{
	return t && t->n_drains > 0;
}

unsigned tasks_running(const struct tasks *t)
{
	return t ? t->n_running : 0;
}

static void free_project(struct project *p)
{
	struct list *first;

	while (p->recent.first) {
		struct live *l = list_entry(p->recent.first, struct live, recent_link);

		if (l->run)
			run_drop(l->run);
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
	task_rendered_free(t);
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
	task_write_done(t);
	/* Those that wait for a change; their callers are gone. */
	while ((first = list_first(&t->requests)))
		request_free(list_entry(first, struct request, link));
	ticker_free(t->sweeper);
	timer_free(t->first_sweep);
	timer_free(t->stop_timer);
	free(t->output_folder);
	free(t);
}

/* ---- tasks of another daemon, with their output, before any of ours runs ---- */

static int write_output(const char *path, int64_t max, struct text output)
{
	struct output_file *f;
	int r = output_file_open(path, max, &f);

	if (r != 0)
		return r;
	r = output_file_add(f, output.data, output.len);
	output_file_close(f);
	return r;
}

/* A task is imported even if its output cannot be stored. */
static void keep_output(const struct task_import *in, const struct printed_task *t, int64_t seq)
{
	char path[4096];
	int r;

	if (t->output.len == 0)
		return;
	task_path(in->output_folder, seq, path, sizeof(path));
	r = write_output(path, in->output_bytes, t->output);
	if (r != 0)
		log_warn("could not store output", "task=%.*s error=%s", TEXT_ARGS(t->task.id),
			 strerror(-r));
}

/* seqs: the numbers of the new ones, 0 for the others. */
static int keep(struct store *store, struct arena *a, const struct task_import *in, int64_t *seqs)
{
	for (unsigned i = 0; i < in->n; i++) {
		struct task row = in->tasks[i].task;
		struct text id;
		int r;

		row.held = row.state == TASK_QUEUED;
		row.output_bytes = (int64_t)in->tasks[i].output.len;
		r = store_task_add(store_writer(store), a, &row, &seqs[i], &id);
		/* It came with an earlier import, or is one of ours. */
		if (r == -EEXIST)
			seqs[i] = 0;
		else if (r != 0)
			return r;
	}
	return 0;
}

int tasks_import(struct store *store, struct arena *a, const struct task_import *in,
		 unsigned *ret_n)
{
	int64_t *seqs = arena_zalloc(a, (in->n + 1) * sizeof(seqs[0]));
	int r = seqs ? store_begin(store) : -ENOMEM;

	if (r != 0)
		return r;
	r = keep(store, a, in, seqs);
	if (r != 0) {
		store_rollback(store);
		return r;
	}
	r = store_commit(store);
	if (r != 0)
		return r;
	/* Do this only now: a number that is rolled back goes to another task, which must not
	 * find a file. */
	r = file_make_folder(in->output_folder);
	if (r != 0)
		log_warn("could not store output", "folder=%s error=%s", in->output_folder,
			 strerror(-r));
	*ret_n = 0;
	for (unsigned i = 0; i < in->n; i++) {
		if (seqs[i] == 0)
			continue;
		keep_output(in, &in->tasks[i], seqs[i]);
		(*ret_n)++;
	}
	return 0;
}
