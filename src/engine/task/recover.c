/*
 * Tasks that run nowhere although their rows are marked as running. A host that was lost runs nothing: the host that
 * notices it
 * first queues its tasks again, or ends them. A start does the same with those of a koined that was killed,
 * before any call is served: it kills their processes, and tasks that were queued wait again.
 *
 * A host that was taken for lost, or cannot know whether it was, gives up what it runs, and writes nothing
 * of it: by then others may run that.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/process/tree.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { REAPED_AT_ONCE = 100, RECENT_FIRST = 100 };

/* ---- abandoned tasks ---- */

/* Decides what becomes of it. Returns the event that reports it. */
static const char *settle_abandoned(const struct tasks *t, struct arena *a, struct task *row)
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
		snprintf(lost, sizeof(lost), "host %.*s was declared dead", TEXT_ARGS(row->host));
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
	const char *event = settle_abandoned(t, a, row);
	int r = store_task_update(store_writer(t->store), row, &guard, &kept);

	if (r != 0)
		return r;
	row->version = kept.version;
	return task_event_add(t, event, row, 0, (struct text) {0});
}

static int reap_some(struct tasks *t, struct arena *a, struct task **ret_rows, unsigned *ret_n)
{
	int r = store_task_abandoned(store_writer(t->store), REAPED_AT_ONCE, a, ret_rows, ret_n);

	for (unsigned i = 0; i < *ret_n && r == 0; i++)
		r = reap_one(t, a, &(*ret_rows)[i]);
	return r;
}

/* ---- at a start ---- */

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
	char error[SKIP_WORDS_MAX];
	enum task_state state = TASK_FAILED;
	int r = check_after(t, row, &row->skipped, &state);

	*ret_failed = row->skipped.data != NULL;
	if (r != 0 || !*ret_failed)
		return r;
	task_skip_words(row->skipped, state, error);
	row->state = TASK_FAILED;
	row->completed_ms = clock_utc_ms();
	r = arena_copy_text(a, text_of(error), &row->error)
		    ?: store_task_update(store_writer(t->store), row,
					 &(struct store_task_guard) {.version = row->version},
					 &kept);
	/* Another host does so just now. */
	if (r == -ENOENT)
		return 0;
	return r ?: task_event_add(t, "task.failed", row, 0, (struct text) {0});
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

/* What a start finds. */
struct task_recover_found_open {
	struct tasks *tasks;
	struct arena arena;
	struct task *rows;
	unsigned n, n_running; /* how many ran when a koined was killed */
};

static int task_recover_settle(void *arg)
{
	struct task_recover_found_open *f = arg;
	struct tasks *t = f->tasks;
	struct task *reaped;
	unsigned n = 1;
	int r = 0;

	arena_reset(&f->arena);
	for (f->n_running = 0; r == 0 && n > 0; f->n_running += n)
		r = reap_some(t, &f->arena, &reaped, &n);
	return r ?: store_task_open(store_writer(t->store), &f->arena, &f->rows, &f->n)
		       ?: settle_waiting(t, &f->arena, f->rows, f->n);
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
		struct project *p = project_find(t, counts[i].name, true);

		if (!p)
			return -ENOMEM;
		for (unsigned k = TASK_COMPLETED; k < N_TASK_STATES; k++)
			project_count(p, (enum task_state)k, counts[i].n[k]);
	}
	return r;
}

static int load_open(struct tasks *t, const struct task *rows, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct project *p = project_find(t, rows[i].project, true);
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
		unsigned known;

		/* All that are open are in memory by now. */
		if (rows[i].state == TASK_QUEUED)
			queue_enter(t, live_find(t, rows[i].project, rows[i].id, &known), NULL,
				    false);
	}
	return 0;
}

static int load_pauses(struct tasks *t, struct arena *a)
{
	struct text *groups;
	unsigned n;
	int r = store_task_pauses(store_writer(t->store), a, &groups, &n);

	return r ?: task_pauses_set(t, groups, n);
}

static int load_all(struct tasks *t, struct arena *a, const struct task *rows, unsigned n)
{
	int r = load_pauses(t, a) ?: load_counts(t, a) ?: load_open(t, rows, n);

	list_for_each (at, following, &t->projects) {
		if (r == 0)
			r = load_recent(t, list_entry(at, struct project, link), a);
	}
	return r;
}

