/*
 * Tasks that come after others. Each open task has the waits for it in a list, and each waiting
 * task knows how many of those it comes after are open. When a task ends, its list moves as a
 * whole to those of its kind of end, and is worked off from there.
 *
 * One that does not complete makes all behind it fail, those behind these, and so on. If the
 * daemon dies meanwhile, the next start finds the rest (recover.c).
 */
#include <stdio.h>

#include "base/clock.h"
#include "engine/node/node.h"
#include "engine/task/inner.h"

static void wait_for(struct live *l, unsigned index, struct list *waits)
{
	struct wait *w = &l->waits[index];

	w->waiting = l;
	list_append(waits, &w->link);
	l->n_after_open++;
}

void behind_stop_waiting(struct live *l)
{
	for (unsigned i = 0; i < l->task.after.n; i++)
		list_remove(&l->waits[i].link);
	l->n_after_open = 0;
}

void behind_ended(struct tasks *t, struct live *l, bool elsewhere)
{
	/* Whoever ended it fails those that come after it. */
	bool theirs = elsewhere && l->task.state != TASK_COMPLETED;

	behind_stop_waiting(l);
	list_splice(theirs ? &t->orphans[l->task.state] : &t->behind[l->task.state], &l->behind);
}

void behind_adopt(struct tasks *t)
{
	list_splice(&t->behind[TASK_FAILED], &t->orphans[TASK_FAILED]);
	list_splice(&t->behind[TASK_CANCELLED], &t->orphans[TASK_CANCELLED]);
}

void behind_drop(struct live *l)
{
	struct list *first;

	behind_stop_waiting(l);
	while ((first = list_first(&l->behind)))
		list_remove(first);
}

static struct wait *take_first(struct list *waits)
{
	struct list *first = list_first(waits);

	if (!first)
		return NULL;
	list_remove(first);
	return list_entry(first, struct wait, link);
}

unsigned behind_release(struct tasks *t, unsigned max)
{
	struct wait *w;
	unsigned n = 0;

	while (n < max && (w = take_first(&t->behind[TASK_COMPLETED]))) {
		n++;
		t->n_looked++;
		if (--w->waiting->n_after_open == 0)
			queue_move(t, w->waiting);
	}
	return n;
}

void behind_word(struct text id, enum task_state state, char out[BEHIND_WORDS])
{
	snprintf(out, BEHIND_WORDS, "dependency %.*s %s",
		 (int)(id.len < TASK_NAME_MAX ? id.len : TASK_NAME_MAX), id.data,
		 state == TASK_CANCELLED ? "was cancelled" : "failed");
}

/* The task fails without a run: the dependency with this index ended in that state. */
static void skip(struct tasks *t, struct live *l, unsigned index, enum task_state state)
{
	struct text id = l->task.after.items[index];
	char error[BEHIND_WORDS];

	behind_word(id, state, error);
	queue_remove(t, l);
	live_set_text(l, &l->task.skipped, id);
	task_end(t, l, TASK_FAILED, (struct text) {0}, text_of(error), NULL);
}

/* A dependency that was queued again meanwhile is waited for again, or has even completed. */
static void settle(struct tasks *t, const struct wait *w, enum task_state state)
{
	struct live *l = w->waiting;
	unsigned index = (unsigned)(w - l->waits);
	unsigned n;
	struct live *before = live_find(t, l->project->name, l->task.after.items[index], &n);

	t->n_looked++;
	if (before)
		state = before->task.state;
	if (state > TASK_COMPLETED) {
		skip(t, l, index, state);
		return;
	}
	l->n_after_open--;
	if (state < TASK_COMPLETED)
		wait_for(l, index, &before->behind);
	else if (l->n_after_open == 0)
		queue_move(t, l);
}

bool behind_fail_next(struct tasks *t)
{
	static const enum task_state ends[] = {TASK_FAILED, TASK_CANCELLED};

	/* What fails meanwhile would not be found by it, and stay skipped. */
	if (t->n_retries > 0)
		return false;
	for (unsigned i = 0; i < 2; i++) {
		const struct wait *w = take_first(&t->behind[ends[i]]);

		if (!w)
			continue;
		settle(t, w, ends[i]);
		return true;
	}
	return false;
}

/* ---- a task that is to wait ---- */

/* It does not wait for the one with this index, which did not complete, or is not known here. False: it is in no
 * queue any more. */
static bool stand_aside(struct tasks *t, struct live *l, unsigned index, enum task_state stored,
			enum task_state state, bool elsewhere)
{
	if (stored <= TASK_RUNNING && node_shares(t->node)) {
		/* Another host has added it or queued it again, which has not been heard yet. */
		queue_remove(t, l);
		behind_stop_waiting(l);
		record_stale(&l->record);
		return false;
	}
	if (!elsewhere) {
		skip(t, l, index, state);
		return false;
	}
	wait_for(l, index, &t->orphans[state > TASK_RUNNING ? state : TASK_FAILED]);
	return true;
}

bool behind_wait(struct tasks *t, struct live *l, const enum task_state *states, bool elsewhere)
{
	for (unsigned i = 0; i < l->task.after.n; i++) {
		unsigned n;
		struct live *before = live_find(t, l->project->name, l->task.after.items[i], &n);
		enum task_state stored = states ? states[i] : TASK_COMPLETED;
		enum task_state state = before ? before->task.state : stored;

		if (before && state <= TASK_RUNNING)
			wait_for(l, i, &before->behind);
		else if (state != TASK_COMPLETED && !stand_aside(t, l, i, stored, state, elsewhere))
			return false;
	}
	return true;
}

void task_enter(struct tasks *t, struct live *l, const enum task_state *states, bool elsewhere)
{
	const struct task *row = &l->task;
	int64_t wait = row->not_before_ms - clock_utc_ms();

	/* If the clock was set back, it must not wait longer than intended. */
	if (wait > row->not_before_ms - row->created_ms)
		wait = row->not_before_ms - row->created_ms;
	l->ready_ms = row->not_before_ms > 0 && wait > 0 ? clock_steady_ms() + (uint64_t)wait : 0;
	if (behind_wait(t, l, states, elsewhere))
		queue_add(t, l);
}
