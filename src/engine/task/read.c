/* Reading tasks: from memory, or from the store on a reader's thread. */
#include <errno.h>
#include <stdlib.h>

#include "base/pack.h"
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

int task_find_row(struct connection *db, struct arena *a, struct text project, struct text id,
		  struct task *ret_row, unsigned *ret_n)
{
	bool found = false;
	int r;

	*ret_n = 0;
	if (!project.data)
		return store_task_find_any(db, id, a, ret_row, ret_n);
	r = store_task_find(db, project, id, a, ret_row, &found);
	*ret_n = found;
	return r;
}

static int find(struct tasks *t, int lane, struct arena *a, struct text project, struct text id,
		struct task *ret_row, struct error *error)
{
	unsigned n;
	int r = task_find_row(store_lane(t->store, lane), a, project, id, ret_row, &n);

	return r == 0 && n != 1 ? task_refuse_found(n, id, error) : r;
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