int tasks_recover(struct tasks *t, struct error *error)
{
	struct task_recover_found_open f = {.tasks = t};
	int r;

	arena_init(&f.arena, 1UL << 30);
	/* Do this first, whatever their rows are. */
	sweep_all(t->owner);
	r = records_settle(t->store, t->events, task_recover_settle, &f);
	if (r == -EBADMSG)
		r = refuse(error, REFUSE_UNAVAILABLE, "%s contains an invalid task row",
			   store_path(t->store));
	if (r == 0 && f.n_running > 0)
		log_info("previous shutdown interrupted tasks", "n=%u", f.n_running);
	if (r == 0)
		r = load_all(t, &f.arena, f.rows, f.n);
	arena_done(&f.arena);
	return r;
}

/* ---- later ---- */

static int task_recover_reap(void *tasks, struct record_reaped *ret)
{
	struct task *rows = NULL;
	int r = reap_some(tasks, &ret->arena, &rows, &ret->n);

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
		log_info("took over tasks of dead hosts", "n=%u", reaped->n);
}

/* ---- how many have ended ---- */

static int count_run(struct work *w, int lane)
{
	struct recount *c = list_entry(w, struct recount, work);
	const struct tasks *t = list_entry(c, struct tasks, recount);

	return store_task_count(store_lane(t->store, lane), &c->arena, &c->tallies, &c->n_tallies);
}

static void set_counts(const struct recount *c, struct project *p)
{
	static const struct task_tally none = {0};
	const struct task_tally *tally = &none;

	for (unsigned i = 0; i < c->n_tallies; i++) {
		if (text_equal(c->tallies[i].name, p->name))
			tally = &c->tallies[i];
	}
	for (unsigned k = TASK_COMPLETED; k < N_TASK_STATES; k++)
		project_count(p, (enum task_state)k, tally->n[k] - p->n[k]);
}

static void count_finished(struct work *w, int result)
{
	struct recount *c = list_entry(w, struct recount, work);
	struct tasks *t = list_entry(c, struct tasks, recount);

	list_for_each (at, following, &t->projects) {
		if (result == 0)
			set_counts(c, list_entry(at, struct project, link));
	}
	c->counted = result == 0;
	arena_done(&c->arena);
	c->going = false;
}

/* What other hosts have done may be in the counts before it is heard here, and would be counted twice. So
 * they are right only if nothing has changed until the next time, and are read once more else. */
static void count_again(struct tasks *t)
{
	struct recount *c = &t->recount;

	if (c->going || !c->wanted || t->records.n_changes > 0)
		return;
	if (c->counted && t->last_version == c->at_version) {
		c->wanted = c->counted = false;
		return;
	}
	c->counted = false;
	c->going = true;
	c->at_version = t->last_version;
	arena_init(&c->arena, TASK_ARENA_MAX);
	c->work = (struct work) {.run = count_run, .finished = count_finished};
	workers_start(t->workers, &c->work, false);
}

/* ---- events of the node ---- */

static void on_fenced(void *tasks)
{
	struct tasks *t = tasks;
	unsigned n = 0;

	list_for_each (at, following, &t->running) {
		struct run *r = list_entry(at, struct live, link)->run;

		/* One that has not begun is queued again, unless another host has it. */
		if (r->begins.fn)
			run_end_with(r, INTENT_STOP);
		else
			run_lose(r);
		n++;
	}
	if (n > 0)
		log_warn("stopped running tasks", "n=%u", n);
	wake_send(t->more);
}

/* What a former life ran may not have ended yet, however hard it was killed. */
static void on_joined(void *tasks)
{
	struct tasks *t = tasks;

	sweep_all(t->owner);
	queue_run(t);
}

static void on_others(void *tasks)
{
	struct tasks *t = tasks;

	count_again(t);
	/* No other host has failed them meanwhile: this one does. */
	list_splice(&t->dependents[TASK_FAILED], &t->orphans[TASK_FAILED]);
	list_splice(&t->dependents[TASK_CANCELLED], &t->orphans[TASK_CANCELLED]);
	wake_send(t->more);
}

const struct record_owner_ops task_owners = {
	.fenced = on_fenced,
	.joined = on_joined,
	.others = on_others,
	.reap = task_recover_reap,
	.reaped = take_reaped,
};
