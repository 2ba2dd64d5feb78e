/*
 * What their user keeps back: a single task (stashed), those of a group, or all of them (paused).
 * They stay queued. A pause says only what may start: it does not touch what is running, since a
 * program that is stopped would neither see its time limit nor a request to end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/event/event.h"
#include "engine/task/inner.h"
#include "store/store.h"
#include "store/task.h"

/* ---- a single one ---- */

static int check_queued(const struct live *l, struct why *why)
{
	if (l->task.state == TASK_QUEUED)
		return 0;
	return refuse(why, REFUSE_CONFLICT,
		      "Task %.*s is %s; only queued tasks can be stashed or enqueued",
		      TEXT_ARGS(l->task.id), task_state_name(l->task.state));
}

static int check_stashed(const struct live *l, bool wanted, struct why *why)
{
	int r = check_queued(l, why);

	if (r != 0 || l->task.stashed == wanted)
		return r;
	return refuse(why, REFUSE_CONFLICT, "Task %.*s is %s", TEXT_ARGS(l->task.id),
		      wanted ? "not stashed" : "already stashed");
}

static void move(struct tasks *t, struct live *l, bool stashed, struct task_change *c)
{
	l->task.stashed = stashed;
	queue_move(t, l);
	task_write(t, l, stashed ? "task.stashed" : "task.enqueued", c);
	queue_run(t);
}

void task_stash(struct tasks *t, struct text project, struct text id, task_done_fn fn, void *arg)
{
	struct live *l = task_find_open(t, project, id, fn, arg);
	struct task_change *c = NULL;
	struct why why = {0};
	int r;

	if (!l)
		return;
	r = check_stashed(l, false, &why);
	if (r == 0)
		c = task_change_new(fn, arg);
	if (c)
		move(t, l, true, c);
	else
		fn(arg, r != 0 ? r : -ENOMEM, &why);
}

static void set_delay(struct live *l, int64_t delay_ms)
{
	l->task.not_before_ms = clock_utc_ms() + delay_ms;
	l->ready_ms = clock_steady_ms() + (uint64_t)delay_ms;
}

void task_enqueue(struct tasks *t, struct text project, struct text id, int64_t delay_ms,
		  task_done_fn fn, void *arg)
{
	struct why why = {0};
	struct task_change *c = NULL;
	struct live *l;
	int r = task_check_delay(delay_ms, &why);

	if (r != 0) {
		fn(arg, r, &why);
		return;
	}
	l = task_find_open(t, project, id, fn, arg);
	if (!l)
		return;
	r = check_stashed(l, true, &why);
	if (r == 0)
		c = task_change_new(fn, arg);
	if (!c) {
		fn(arg, r != 0 ? r : -ENOMEM, &why);
		return;
	}
	if (delay_ms > 0)
		set_delay(l, delay_ms);
	move(t, l, false, c);
}

/* ---- a group, or all ---- */

bool tasks_paused(const struct tasks *t)
{
	return t && t->paused;
}

bool task_group_is_paused(const struct tasks *t, struct text group)
{
	const struct group *g = group_find(t, group);

	return g && g->paused;
}

void tasks_each_paused(struct tasks *t, void (*fn)(void *arg, struct text group), void *arg)
{
	if (!t)
		return;
	list_for_each (at, following, &t->groups) {
		const struct group *g = list_entry(at, struct group, link);

		if (g->paused)
			fn(arg, text_of(g->name));
	}
}

/* Its members have another place in the queue from now on. */
static void set_group(struct tasks *t, struct group *g, bool paused)
{
	if (g->paused == paused)
		return;
	g->paused = paused;
	t->n_paused += paused ? 1 : -1U;
	list_for_each (at, following, &g->members)
		queue_move(t, list_entry(at, struct live, group_link));
	group_drop(t, g);
}

struct pause {
	struct request request;
	struct text group; /* {NULL, 0}: all */
	bool paused;
	bool changes; /* it was not so before */
};

