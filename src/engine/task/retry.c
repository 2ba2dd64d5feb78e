/*
 * Queues a task again that failed or was cancelled, and with it those that were skipped because of it.
 *
 * All of them are changed in one transaction on the writer's thread. Only the store knows how every
 * dependency ended, and whether another host has changed a task. Then the tasks in memory are made like
 * their rows.
 */
#include <errno.h>

#include "base/log.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

enum { LOOKS_AGAIN = 3, SKIPPED_PAGE = 64, CAUSES_MAX = 100 };

/* One task that is queued again. */
struct again {
	struct list link;
	struct task was;
	struct task_named now;
};

struct retry {
	struct request request;
	unsigned room; /* how many more may be queued */
	int64_t queue_size;
	struct list queued; /* each one before those that come after it */
	unsigned n;
	task_retried_fn fn;
};

/* ---- on the writer's thread ---- */

static int find_row(struct retry *q, struct connection *db, struct task *ret_row)
{
	unsigned n;
	int r = store_task_find(db, q->request.project, q->request.id, &q->request.arena, ret_row,
				&n);

	if (r != 0)
		return r;
	if (n != 1)
		return task_refuse(n, q->request.id, &q->request.error);
	if (ret_row->state != TASK_FAILED && ret_row->state != TASK_CANCELLED)
		return refuse(&q->request.error, REFUSE_CONFLICT,
			      "Task %.*s is %s; only failed or cancelled tasks can be retried",
			      TEXT_ARGS(q->request.id), task_state_name(ret_row->state));
	return 0;
}

/* Reads the states of its dependencies; *ret_bad is the index of one that did not complete, or their
 * number. One that was forgotten had completed, unless the task was skipped because of it. */
static int look_before(struct retry *q, struct connection *db, struct again *a, unsigned *ret_bad)
{
	const struct texts *after = &a->was.after;
	enum task_state *states =
		arena_zalloc(&q->request.arena, (after->n + 1) * sizeof(states[0]));

	if (!states)
		return -ENOMEM;
	*ret_bad = after->n;
	for (unsigned i = 0; i < after->n; i++) {
		bool found;
		int r = store_task_state(db, a->was.project, after->items[i], &states[i], &found);

		if (r != 0)
			return r;
		if (!found)
			states[i] = text_equal(after->items[i], a->was.skipped) ? TASK_FAILED
										: TASK_COMPLETED;
		if (*ret_bad == after->n && states[i] > TASK_COMPLETED)
			*ret_bad = i;
	}
	a->now.after_states = states;
	return 0;
}

static void set_queued(struct task *row)
{
	row->state = TASK_QUEUED;
	row->started_ms = 0;
	row->completed_ms = 0;
	row->attempts = 0;
	row->stops = 0;
	row->exit_status = -1;
	row->signal = 0;
	row->pid = 0;
	row->pid_started = 0;
	row->epoch = 0;
	row->host = (struct text) {0};
	row->error = (struct text) {0};
	row->result = (struct text) {0};
	row->skipped = (struct text) {0};
}

/* The row of a task with long texts has no prompt, but the event shows the beginning of it. */
static int add_event(struct retry *q, struct connection *db, const struct again *a)
{
	int64_t queue_size = q->queue_size + q->n;
	struct task whole = a->now.row;
	struct arena arena;
	unsigned n;
	int r = 0;

	arena_init(&arena, TASK_ARENA_MAX);
	if (!whole.prompt.data)
		r = store_task_find(db, whole.project, whole.id, &arena, &whole, &n);
	if (r == 0)
		r = task_event_add(q->request.tasks, "task.queued", &whole, queue_size,
				   (struct text) {0});
	arena_done(&arena);
	return r;
}

/* -ENOENT: another host has changed it. */
static int queue_row(struct retry *q, struct connection *db, struct again *a)
{
	struct store_task_kept kept;
	struct task *row = &a->now.row;
	int r;

	*row = a->was;
	set_queued(row);
	/* The retry is of the first: the others wait for their time or their user as before. */
	if (q->n == 0) {
		row->not_before_ms = 0;
		row->stashed = false;
	}
	r = store_task_update(db, row, &(struct store_task_guard) {.version = row->version}, &kept);
	if (r != 0)
		return r;
	row->version = kept.version;
	a->now.project = row->project;
	a->now.id = row->id;
	a->now.found = true;
	list_append(&q->queued, &a->link);
	q->n++;
	return add_event(q, db, a);
}

