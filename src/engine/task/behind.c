/*
 * Tasks that come after others. Each open task has the waits for it in a list, and each waiting
 * task knows how many of those it comes after are open. When a task ends, its list moves as a
 * whole to those of its kind of end, and is worked off from there.
 *
 * One that does not complete makes all behind it fail, those behind these, and so on. If the
 * daemon dies meanwhile, the next start finds the rest (recover.c).
 */
#include <stdio.h>

#include "engine/task/inner.h"

void behind_wait(struct live *l, unsigned index, struct live *before)
{
	struct wait *w = &l->waits[index];

	w->waiting = l;
	list_append(&before->behind, &w->link);
	l->n_after_open++;
}

void behind_stop_waiting(struct live *l)
{
	for (unsigned i = 0; i < l->task.after.n; i++)
		list_remove(&l->waits[i].link);
	l->n_after_open = 0;
}

void behind_ended(struct tasks *t, struct live *l)
{
	behind_stop_waiting(l);
	list_splice(&t->behind[l->task.state], &l->behind);
}

void behind_ended_elsewhere(struct tasks *t, struct live *l)
{
	behind_stop_waiting(l);
	list_splice(&t->orphans[l->task.state], &l->behind);
}

void behind_orphan(struct tasks *t, struct live *l, unsigned index, enum task_state state)
{
	struct wait *w = &l->waits[index];

	w->waiting = l;
	/* Without other hosts, only we can fail it. */
	list_append(t->node ? &t->orphans[state] : &t->behind[state], &w->link);
	l->n_after_open++;
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

void behind_skip(struct tasks *t, struct live *l, unsigned index, enum task_state state)
{
	struct text id = l->task.after.items[index];
	char error[BEHIND_WORDS];

	behind_word(id, state, error);
	queue_remove(t, l);
	live_set_text(l, &l->task.skipped, id);
	task_ended(t, l, TASK_FAILED, (struct text) {0}, text_of(error));
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
		behind_skip(t, l, index, state);
		return;
	}
	l->n_after_open--;
	if (state < TASK_COMPLETED)
		behind_wait(l, index, before);
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
