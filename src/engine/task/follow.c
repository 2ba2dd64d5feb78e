/*
 * Keeps the tasks in memory in step with what other hosts do. Each of their events names a task; its
 * row is read, and the task made like it. Rows have versions, so that it does not matter how often
 * or how late that happens.
 *
 * A change of ours that another host has forestalled is lost: then the row is read, too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pack.h"
#include "engine/event/follow.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"
#include "io/process/output_file.h"
#include "store/store.h"
#include "store/task.h"

enum { READ_AT_ONCE = 64, AGAIN_MS = 500, SOON_MS = 20 };

struct rereading {
	struct work work;
	struct tasks *tasks;
	struct timer *again;
	struct arena arena;
	struct found_task found[READ_AT_ONCE];
	unsigned n;
	bool going;
};

/* ---- a row ---- */

static int read_after_states(struct connection *db, struct arena *a, struct found_task *f)
{
	const struct texts *after = &f->row.after;

	f->after_states = arena_zalloc(a, (after->n + 1) * sizeof(f->after_states[0]));
	if (!f->after_states)
		return -ENOMEM;
	for (unsigned i = 0; i < after->n; i++) {
		bool found;
		int r = store_task_state(db, f->project, after->items[i], &f->after_states[i],
					 &found);

		if (r != 0)
			return r;
		/* It is no longer in the store: it was completed long ago. */
		if (!found)
			f->after_states[i] = TASK_COMPLETED;
	}
	return 0;
}

int task_read_row(struct connection *db, struct arena *a, struct found_task *f)
{
	int r = store_task_find(db, f->project, f->id, a, &f->row, &f->found);

	return r != 0 || !f->found ? r : read_after_states(db, a, f);
}

/* ---- memory ---- */

static void forget(struct tasks *t, struct live *l)
{
	struct project *p = l->project;

	queue_remove(t, l);
	project_count(p, l->task.state, -1);
	live_free(l);
}

/* It waits for those that it comes after, unless they are completed. One that did not complete makes
 * it fail: that is for whoever knows of it first, which another host may be. False: one is open, and we
 * have not heard of that yet. */
static bool wait_for_others(struct tasks *t, struct live *l, const struct found_task *f)
{
	for (unsigned i = 0; i < l->task.after.n; i++) {
		unsigned n;
		struct live *before = live_find(t, l->project->name, l->task.after.items[i], &n);
		enum task_state state = before ? before->task.state : f->after_states[i];

		if (state == TASK_COMPLETED)
			continue;
		if (before && state <= TASK_RUNNING)
			behind_wait(l, i, before);
		else if (f->after_states[i] <= TASK_RUNNING && t->node)
			return false;
		else
			behind_orphan(t, l, i, state > TASK_RUNNING ? state : TASK_FAILED);
	}
	return true;
}

void task_read_again(struct tasks *t, struct live *l)
{
	behind_stop_waiting(l);
	if (list_empty(&l->stale_link))
		list_append(&t->stale, &l->stale_link);
	timer_start(t->rereading->again, SOON_MS);
}

static void queue_it(struct tasks *t, struct live *l, const struct found_task *f)
{
	int64_t wait = f->row.not_before_ms - clock_utc_ms();

	l->ready_ms = f->row.not_before_ms > 0 && wait > 0 ? clock_steady_ms() + (uint64_t)wait : 0;
	if (wait_for_others(t, l, f))
		queue_add(t, l);
	else
		task_read_again(t, l);
}

static void end_it(struct tasks *t, struct live *l, const struct task *row)
{
	struct project *p = l->project;

	if (l->task.state == TASK_COMPLETED)
		behind_ended(t, l);
	else
		behind_ended_elsewhere(t, l);
	task_tell_ended(t, l, row);
	project_trim(p);
}

static void run_elsewhere(struct tasks *t, struct live *l)
{
	list_append(&t->elsewhere, &l->link);
	watch_moved(l);
}

/* Our start of it is stored, although the store could not say so then, and so nothing has begun. */
static void give_back(struct tasks *t, struct live *l, const struct found_task *f)
{
	l->former = (struct former) {TASK_RUNNING, l->task.attempts, l->task.epoch};
	l->task.attempts--;
	l->task.started_ms = 0;
	l->task.epoch = 0;
	l->task.host = (struct text) {0};
	live_set_state(l, TASK_QUEUED);
	queue_it(t, l, f);
	task_write(t, l, "task.retrying", NULL);
}

