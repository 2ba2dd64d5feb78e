/*
 * Reading tasks: from memory, or from the store on a reader's thread. And what is done to rows alone: deleting those
 * of tasks that have ended, and storing those that another daemon had.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/pack.h"
#include "engine/event/event.h"
#include "io/process/output_file.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/host/chunk.h"
#include "store/store.h"
#include "store/task.h"

enum { LIST_BYTES = 8 << 20 };

static int unpack(struct arena *a, struct task *task)
{
	struct value *v = NULL;
	int r = 0;

	if (task->metadata.bytes.data)
		r = value_unpack(a, task->metadata.bytes, &v);
	task->metadata.value = v;
	/* If it cannot be unpacked, show the rest all the same. */
	return r == -ENOMEM ? r : 0;
}

/* How many tasks a list with this limit has at most. */
static unsigned limit_of(int64_t limit)
{
	if (limit <= 0)
		return TASK_LIST_DEFAULT;
	return limit < TASK_LIST_MAX ? (unsigned)limit : TASK_LIST_MAX;
}

int task_list(struct tasks *t, int lane, struct arena *a, const struct task_filter *f,
	      struct task **ret_tasks, unsigned *ret_n, int64_t *ret_next)
{
	unsigned limit = limit_of(f->limit);
	const struct store_task_query q = {
		.project = f->project,
		.state = f->state,
		.skips = f->skips,
		.group = f->group,
		.label = f->label,
		.open_first = f->open_first,
		.before = f->before,
		.limit = limit + (ret_next != NULL),
		.max_bytes = LIST_BYTES,
		.cut = f->brief ? TASK_BRIEF_TEXT : TASK_LIST_TEXT,
		.brief = f->brief,
	};
	struct task *tasks;
	unsigned n;
	int r = store_task_list(store_lane(t->store, lane), &q, a, &tasks, &n);

	if (r != 0)
		return r;
	if (ret_next)
		*ret_next = n > limit ? store_task_place(&tasks[limit - 1], f->open_first) : 0;
	if (n > limit)
		n = limit;
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = unpack(a, &tasks[i]);
	*ret_tasks = tasks;
	*ret_n = n;
	return r;
}

static int read_chunks(struct tasks *t, int lane, struct arena *a, const struct task *row,
		       struct task_output *o)
{
	return store_chunk_read(store_lane(t->store, lane), row->seq, o->offset, o->max, a,
				&o->bytes, &o->offset, &o->end);
}

static int read_file(const struct tasks *t, struct arena *a, const struct task *row,
		     struct task_output *o)
{
	char *data = arena_alloc(a, o->max);
	struct output_range range;
	char path[4096];
	int r;

	if (!data)
		return -ENOMEM;
	task_path(t->output_folder, row->seq, path, sizeof(path));
	r = output_file_read(path, o->offset, data, o->max, &range);
	if (r != 0)
		return r;
	o->bytes = (struct text) {.data = data, .len = range.len};
	o->offset = range.offset;
	o->end = range.end;
	return 0;
}

static int read_output(struct tasks *t, int lane, struct arena *a, const struct task *row,
		       struct task_output *o)
{
	int r;

	o->running = row->state <= TASK_RUNNING;
	/* Only the store has it for us; or it waits for its next attempt, and ran elsewhere. */
	r = node_is_other(t->node, row->host) ? -ENOENT : read_file(t, a, row, o);
	if (r == -ENOENT && node_shares(t->node))
		r = read_chunks(t, lane, a, row, o);
	if (r != -ENOENT && r != -EBADMSG)
		return r;
	/* It has printed nothing yet, or is just starting to. */
	*o = (struct task_output) {.max = o->max, .running = o->running};
	return 0;
}

int task_get(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
	     struct task *ret_task, struct task_output *output, struct error *error)
{
	unsigned n;
	int r = store_task_find(store_lane(t->store, lane), project, id, a, ret_task, &n);

	if (r == 0 && n != 1)
		r = task_refuse(n, id, error);
	r = r ?: unpack(a, ret_task);
	return r == 0 && output ? read_output(t, lane, a, ret_task, output) : r;
}

int task_groups(struct tasks *t, int lane, struct arena *a, struct text project,
		struct task_tally **ret_groups, unsigned *ret_n)
{
	return store_task_groups(store_lane(t->store, lane), project, a, ret_groups, ret_n);
}

void task_count(struct tasks *t, struct text project, struct task_counts *ret_counts)
{
	const struct project *p = t && project.data ? project_find(t, project, false) : NULL;

	*ret_counts = (struct task_counts) {0};
	if (!t || (project.data && !p))
		return;
	ret_counts->n_here = p ? p->n_running : t->n_running;
	ret_counts->parallel = !p ? t->parallel : p->parallel ?: t->project_parallel;
	ret_counts->draining = t->n_drains > 0;
	for (unsigned i = 0; i < N_TASK_STATES; i++) {
		ret_counts->n[i] = p ? p->n[i] : t->n[i];
		ret_counts->total += ret_counts->n[i];
	}
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
	struct task row;
	unsigned n;
	int r = store_task_find(db, d->which.project, d->which.id, &d->request.arena, &row, &n);

	if (r == 0 && n != 1)
		r = task_refuse(n, d->which.id, error);
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
	struct deletion *d = request_new(t, sizeof(*d), which->project, which->id, deletion_run,
					 deletion_finished);
	int r;

	if (!d)
		return -ENOMEM;
	d->which = *which;
	d->which.project = d->request.project;
	d->which.id = d->request.id;
	d->fn = fn;
	d->request.arg = arg;
	r = arena_copy_text(&d->request.arena, which->group, &d->which.group);
	d->names = arena_mark(&d->request.arena);
	return request_submit(d, r, true);
}

static void on_sweep(void *tasks)
{
	struct tasks *t = tasks;
	struct deletion *d;

	if (t->sweeping || t->records.stopping || t->opts.keep_ms == 0)
		return;
	d = request_new(t, sizeof(*d), (struct text) {0}, (struct text) {0}, deletion_run,
			deletion_finished);
	if (!d)
		return;
	d->before_ms = clock_utc_ms() - t->opts.keep_ms;
	t->sweeping = true;
	deletion_go(d);
}

/* The first sweep runs on the next pass of the loop. */
int task_sweeps_start(struct tasks *t)
{
	int r = ticker_new(t->loop, SWEEP_EVERY_MS, on_sweep, t, &t->sweeper)
			?: timer_new(t->loop, on_sweep, t, &t->first_sweep);

	if (r == 0 && t->opts.keep_ms > 0)
		timer_start(t->first_sweep, 0);
	return r;
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
static int task_read_keep(struct store *store, struct arena *a, const struct task_import *in,
			  int64_t *seqs)
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
	r = task_read_keep(store, a, in, seqs);
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