static int tell(const struct pause *p)
{
	struct event_new e = {.type = p->paused ? "task.paused" : "task.resumed"};
	struct event_data d;

	event_data_begin(&d);
	packer_text(&d.members, "group", p->group);
	return event_add_data(p->request.tasks->events, &e, &d);
}

static int pause_run(struct work *w, int lane)
{
	struct pause *p = list_entry(w, struct pause, request.work);
	struct connection *db = store_writer(p->request.tasks->store);
	int r;

	(void)lane;
	r = p->paused ? store_task_pause(db, p->group, clock_utc_ms(), &p->changes)
		      : store_task_resume(db, p->group, &p->changes);
	return r == 0 && p->changes ? tell(p) : r;
}

static int apply(const struct pause *p)
{
	struct tasks *t = p->request.tasks;
	struct group *g;

	if (!p->group.data) {
		t->paused = p->paused;
		return 0;
	}
	g = p->paused ? group_get(t, p->group) : group_find(t, p->group);
	if (g)
		set_group(t, g, p->paused);
	return g || !p->paused ? 0 : -ENOMEM;
}

static void pause_finished(struct work *w, int result)
{
	struct pause *p = list_entry(w, struct pause, request.work);
	struct tasks *t = p->request.tasks;

	if (result == 0)
		result = apply(p);
	records_touch(&t->records);
	request_done(&p->request, result);
	queue_run(t);
}

static int check_pause(const struct tasks *t, struct text group, bool paused, struct why *why)
{
	if (t->stopping)
		return refuse(why, REFUSE_STOPPING, "koined is stopping");
	if (!group.data)
		return 0;
	if (group.len == 0 || group.len > TASK_NAME_MAX || memchr(group.data, '\0', group.len))
		return refuse_field(why, "group", "group must have 1 to %d bytes, and no NUL byte",
				    TASK_NAME_MAX);
	if (paused && t->n_paused >= TASK_PAUSES_MAX)
		return refuse(why, REFUSE_LIMIT, "too many paused groups (limit %d)",
			      TASK_PAUSES_MAX);
	return 0;
}

/* In the order of the calls: the writer takes them, and the loop applies them, in that order. */
static int pause_submit(struct tasks *t, struct text group, bool paused, task_done_fn fn, void *arg)
{
	struct pause *p = request_new(t, sizeof(*p), pause_run, pause_finished);
	int r;

	if (!p)
		return -ENOMEM;
	p->paused = paused;
	p->request.fn = fn;
	p->request.arg = arg;
	r = arena_copy_text(&p->request.arena, group, &p->group)
		    ?: workers_submit(t->workers, &p->request.work, true);
	if (r != 0)
		request_free(p);
	return r;
}

static void set_pause(struct tasks *t, struct text group, bool paused, task_done_fn fn, void *arg)
{
	struct why why = {0};
	int r = check_pause(t, group, paused, &why);

	if (r == 0)
		r = pause_submit(t, group, paused, fn, arg);
	if (r != 0)
		fn(arg, r, &why);
}

void task_pause(struct tasks *t, struct text group, task_done_fn fn, void *arg)
{
	set_pause(t, group, true, fn, arg);
}

void task_resume(struct tasks *t, struct text group, task_done_fn fn, void *arg)
{
	set_pause(t, group, false, fn, arg);
}

static bool is_among(const struct text *groups, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++) {
		if (text_is(groups[i], name))
			return true;
	}
	return false;
}

void task_pauses_set(struct tasks *t, const struct text *groups, unsigned n)
{
	t->paused = is_among(groups, n, "");
	for (unsigned i = 0; i < n; i++) {
		struct group *g = groups[i].len > 0 ? group_get(t, groups[i]) : NULL;

		if (g)
			set_group(t, g, true);
	}
	list_for_each (at, following, &t->groups) {
		struct group *g = list_entry(at, struct group, link);

		if (g->paused && !is_among(groups, n, g->name))
			set_group(t, g, false);
	}
	wake_send(t->more);
}
