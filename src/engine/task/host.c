/*
 * Which host runs a task. One that was lost runs nothing any more: whoever notices it first queues
 * its tasks again, or ends them, as a restart does with those of a koined that was killed.
 *
 * A host that was taken for lost, or cannot know whether it was, gives up what it runs, and says
 * nothing of it: by then others may run that.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { REAPED_AT_ONCE = 100 };

bool task_is_for_us(const struct tasks *t, const struct task *task)
{
	if (!t->node)
		return true;
	return (!task->on_host.data || node_is_us(t->node, task->on_host)) &&
	       (!task->on_label.data || node_has_label(t->node, task->on_label));
}

/* ---- tasks of nobody ---- */

/* Decides what becomes of it. Returns the event that reports it. */
static const char *settle(const struct tasks *t, struct arena *a, struct task *row)
{
	bool cancel = row->cancel || text_is(row->error, TASK_CANCEL_REQUESTED);
	bool ours = !row->host.data || node_is_us(t->node, row->host);
	char lost[HOST_NAME_MAX_BYTES + 32];

	row->pid = 0;
	row->pid_started = 0;
	if (!cancel && task_tries(row) < row->max_attempts) {
		row->state = TASK_QUEUED;
		row->not_before_ms = 0;
		row->epoch = 0;
		row->host = (struct text) {0};
		return "task.retrying";
	}
	row->completed_ms = clock_utc_ms();
	row->state = cancel ? TASK_CANCELLED : TASK_FAILED;
	row->error = !cancel ? TEXT("daemon restarted") : (struct text) {0};
	if (!cancel && !ours) {
		snprintf(lost, sizeof(lost), "host %.*s was lost", TEXT_ARGS(row->host));
		(void)arena_copy_text(a, text_of(lost), &row->error);
	}
	return cancel ? "task.cancelled" : "task.failed";
}

static int reap_one(struct tasks *t, struct arena *a, struct task *row)
{
	const struct store_task_guard guard = {
		.by = row->state == TASK_RUNNING ? TASK_GUARD_RUN : TASK_GUARD_VERSION,
		.version = row->version,
		.attempts = row->attempts,
		.epoch = row->epoch,
		.host = row->host};
	struct store_task_kept kept;
	const char *event = settle(t, a, row);
	int r = store_task_update(store_writer(t->store), row, &guard, &kept);

	if (r != 0)
		return r;
	row->version = kept.version;
	return task_event_add(t, event, row, 0);
}

int task_reap(struct tasks *t, struct arena *a, struct task **ret_rows, unsigned *ret_n)
{
	int r = store_task_abandoned(store_writer(t->store), REAPED_AT_ONCE, a, ret_rows, ret_n);

	for (unsigned i = 0; i < *ret_n && r == 0; i++)
		r = reap_one(t, a, &(*ret_rows)[i]);
	return r;
}

static int reap(void *tasks, struct record_reaped *ret)
{
	struct task *rows = NULL;
	int r = task_reap(tasks, &ret->arena, &rows, &ret->n);

	ret->rows = rows;
	ret->more = ret->n == REAPED_AT_ONCE;
	return r;
}

static void sync_reaped(struct tasks *t, const struct task *row)
{
	struct task_named f = {.project = row->project, .id = row->id, .row = *row, .found = true};

	/* It had begun, so those that it comes after are completed. */
	f.row.after = (struct texts) {0};
	task_sync(t, &f);
}

static void take_reaped(void *tasks, const struct record_reaped *reaped)
{
	const struct task *rows = reaped->rows;

	for (unsigned i = 0; i < reaped->n; i++)
		sync_reaped(tasks, &rows[i]);
	if (reaped->n > 0)
		log_info("took over tasks of lost hosts", "n=%u", reaped->n);
}

/* ---- how many have ended ---- */

struct recount {
	struct tasks *tasks;
	struct work work;
	struct arena arena;
	struct task_tally *tallies;
	unsigned n_tallies;
	uint64_t at_version;
	bool going;
	bool counted; /* at_version: the counts were right if nothing has changed since */
};

static int count_run(struct work *w, int lane)
{
	struct recount *h = list_entry(w, struct recount, work);

	return store_task_count(store_lane(h->tasks->store, lane), &h->arena, &h->tallies,
				&h->n_tallies);
}

static void set_counts(struct recount *h, struct project *p)
{
	static const struct task_tally none = {0};
	const struct task_tally *tally = &none;

	for (unsigned i = 0; i < h->n_tallies; i++) {
		if (text_equal(h->tallies[i].name, p->name))
			tally = &h->tallies[i];
	}
	for (unsigned k = TASK_COMPLETED; k < N_TASK_STATES; k++)
		project_count(p, (enum task_state)k, tally->n[k] - p->n[k]);
}

/* What other hosts have done may be in the counts before we hear of it, and would be counted twice. So
 * they are right only if nothing has changed until the next time, and are read once more else. */
static void count_finished(struct work *w, int result)
{
	struct recount *h = list_entry(w, struct recount, work);
	struct tasks *t = h->tasks;

	list_for_each (at, following, &t->projects) {
		if (result == 0)
			set_counts(h, list_entry(at, struct project, link));
	}
	h->counted = result == 0;
	arena_reset(&h->arena);
	h->going = false;
}

static void count_again(struct recount *h)
{
	struct tasks *t = h->tasks;

	if (h->going || !t->recount || t->records.n_changes > 0)
		return;
	if (h->counted && t->last_version == h->at_version) {
		t->recount = h->counted = false;
		return;
	}
	h->counted = false;
	h->going = true;
	h->at_version = t->last_version;
	h->work = (struct work) {.run = count_run, .finished = count_finished};
	background_start(&t->background, &h->work, false);
}

/* ---- what the node says ---- */

static void on_fenced(void *tasks)
{
	struct tasks *t = tasks;
	struct list *first;
	unsigned n = 0;

	for (; (first = list_first(&t->running)); n++)
		run_fence(list_entry(first, struct live, link)->run);
	if (n > 0)
		log_warn("running tasks stopped", "n=%u", n);
	tasks_check_stopped(t);
}

/* What a former life ran may not have ended yet, however hard it was killed. */
static void on_joined(void *tasks)
{
	struct tasks *t = tasks;

	tasks_end_processes(t);
	queue_run(t);
}

static void on_others(void *tasks)
{
	struct tasks *t = tasks;

	count_again(t->recounting);
	behind_adopt(t);
	queue_settle(t);
	queue_run(t);
}

const struct record_owner_ops task_owners = {
	.fenced = on_fenced,
	.joined = on_joined,
	.others = on_others,
	.reap = reap,
	.reaped = take_reaped,
};

int task_hosts_start(struct tasks *t)
{
	t->recount = t->node != NULL;
	t->recounting = calloc(1, sizeof(*t->recounting));
	if (!t->recounting)
		return -ENOMEM;
	t->recounting->tasks = t;
	arena_init(&t->recounting->arena, TASK_ARENA_MAX);
	return 0;
}

void task_hosts_free(struct tasks *t)
{
	if (t->recounting)
		arena_done(&t->recounting->arena);
	free(t->recounting);
}

/* ---- cancelling what another host runs ---- */

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

void task_wish_cancel(struct tasks *t, struct live *l, task_done_fn fn, void *arg)
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
		    ?: t->background.submit(t->background.arg, &s->work, true);
	if (r != 0)
		wish_done(s, r, &why);
}