static int refuse_full(struct retry *q)
{
	const struct tasks *t = q->request.tasks;

	return refuse(&q->request.error, REFUSE_LIMIT,
		      "Queue full: cannot requeue %.*s and its skipped dependents (limit %u)",
		      TEXT_ARGS(q->request.id), t->queue);
}

/* Queues it again, unless another dependency did not complete. */
static int queue_one(struct retry *q, struct connection *db, const struct task *row)
{
	struct again *a = arena_zalloc(&q->request.arena, sizeof(*a));
	unsigned bad;
	int r;

	if (!a)
		return -ENOMEM;
	list_init(&a->link);
	a->was = *row;
	r = look_before(q, db, a, &bad);
	if (r != 0 || bad < a->was.after.n)
		return r;
	if (q->n >= q->room)
		return refuse_full(q);
	r = queue_row(q, db, a);
	/* Another host has just done so. */
	return r == -ENOENT ? 0 : r;
}

/* Queues the tasks that were skipped because of this one. */
static int queue_skipped(struct retry *q, struct connection *db, const struct again *first)
{
	unsigned n = SKIPPED_PAGE;
	int64_t after_seq = 0;
	int r = 0;

	while (r == 0 && n == SKIPPED_PAGE) {
		const struct arena_mark mark = arena_mark(&q->request.arena);
		unsigned n_before = q->n;
		struct task *rows;

		r = store_task_skipped(db, first->was.project, first->was.id, after_seq,
				       SKIPPED_PAGE, &q->request.arena, &rows, &n);
		for (unsigned i = 0; r == 0 && i < n; i++) {
			after_seq = rows[i].seq;
			r = queue_one(q, db, &rows[i]);
		}
		/* Nothing points to a page of which no task is queued. */
		if (r == 0 && q->n == n_before)
			arena_rewind(&q->request.arena, &mark);
	}
	return r;
}

/* *ret_cause: the task because of which this one was skipped, if it may be retried; {NULL, 0} if there is none. */
static int find_cause(struct retry *q, struct connection *db, struct text project, struct text id,
		      struct text *ret_cause, bool *ret_found)
{
	enum task_state state = TASK_FAILED;
	struct task row = {.skipped = {0}};
	struct arena arena;
	bool there;
	unsigned n = 0;
	int r;

	*ret_cause = (struct text) {0};
	arena_init(&arena, TASK_ARENA_MAX);
	r = store_task_find(db, project, id, &arena, &row, &n);
	*ret_found = n == 1;
	if (r == 0 && row.skipped.data)
		r = store_task_state(db, project, row.skipped, &state, &there);
	if (r == 0 && state > TASK_COMPLETED)
		r = arena_copy_text(&q->request.arena, row.skipped, ret_cause);
	arena_done(&arena);
	return r;
}

/* The dependency may have been skipped because of another, and so on: names the one to begin with. */
static int refuse_behind(struct retry *q, struct connection *db, const struct again *a,
			 unsigned bad)
{
	struct text cause = a->was.after.items[bad], id = cause;
	char error[SKIP_WORDS_MAX];
	bool found = true;
	int r = 0;

	task_skip_words(cause, a->now.after_states[bad], error);
	for (unsigned i = 0; r == 0 && found && cause.data && i < CAUSES_MAX; i++) {
		id = cause;
		r = find_cause(q, db, a->was.project, id, &cause, &found);
	}
	if (r != 0)
		return r;
	if (!found)
		return refuse(&q->request.error, REFUSE_CONFLICT,
			      "Task %.*s cannot run: %s, and %.*s was deleted",
			      TEXT_ARGS(q->request.id), error, TEXT_ARGS(id));
	return refuse(&q->request.error, REFUSE_CONFLICT,
		      "Task %.*s cannot run: %s; retry %.*s first", TEXT_ARGS(q->request.id), error,
		      TEXT_ARGS(id));
}

static int queue_first(struct retry *q, struct connection *db)
{
	struct again *a = arena_zalloc(&q->request.arena, sizeof(*a));
	unsigned bad = 0;
	int r = a ? find_row(q, db, &a->was) : -ENOMEM;

	if (r != 0)
		return r;
	list_init(&a->link);
	r = look_before(q, db, a, &bad);
	if (r != 0)
		return r;
	return bad == a->was.after.n ? queue_row(q, db, a) : refuse_behind(q, db, a, bad);
}

