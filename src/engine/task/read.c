/*
 * Reading tasks: from memory, or from the store on a reader's thread. And what is done to rows alone: deleting those
 * of tasks that have ended, and storing those that another daemon had.
 */
#include <errno.h>
#include <stdlib.h>
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

enum { LIST_BYTES = 8 << 20, NOW_MAX = 256, LOOKS_MAX = 1000 };

static bool fits(const struct task_filter *f, const struct task *row)
{
	if (f->state >= 0 && (int)row->state != f->state)
		return false;
	if (f->skips != SKIPS_TOO && (f->skips == SKIPS_ONLY) != (row->skipped.data != NULL))
		return false;
	return (!f->group.data || text_equal(f->group, row->group)) &&
	       (!f->label.data || text_equal(f->label, row->label));
}

/* False: the store must be asked. */
static bool list_project(const struct project *p, const struct task_filter *f, unsigned limit,
			 const struct task **found, unsigned *n)
{
	unsigned n_looks = 0;

	for (struct sorted_link *at = p->recent.first; at; at = at->next) {
		const struct live *l = list_entry(at, struct live, recent_link);

		/* The others may be many: a reader finds those that fit by an index. */
		if (n_looks++ == LOOKS_MAX)
			return false;
		/* An open task may be older than others that are not in memory. */
		if (l->task.seq < p->whole_from)
			return false;
		if (!fits(f, &l->task))
			continue;
		if (!l->light)
			return false;
		found[(*n)++] = &l->task;
		if (*n == limit)
			return true;
	}
	return p->whole_from == 0;
}

bool task_list_now(struct tasks *t, const struct task_filter *f,
		   const struct task *const **ret_tasks, unsigned *ret_n)
{
	static const struct task *found[NOW_MAX];
	unsigned limit = task_list_limit(f->limit);
	const struct project *p;

	*ret_n = 0;
	*ret_tasks = found;
	if (limit > NOW_MAX || !f->project.data)
		return false;
	p = project_find(t, f->project, false);
	return p && list_project(p, f, limit, found, ret_n);
}

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

int64_t task_place(const struct task_filter *f, const struct task *task)
{
	return store_task_place(task, f->open_first);
}

int task_list(struct tasks *t, int lane, struct arena *a, const struct task_filter *f,
	      struct task **ret_tasks, unsigned *ret_n, struct error *error)
{
	const struct store_task_query q = {
		.project = f->project,
		.state = f->state,
		.skips = f->skips,
		.group = f->group,
		.label = f->label,
		.open_first = f->open_first,
		.before = f->before,
		.limit = task_list_limit(f->limit) + f->and_next,
		.max_bytes = LIST_BYTES,
		.cut = f->brief ? TASK_BRIEF_TEXT : TASK_LIST_TEXT,
		.brief = f->brief,
	};
	struct task *tasks;
	unsigned n;
	int r = store_task_list(store_lane(t->store, lane), &q, a, &tasks, &n);

	(void)error;
	if (r != 0)
		return r;
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = unpack(a, &tasks[i]);
	*ret_tasks = tasks;
	*ret_n = n;
	return r;
}

bool task_is_id(struct text text)
{
	static const struct text prefix = TEXT("task-");
	size_t n = prefix.len;

	if (!text_begins(text, prefix))
		return false;
	while (n < text.len && text.data[n] >= '0' && text.data[n] <= '9')
		n++;
	return n == text.len && n > prefix.len;
}

int task_resolve(struct tasks *t, int lane, struct arena *a, struct text *project, struct text *ref,
		 struct error *error)
{
	const struct store_task_query q = {
		.project = *project,
		.state = -1,
		.label = *ref,
		.limit = 2,
		.cut = TASK_BRIEF_TEXT,
		.brief = true,
	};
	struct task *tasks;
	unsigned n = 0;
	int r = 0;

	if (ref->len > 0 && !task_is_id(*ref))
		r = store_task_list(store_lane(t->store, lane), &q, a, &tasks, &n);
	if (r != 0 || n == 0)
		return r;
	if (n > 1)
		return refuse_field(error, "id",
				    "several tasks have the label '%.*s', such as %.*s and %.*s; "
				    "use an id",
				    TEXT_ARGS(text_cut(*ref, TASK_LABEL_MAX)),
				    TEXT_ARGS(tasks[0].id), TEXT_ARGS(tasks[1].id));
	*project = tasks[0].project;
	*ref = tasks[0].id;
	return 0;
}