/* Puts it where its state belongs. The rest follows in the next turn of the loop. */
static void place(struct tasks *t, struct live *l, const struct found_task *f)
{
	if (l->task.state == TASK_QUEUED)
		queue_it(t, l, f);
	else if (l->task.state == TASK_RUNNING && l->task.epoch == node_epoch(t->node))
		give_back(t, l, f);
	else if (l->task.state == TASK_RUNNING)
		run_elsewhere(t, l);
	else
		end_it(t, l, &f->row);
	wake_send(t->more);
}

static void take_new(struct tasks *t, const struct found_task *f)
{
	struct project *p = project_get(t, f->project);
	bool known = p && f->row.seq < p->whole_from;
	struct live *l;

	/* It was counted when it ended for the first time; how it did is forgotten. */
	if (known)
		t->recount = true;
	if (known && f->row.state > TASK_RUNNING)
		return;
	l = p ? live_new(t, p, &f->row) : NULL;
	if (!l) {
		log_err("could not load task from another host, restart koined to retry",
			"task=%.*s error=%s", TEXT_ARGS(f->id), strerror(ENOMEM));
		return;
	}
	project_count(p, f->row.state, 1);
	place(t, l, f);
}

static void take(struct tasks *t, struct live *l, const struct found_task *f)
{
	int r;

	queue_remove(t, l);
	list_remove(&l->link);
	list_remove(&l->stale_link);
	behind_stop_waiting(l);
	r = live_take(l, &f->row);
	if (r == 0 && f->row.state == TASK_QUEUED)
		r = live_set_after(l, &f->row.after);
	if (r != 0) {
		list_append(&t->stale, &l->stale_link);
		return;
	}
	if (l->task.state != f->row.state)
		live_set_state(l, f->row.state);
	place(t, l, f);
}

static bool is_our_run(const struct live *l, const struct task *row)
{
	return l->run && row->state == TASK_RUNNING && row->epoch == l->task.epoch &&
	       row->attempts == l->task.attempts;
}

void task_sync(struct tasks *t, const struct found_task *f)
{
	unsigned n;
	struct live *l = live_find(t, f->project, f->id, &n);

	if (!f->found) {
		if (l && !l->run && !changes_pending(&l->changes))
			forget(t, l);
	} else if (!l) {
		take_new(t, f);
	} else if (is_our_run(l, &f->row)) {
		if (!changes_pending(&l->changes))
			l->task.version = f->row.version;
		task_heed_wish(t, l, &f->row, f->row.cancel);
	} else if (changes_pending(&l->changes)) {
		/* They are newer, or will be lost: then it is read again. */
	} else if (f->row.version > l->task.version || !list_empty(&l->stale_link)) {
		if (l->run)
			run_lose(l->run);
		take(t, l, f);
	}
}

/* ---- reading again ---- */

static int reread_run(struct work *w, int lane)
{
	struct rereading *g = list_entry(w, struct rereading, work);
	int r = 0;

	for (unsigned i = 0; i < g->n && r == 0; i++)
		r = task_read_row(store_lane(g->tasks->store, lane), &g->arena, &g->found[i]);
	return r;
}

static void reread(void *rereading);

static void reread_finished(struct work *w, int result)
{
	struct rereading *g = list_entry(w, struct rereading, work);

	for (unsigned i = 0; i < g->n && result == 0; i++)
		task_sync(g->tasks, &g->found[i]);
	arena_reset(&g->arena);
	g->going = false;
	if (result != -ECANCELED && !list_empty(&g->tasks->stale))
		timer_start(g->again, result == 0 ? SOON_MS : AGAIN_MS);
}

static int note_name(struct rereading *g, const struct live *l)
{
	struct found_task *f = &g->found[g->n];

	*f = (struct found_task) {0};
	return arena_copy_text(&g->arena, l->project->name, &f->project)
		       ?: arena_copy_text(&g->arena, l->task.id, &f->id);
}