static int retry_run(struct work *w, int lane)
{
	struct retry *q = list_entry(w, struct retry, request.work);
	struct connection *db = store_writer(q->request.tasks->store);
	int r = -ENOENT;

	list_init(&q->queued);
	q->n = 0;
	for (unsigned i = 0; i < LOOKS_AGAIN && r == -ENOENT; i++)
		r = queue_first(q, db);
	if (r == -ENOENT)
		return task_refuse(1, q->request.id, &q->request.error);
	for (struct list *at = q->queued.next; r == 0 && at != &q->queued; at = at->next)
		r = queue_skipped(q, db, list_entry(at, struct again, link));
	return r;
}

/* ---- on the loop ---- */

static void task_retry_take(struct tasks *t, const struct again *a)
{
	struct project *p = project_find(t, a->was.project, true);
	unsigned n;
	struct live *l = p ? live_find(t, p->name, a->was.id, &n) : NULL;

	if (p && !l)
		l = live_new(t, p, &a->was);
	if (l)
		task_sync(t, &a->now);
	else
		log_err("out of memory, task stays queued until the next start", "task=%.*s",
			TEXT_ARGS(a->was.id));
}

static void retry_finished(struct work *w, int result)
{
	struct retry *q = list_entry(w, struct retry, request.work);
	struct tasks *t = q->request.tasks;

	struct text *ids = arena_alloc(&q->request.arena, (q->n + 1) * sizeof(ids[0]));
	unsigned n = 0;

	t->n_coming--;
	t->n_retries--;
	wake_send(t->more);
	if (result == 0) {
		list_for_each (at, following, &q->queued) {
			const struct again *a = list_entry(at, struct again, link);

			task_retry_take(t, a);
			if (ids)
				ids[n++] = a->was.id;
		}
	}
	q->fn(q->request.arg, result, ids, n, &q->request.error);
	request_free(q);
}

static int task_retry_submit(struct retry *q)
{
	struct tasks *t = q->request.tasks;
	int r = task_check_room(t, &q->request.error);

	if (r != 0)
		return r;
	q->room = t->queue - t->n_queued - t->n_coming;
	r = workers_submit(t->workers, &q->request.work, true);
	if (r == 0)
		t->n_coming++, t->n_retries++;
	return r;
}

/* The end that the client has seen is stored now, unless another host has changed the task. */
static void on_end_kept(struct record_waiter *w, int result)
{
	struct retry *q = list_entry(w, struct retry, request.waiter);
	bool known = result == 0 || result == -ENOENT || result == REFUSE_CONFLICT;
	int r = known ? task_retry_submit(q) : result;

	if (r == 0)
		return;
	/* Tasks are being freed: the call is gone. */
	if (r != -ECANCELED)
		q->fn(q->request.arg, r, NULL, 0, &q->request.error);
	request_free(q);
}

/* The end of a task is in memory before it is in the store, which would refuse to retry the task. */
static int submit_when_kept(struct retry *q, const struct live *l)
{
	if (!l || l->task.state <= TASK_COMPLETED || !record_pending(&l->record))
		return task_retry_submit(q);
	q->request.waiter.fn = on_end_kept;
	record_change_wait(list_entry(l->record.changes.prev, struct record_change, link),
			   &q->request.waiter);
	return 0;
}

int task_retry(struct tasks *t, struct text project, struct text id, task_retried_fn fn, void *arg,
	       struct error *error)
{
	unsigned n;
	const struct live *l = live_find(t, project, id, &n);
	struct retry *q = request_new(t, sizeof(*q), project, id, retry_run, retry_finished);
	int r;

	if (!q)
		return -ENOMEM;
	q->queue_size = l && n == 1 ? l->project->n[TASK_QUEUED] : t->n_queued;
	q->fn = fn;
	q->request.arg = arg;
	q->request.arena.max = TASK_ARENA_MAX * 2U;
	r = submit_when_kept(q, n == 1 ? l : NULL);
	if (r == 0)
		return 0;
	*error = q->request.error;
	request_free(q);
	return r;
}