static int find(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
		struct task *ret_row, struct error *error)
{
	unsigned n;
	int r = store_task_find(store_lane(t->store, lane), project, id, a, ret_row, &n);

	return r == 0 && n != 1 ? task_refuse(n, id, error) : r;
}

/* It has printed nothing yet, or is just starting to. */
static bool no_output(int r)
{
	return r == -ENOENT || r == -EBADMSG;
}

static bool is_paused(const struct tasks *t, const struct live *l)
{
	return l->task.state == TASK_QUEUED && (t->paused || (l->group && l->group->paused));
}

static int read_chunks(struct tasks *t, int lane, struct arena *a, const struct task *row,
		       int64_t offset, size_t max, struct task_output *ret)
{
	return store_chunk_read(store_lane(t->store, lane), row->seq, offset, max, a, &ret->bytes,
				&ret->offset, &ret->end);
}

static int read_output(struct tasks *t, int lane, struct arena *a, const struct task *row,
		       int64_t offset, size_t max, struct task_output *ret)
{
	struct output_range range;
	char path[4096];
	char *data;
	int r;

	*ret = (struct task_output) {.running = row->state <= TASK_RUNNING};
	/* Only the store has it for us. */
	if (node_is_other(t->node, row->host))
		return read_chunks(t, lane, a, row, offset, max, ret);
	data = arena_alloc(a, max);
	if (!data)
		return -ENOMEM;
	task_path(t->output_folder, row->seq, path, sizeof(path));
	r = output_file_read(path, offset, data, max, &range);
	/* It waits for its next attempt, and ran elsewhere. */
	if (r == -ENOENT && node_shares(t->node))
		return read_chunks(t, lane, a, row, offset, max, ret);
	if (r != 0)
		return r;
	ret->bytes = (struct text) {.data = data, .len = range.len};
	ret->offset = range.offset;
	ret->end = range.end;
	return 0;
}

int task_get(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
	     struct task *ret_task, struct error *error)
{
	int r = find(t, lane, a, project, id, ret_task, error);

	return r ?: unpack(a, ret_task);
}

int task_get_printed(struct tasks *t, int lane, struct arena *a, struct text project,
		     struct text id, size_t max, struct printed_task *ret_task, struct error *error)
{
	struct task_output output;
	int r = task_get(t, lane, a, project, id, &ret_task->task, error);

	if (r != 0)
		return r;
	r = read_output(t, lane, a, &ret_task->task, -(int64_t)max, max, &output);
	ret_task->output = output.bytes;
	return no_output(r) ? 0 : r;
}

/* NULL: what was read is up to date. */
static const struct task *newer_than(struct tasks *t, struct task *task)
{
	unsigned n;
	const struct live *l = live_find(t, task->project, task->id, &n);

	task->paused = l && is_paused(t, l);
	task->waits = l ? queue_waits(t, l) : (struct task_waits) {.reason = WAIT_NONE};
	/* Another host has changed it, and we have not heard of that yet. */
	if (l && !record_pending(&l->record) && task->version > l->task.version)
		return NULL;
	/* If it has ended and its texts are not in memory, the store knows more. */
	return l && (l->task.state <= TASK_RUNNING || l->light) ? &l->task : NULL;
}

void task_catch_up(struct tasks *t, struct task *task)
{
	const struct task *now = newer_than(t, task);

	if (!now)
		return;
	task->state = now->state;
	task->held = now->held;
	task->stashed = now->stashed;
	task->not_before_ms = now->not_before_ms;
	task->started_ms = now->started_ms;
	task->completed_ms = now->completed_ms;
	task->pid = now->pid;
	task->attempts = now->attempts;
	task->stops = now->stops;
	task->skipped = now->skipped;
	task->exit_status = now->exit_status;
	task->signal = now->signal;
	if (now->state > TASK_RUNNING) {
		task->result = now->result;
		task->error = now->error;
	}
}

bool task_catch_up_printed(struct tasks *t, size_t max, struct printed_task *task)
{
	const struct task *now = newer_than(t, &task->task);
	bool ended = now && now->state > TASK_RUNNING && task->task.state <= TASK_RUNNING;

	task_catch_up(t, &task->task);
	return !ended || task->output.len >= max || task->output.len >= (size_t)now->output_bytes;
}