/* One that has changes on its way is read when they are lost, too. */
static void reread(void *rereading)
{
	struct rereading *g = rereading;
	struct tasks *t = g->tasks;

	if (g->going || list_empty(&t->stale))
		return;
	g->n = 0;
	list_for_each (at, following, &t->stale) {
		if (g->n < READ_AT_ONCE &&
		    note_name(g, list_entry(at, struct live, stale_link)) == 0)
			g->n++;
	}
	g->going = true;
	g->work = (struct work) {.run = reread_run, .finished = reread_finished};
	background_start(&t->background, &g->work, false);
}

void task_lost(struct tasks *t, struct live *l, bool claim)
{
	log_debug(claim ? "another host claimed the task first" : "another host changed the task",
		  "task=%.*s", TEXT_ARGS(l->task.id));
	if (l->run)
		run_lose(l->run);
	queue_remove(t, l);
	if (list_empty(&l->stale_link))
		list_append(&t->stale, &l->stale_link);
	timer_start(t->rereading->again, 0);
}

/* ---- events ---- */

struct heard {
	struct found_task task;
	struct text *pauses;
	unsigned n_pauses;
};

static bool is_pause(const struct event *e)
{
	return text_is(e->type, "task.paused") || text_is(e->type, "task.resumed");
}

static int read_heard(void *arg, int lane, struct arena *a, const struct event *e, void **ret)
{
	struct tasks *t = arg;
	struct connection *db = store_lane(t->store, lane);
	struct heard *h = arena_zalloc(a, sizeof(*h));
	int r = 0;

	if (!h)
		return -ENOMEM;
	h->task.project = e->project.data ? e->project : TEXT("");
	h->task.id = e->run;
	if (is_pause(e))
		r = store_task_pauses(db, a, &h->pauses, &h->n_pauses);
	else if (e->run.data)
		r = task_read_row(db, a, &h->task);
	*ret = h;
	return r;
}

static void forget_number(struct tasks *t, int64_t seq)
{
	char path[4096];

	task_path(t, seq, path, sizeof(path));
	output_file_remove(path);
	list_for_each (at, following, &t->projects) {
		struct sorted_link *ended = list_entry(at, struct project, link)->ended.first;

		for (; ended; ended = ended->next) {
			struct live *l = list_entry(ended, struct live, order);

			if (l->task.seq != seq)
				continue;
			if (!changes_pending(&l->changes))
				forget(t, l);
			return;
		}
	}
	t->recount = true;
}

/* They have been deleted; the event says which. */
static void forget_cleaned(struct tasks *t, const struct event *e)
{
	struct value *data = NULL;
	const struct value *seqs = NULL;
	struct text rest = {0}, word;
	struct arena a;

	arena_init(&a, 1 << 20);
	if (value_unpack(&a, e->data, &data) == 0)
		seqs = value_find(data, "seqs");
	if (seqs && seqs->kind == VALUE_STRING)
		rest = value_text(seqs);
	while (text_next(&rest, ' ', &word)) {
		if (word.len > 0)
			forget_number(t, strtoll(word.data, NULL, 10));
	}
	arena_done(&a);
}

static void apply(void *arg, const struct event *e, void *found)
{
	struct tasks *t = arg;
	const struct heard *h = found;

	if (is_pause(e))
		task_pauses_set(t, h->pauses, h->n_pauses);
	else if (text_is(e->type, "task.cleaned"))
		forget_cleaned(t, e);
	else if (e->run.data)
		task_sync(t, &h->task);
}

/* ---- start and end ---- */

int task_follow_start(struct tasks *t)
{
	static const struct text types[] = {TEXT("task.*")};
	const struct follower_opts opts = {
		.events = t->events,
		.loop = t->loop,
		.background = t->background,
		.types = types,
		.n_types = 1,
		.read = read_heard,
		.apply = apply,
		.n_changes = &t->n_pauses_made,
		.arg = t,
	};

	if (!t->node)
		return 0;
	t->recount = true;
	t->rereading = calloc(1, sizeof(*t->rereading));
	if (!t->rereading)
		return -ENOMEM;
	t->rereading->tasks = t;
	arena_init(&t->rereading->arena, TASK_ARENA_MAX * 2U);
	return timer_new(t->loop, reread, t->rereading, &t->rereading->again)
		       ?: follower_start(&opts, &t->follower);
}

void task_follow_free(struct tasks *t)
{
	follower_free(t->follower);
	if (!t->rereading)
		return;
	timer_free(t->rereading->again);
	arena_done(&t->rereading->arena);
	free(t->rereading);
}
