/*
 * Cleans up after the previous daemon: processes of its tasks are killed, tasks that were
 * running fail or are queued again, and tasks that were queued wait again. All of this is done
 * before anybody is served, on the loop's thread.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/process/cgroup.h"
#include "io/process/tree.h"
#include "engine/event/event.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { SWEEPS_MAX = 200, SWEEP_PAUSE_MS = 5, RECENT_FIRST = 100 };

static const char restarted[] = "daemon restarted";

/* A daemon that dies takes its children with it; what these had started carries our mark. */
void tasks_end_processes(const struct tasks *t)
{
	const struct timespec pause = {.tv_nsec = SWEEP_PAUSE_MS * 1000000L};

	for (int i = 0; *t->owner && i < SWEEPS_MAX; i++) {
		unsigned n = tree_signal(t->owner, true, SIGKILL) + cgroup_sweep(t->owner);

		if (n == 0)
			return;
		nanosleep(&pause, NULL);
	}
}

/* Decides what becomes of a task that was running. Returns the event that reports it. */
static const char *settle_running(struct task *row)
{
	bool cancel = text_is(row->error, TASK_CANCEL_REQUESTED);

	row->pid = 0;
	row->pid_started = 0;
	if (!cancel && row->attempts < row->max_attempts) {
		row->state = TASK_QUEUED;
		row->not_before_ms = 0;
		return "task.retrying";
	}
	row->completed_ms = clock_utc_ms();
	if (cancel) {
		row->state = TASK_CANCELLED;
		row->error = (struct text) {0};
		return "task.cancelled";
	}
	row->state = TASK_FAILED;
	row->error = TEXT(restarted);
	return "task.failed";
}

/* Whether one of those that it comes after did not complete. One that is no longer in the store
 * was completed long ago. */
static int check_after(struct tasks *t, const struct task *row, bool *ret_failed)
{
	*ret_failed = false;
	for (unsigned i = 0; i < row->after.n; i++) {
		enum task_state state = TASK_COMPLETED;
		bool found;
		int r = store_task_state(store_writer(t->store), row->project, row->after.items[i],
					 &state, &found);

		if (r != 0)
			return r;
		if (state == TASK_FAILED || state == TASK_CANCELLED)
			*ret_failed = true;
	}
	return 0;
}

/* Tasks come by age, so its predecessors are already settled. */
static int settle_queued(struct tasks *t, struct task *row)
{
	bool failed;
	int r = check_after(t, row, &failed);

	if (r != 0 || !failed)
		return r;
	row->state = TASK_FAILED;
	row->completed_ms = clock_utc_ms();
	row->error = TEXT("a task that it comes after did not complete");
	r = store_task_update(store_writer(t->store), row);
	return r != 0 ? r : task_event_add(t, "task.failed", row, 0);
}

static int settle(struct tasks *t, struct task *rows, unsigned n)
{
	struct connection *db = store_writer(t->store);
	unsigned n_settled = 0;
	int r = store_begin(t->store);

	if (r != 0)
		return r;
	for (unsigned i = 0; r == 0 && i < n; i++) {
		const char *event;

		if (rows[i].state != TASK_RUNNING) {
			r = settle_queued(t, &rows[i]);
			continue;
		}
		event = settle_running(&rows[i]);
		n_settled++;
		r = store_task_update(db, &rows[i]) ?: task_event_add(t, event, &rows[i], 0);
	}
	if (r == 0)
		r = store_commit(t->store);
	else
		store_rollback(t->store);
	if (r == 0)
		events_committed(t->events);
	events_dropped(t->events);
	if (r == 0 && n_settled > 0)
		log_info("tasks were running", "n=%u", n_settled);
	return r;
}

/* The newest of one project, including ended ones. */
static int load_recent(struct tasks *t, struct project *p, struct arena *a)
{
	const struct store_task_query q = {
		.project = p->name, .state = -1, .limit = RECENT_FIRST, .max_bytes = 4 << 20};
	struct task *rows;
	unsigned n;
	int r = store_task_list(store_writer(t->store), &q, a, &rows, &n);
	int64_t total = 0;

	if (r != 0)
		return r;
	for (unsigned i = 0; i < n; i++) {
		unsigned known;

		if (live_find(t, p->name, rows[i].id, &known))
			continue;
		if (!live_new(t, p, &rows[i]))
			return -ENOMEM;
	}
	for (unsigned i = 0; i < N_TASK_STATES; i++)
		total += p->n[i];
	if (n > 0 && n < total)
		p->whole_from = rows[n - 1].seq;
	return 0;
}

static int load_counts(struct tasks *t, struct arena *a)
{
	struct task_tally *counts;
	unsigned n;
	int r = store_task_count(store_writer(t->store), a, &counts, &n);

	for (unsigned i = 0; r == 0 && i < n; i++) {
		struct project *p = project_get(t, counts[i].name);

		if (!p)
			return -ENOMEM;
		for (unsigned k = 0; k < N_TASK_STATES; k++)
			project_count(p, (enum task_state)k, counts[i].n[k]);
	}
	return r;
}

/* All that are open are in memory by now; it waits for those of them that it comes after. */
static void queue_row(struct tasks *t, const struct task *row)
{
	int64_t wait = row->not_before_ms - clock_utc_ms();
	unsigned n;
	struct live *l = live_find(t, row->project, row->id, &n);

	/* If the clock was set back, it must not wait longer than intended. */
	if (wait > row->not_before_ms - row->created_ms)
		wait = row->not_before_ms - row->created_ms;
	l->ready_ms = row->not_before_ms > 0 && wait > 0 ? clock_steady_ms() + (uint64_t)wait : 0;
	for (unsigned i = 0; i < row->after.n; i++) {
		struct live *before = live_find(t, row->project, row->after.items[i], &n);

		if (before)
			behind_wait(l, i, before);
	}
	queue_add(t, l);
}

static int load_open(struct tasks *t, const struct task *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct project *p = project_get(t, rows[i].project);

		if (!p || (rows[i].state == TASK_QUEUED && !live_new(t, p, &rows[i])))
			return -ENOMEM;
	}
	for (unsigned i = 0; i < n; i++) {
		if (rows[i].state == TASK_QUEUED)
			queue_row(t, &rows[i]);
	}
	return 0;
}

static int load_all(struct tasks *t, struct arena *a, const struct task *rows, unsigned n)
{
	int r = task_pauses_load(t, a) ?: load_counts(t, a) ?: load_open(t, rows, n);

	list_for_each (at, following, &t->projects) {
		if (r == 0)
			r = load_recent(t, list_entry(at, struct project, link), a);
	}
	return r;
}

int tasks_recover(struct tasks *t, struct why *why)
{
	struct task *rows;
	struct arena a;
	unsigned n;
	int r;

	arena_init(&a, 1UL << 30);
	/* Do this first, whatever the store says of them. */
	tasks_end_processes(t);
	r = store_task_open(store_writer(t->store), &a, &rows, &n);
	if (r == -EBADMSG)
		r = refuse(why, REFUSE_UNAVAILABLE, "%.120s has a task that koine did not write",
			   store_path(t->store));
	if (r == 0)
		r = settle(t, rows, n);
	if (r == 0)
		r = load_all(t, &a, rows, n);
	arena_done(&a);
	return r;
}
