/*
 * Chooses the next task. Each project has its own queue, ordered by priority and age. A task
 * that waits for a time, for others or for its release is set aside, so that the queue holds
 * only tasks that could start.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "engine/task/inner.h"

static bool goes_before(const struct live *a, const struct live *b)
{
	if (a->task.priority != b->task.priority)
		return a->task.priority > b->task.priority;
	return a->task.seq < b->task.seq;
}

static void put_in_line(struct live *l)
{
	struct list *at = l->project->ready.prev;

	while (at != &l->project->ready && goes_before(l, list_entry(at, struct live, link)))
		at = at->prev;
	/* Insert after `at`, that is, before its successor. */
	list_append(at->next, &l->link);
}

static bool must_wait(const struct live *l)
{
	return l->task.held || l->n_after_open > 0 || l->ready_ms > clock_steady_ms();
}

static void wait_for_time(struct tasks *t)
{
	uint64_t now = clock_steady_ms();
	uint64_t first = UINT64_MAX;

	list_for_each (at, following, &t->projects) {
		struct project *p = list_entry(at, struct project, link);

		list_for_each (task, next, &p->aside) {
			const struct live *l = list_entry(task, struct live, link);

			if (!l->task.held && l->n_after_open == 0 && l->ready_ms < first)
				first = l->ready_ms;
		}
	}
	if (first == UINT64_MAX)
		timer_stop(t->timer);
	else
		timer_start(t->timer, first > now ? first - now : 0);
}

void queue_add(struct tasks *t, struct live *l)
{
	t->n_queued++;
	if (must_wait(l)) {
		list_append(&l->project->aside, &l->link);
		wait_for_time(t);
	} else {
		put_in_line(l);
	}
}

void queue_remove(struct tasks *t, struct live *l)
{
	list_remove(&l->link);
	t->n_queued--;
}

/* Moves those that need not wait any more into the queue. */
static void line_up(struct tasks *t)
{
	list_for_each (at, following, &t->projects) {
		struct project *p = list_entry(at, struct project, link);

		list_for_each (task, next, &p->aside) {
			struct live *l = list_entry(task, struct live, link);

			if (must_wait(l))
				continue;
			list_remove(&l->link);
			put_in_line(l);
		}
	}
}

static unsigned project_limit(const struct tasks *t, const struct project *p)
{
	return p->parallel ? p->parallel : t->project_parallel;
}

/* Storing its start has failed and is being retried: another try would only wait behind that. */
static bool is_unkept(const struct tasks *t, const struct live *l)
{
	return t->keeper.failing && changes_pending(&l->changes);
}

static bool has_room(const struct group *g)
{
	return !g || g->parallel == 0 || g->n_running < g->parallel;
}

/* The first task in the project's queue whose group has room. */
static struct live *first_of(const struct tasks *t, struct project *p)
{
	if (!p->served || p->n_running >= project_limit(t, p))
		return NULL;
	list_for_each (at, following, &p->ready) {
		struct live *l = list_entry(at, struct live, link);

		if (has_room(l->group) && !is_unkept(t, l))
			return l;
	}
	return NULL;
}

static struct live *next_task(struct tasks *t)
{
	struct live *best = NULL;

	list_for_each (at, following, &t->projects) {
		struct live *l = first_of(t, list_entry(at, struct project, link));

		if (l && (!best || goes_before(l, best)))
			best = l;
	}
	return best;
}

void queue_run(struct tasks *t)
{
	struct live *l;

	if (t->stopping)
		return;
	while (t->n_running < t->parallel && (l = next_task(t))) {
		queue_remove(t, l);
		run_start(t, l);
	}
}

void queue_on_time(void *arg)
{
	struct tasks *t = arg;

	line_up(t);
	wait_for_time(t);
	queue_run(t);
}

static bool comes_after(const struct live *l, struct text id)
{
	for (unsigned i = 0; i < l->task.after.n; i++) {
		if (text_equal(l->task.after.items[i], id))
			return true;
	}
	return false;
}

static void fail_with(struct tasks *t, struct live *l, const struct live *before)
{
	char error[TASK_NAME_MAX + 100];

	snprintf(error, sizeof(error), "%.*s, which it comes after, is %s",
		 TEXT_ARGS(before->task.id), task_state_name(before->task.state));
	queue_remove(t, l);
	task_ended(t, l, TASK_FAILED, (struct text) {0}, text_of(error));
}

static struct live *waits_for(struct project *p, struct text id)
{
	list_for_each (at, following, &p->aside) {
		struct live *l = list_entry(at, struct live, link);

		if (l->n_after_open > 0 && comes_after(l, id))
			return l;
	}
	return NULL;
}

void queue_ended(struct tasks *t, const struct live *l)
{
	struct project *p = l->project;
	struct live *waiting;

	/* Each task that fails makes others fail with it, so search from the start each time. */
	if (l->task.state != TASK_COMPLETED) {
		while ((waiting = waits_for(p, l->task.id)))
			fail_with(t, waiting, l);
		return;
	}
	list_for_each (at, following, &p->aside) {
		waiting = list_entry(at, struct live, link);
		if (waiting->n_after_open > 0 && comes_after(waiting, l->task.id))
			waiting->n_after_open--;
	}
	line_up(t);
	wait_for_time(t);
}
