/*
 * Cleans up after the previous daemon: processes of its tasks are killed, tasks that were
 * running fail or are queued again, and tasks that were queued wait again. All of this is done
 * before anybody is served, on the loop's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/process/tree.h"
#include "engine/event/event.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { RECENT_FIRST = 100 };

/* A daemon that dies takes its children with it; what these had started carries our mark. */
void tasks_end_processes(const struct tasks *t)
{
	sweep_all(t->owner);
}

/* Finds the first dependency that did not complete. One that is no longer in the store was completed
 * long ago. */
static int check_after(struct tasks *t, const struct task *row, struct text *ret_id,
		       enum task_state *ret_state)
{
	for (unsigned i = 0; i < row->after.n && !ret_id->data; i++) {
		enum task_state state = TASK_COMPLETED;
		bool found;
		int r = store_task_state(store_writer(t->store), row->project, row->after.items[i],
					 &state, &found);

		if (r != 0)
			return r;
		if (state == TASK_FAILED || state == TASK_CANCELLED)
			*ret_id = row->after.items[i], *ret_state = state;
	}
	return 0;
}

static int settle_queued(struct tasks *t, struct arena *a, struct task *row, bool *ret_failed)
{
	struct store_task_kept kept;
	char error[BEHIND_WORDS];
	enum task_state state = TASK_FAILED;
	int r = check_after(t, row, &row->skipped, &state);

	*ret_failed = row->skipped.data != NULL;
	if (r != 0 || !*ret_failed)
		return r;
	behind_word(row->skipped, state, error);
	row->state = TASK_FAILED;
	row->completed_ms = clock_utc_ms();
	r = arena_copy_text(a, text_of(error), &row->error)
		    ?: store_task_update(store_writer(t->store), row,
					 &(struct store_task_guard) {.version = row->version},
					 &kept);
	/* Another host does so just now. */
	if (r == -ENOENT && t->node)
		return 0;
	return r != 0 ? r : task_event_add(t, "task.failed", row, 0);
}

/* One that fails may be what others come after: most are younger, but some older ones were changed
 * to do so. The direction changes, so that neither needs a look at all for each. */
static int settle_waiting(struct tasks *t, struct arena *a, struct task *rows, unsigned n)
{
	bool again = true;
	int r = 0;

	for (bool back = false; r == 0 && again; back = !back) {
		again = false;
		for (unsigned i = 0; r == 0 && i < n; i++) {
			struct task *row = &rows[back ? n - 1 - i : i];
			bool failed = false;

			if (row->state == TASK_QUEUED)
				r = settle_queued(t, a, row, &failed);
			again = again || failed;
		}
	}
	return r;
}

/* In one transaction. *ret_n_running: how many ran when a koined was killed. */
static int settle_all(struct tasks *t, struct arena *a, struct task **ret_rows, unsigned *ret_n,
		      unsigned *ret_n_running)
{
	struct task *reaped;
	unsigned n = 1;
	int r = 0;

	for (*ret_n_running = 0; r == 0 && n > 0; *ret_n_running += n)
		r = task_reap(t, a, &reaped, &n);
	return r ?: store_task_open(store_writer(t->store), a, ret_rows, ret_n)
		       ?: settle_waiting(t, a, *ret_rows, *ret_n);
}

static int settle(struct tasks *t, struct arena *a, struct task **ret_rows, unsigned *ret_n)
{
	unsigned n_running;
	int r = store_begin(t->store);

	if (r != 0)
		return r;
	r = settle_all(t, a, ret_rows, ret_n, &n_running) ?: events_store(t->events);
	if (r == 0)
		r = events_store(t->events);
	if (r == 0)
		r = store_commit(t->store);
	else
		store_rollback(t->store);
	if (r == 0)
		events_committed(t->events);
	events_dropped(t->events);
	if (r == 0 && n_running > 0)
		log_info("tasks were interrupted by the last stop", "n=%u", n_running);
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

/* How many have ended. Those that are open are counted one by one. */
static int load_counts(struct tasks *t, struct arena *a)
{
	struct task_tally *counts;
	unsigned n;
	int r = store_task_count(store_writer(t->store), a, &counts, &n);

	for (unsigned i = 0; r == 0 && i < n; i++) {
		struct project *p = project_get(t, counts[i].name);

		if (!p)
			return -ENOMEM;
		for (unsigned k = TASK_COMPLETED; k < N_TASK_STATES; k++)
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
		struct live *l =
			p && rows[i].state <= TASK_RUNNING ? live_new(t, p, &rows[i]) : NULL;

		if (!p || (!l && rows[i].state <= TASK_RUNNING))
			return -ENOMEM;
		if (l)
			project_count(p, rows[i].state, 1);
		if (l && rows[i].state == TASK_RUNNING)
			list_append(&t->elsewhere, &l->link);
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
	r = settle(t, &a, &rows, &n);
	if (r == -EBADMSG)
		r = refuse(why, REFUSE_UNAVAILABLE, "%s contains a task that koine did not write",
			   store_path(t->store));
	if (r == 0)
		r = load_all(t, &a, rows, n);
	arena_done(&a);
	return r;
}