int task_output(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
		int64_t offset, size_t max, struct task_output *ret_output, struct error *error)
{
	struct task row;
	int r = find(t, lane, a, project, id, &row, error);

	if (r != 0)
		return r;
	r = read_output(t, lane, a, &row, offset, max, ret_output);
	return no_output(r) ? 0 : r;
}

bool task_runs_elsewhere(struct tasks *t, struct text project, struct text id)
{
	unsigned n;
	const struct live *l = live_find(t, project, id, &n);

	return n == 1 && l->task.state == TASK_RUNNING && !l->run;
}

int task_groups(struct tasks *t, int lane, struct arena *a, struct text project,
		struct task_tally **ret_groups, unsigned *ret_n)
{
	return store_task_groups(store_lane(t->store, lane), project, a, ret_groups, ret_n);
}

void task_count(struct tasks *t, struct text project, struct task_counts *ret_counts)
{
	const struct project *p = project.data ? project_find(t, project, false) : NULL;
	const int64_t *n = p ? p->n : t->n;

	*ret_counts = (struct task_counts) {0};
	if (project.data && !p)
		return;
	for (unsigned i = 0; i < N_TASK_STATES; i++) {
		ret_counts->n[i] = n[i];
		ret_counts->total += n[i];
	}
}

/* p: only those of that project; NULL: all. */
static void add_tasks(struct list *tasks, const struct project *p, const struct task **found,
		      unsigned *n)
{
	list_for_each (at, following, tasks) {
		const struct live *l = list_entry(at, struct live, link);

		if (*n == NOW_MAX)
			return;
		if (!p || l->project == p)
			found[(*n)++] = &l->task;
	}
}

static void add_load(struct project *p, struct task_load *load, const struct task **found,
		     unsigned *n)
{
	load->n_running += p->n_running;
	load->n_queued += (unsigned)p->n[TASK_QUEUED];
	queue_list(p, found, NOW_MAX, n);
	add_tasks(&p->aside, NULL, found, n);
}

void task_load(struct tasks *t, struct text project, struct task_load *ret_load,
	       const struct task *const **ret_tasks, unsigned *ret_n)
{
	static const struct task *found[NOW_MAX];
	struct project *p = project.data ? project_find(t, project, false) : NULL;

	*ret_load = (struct task_load) {.parallel = t->parallel};
	*ret_tasks = found;
	*ret_n = 0;
	if (project.data && !p) {
		ret_load->parallel = 0;
		return;
	}
	add_tasks(&t->running, p, found, ret_n);
	add_tasks(&t->elsewhere, p, found, ret_n);
	if (p) {
		add_load(p, ret_load, found, ret_n);
		ret_load->parallel = p->parallel ? p->parallel : t->project_parallel;
		return;
	}
	list_for_each (at, following, &t->projects)
		add_load(list_entry(at, struct project, link), ret_load, found, ret_n);
}

/* ---- renderings ---- */

/* A dialect's rendering of a task, cached as long as the task does not change: watchers request lists again
 * and again, and little changes in between. Slots are few and short. A task's number determines its slot, so
 * that the newest ones, which lists start with, do not evict each other. */
enum { RENDERED_SLOTS = 256, RENDERED_MAX = 4 << 10 };

struct rendered {
	uint64_t version; /* of the task; 0: none */
	const void *by;
	struct buf text;
};

struct buf *task_rendered(struct tasks *t, const struct task *task, const void *by)
{
	const struct live *l = list_entry(task, struct live, task);
	struct rendered *slot;

	if (!t->rendered)
		t->rendered = calloc(RENDERED_SLOTS, sizeof(t->rendered[0]));
	if (!t->rendered)
		return NULL;
	slot = &t->rendered[(uint64_t)task->seq % RENDERED_SLOTS];
	if (slot->version == 0)
		buf_init(&slot->text, RENDERED_MAX);
	if (slot->version != l->version || slot->by != by)
		buf_clear(&slot->text);
	slot->version = l->version;
	slot->by = by;
	return &slot->text;
}

void task_rendered_free(struct tasks *t)
{
	for (unsigned i = 0; t->rendered && i < RENDERED_SLOTS; i++)
		buf_done(&t->rendered[i].text);
	free(t->rendered);
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
