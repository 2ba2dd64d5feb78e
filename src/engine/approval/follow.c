/*
 * Approvals that other hosts ask for and decide. All that wait are at hand on every host, and whoever
 * waits here is told, wherever it was decided.
 *
 * A row may be outdated by the time that it comes to the loop: somebody may have decided it here, whose
 * event is not followed. So an approval that is new at hand is read once more, from when it is there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/pack.h"
#include "engine/approval/inner.h"
#include "engine/event/follow.h"
#include "store/store.h"

enum { LOOKS_MAX = 64, LOOKS_ARENA_MAX = 96 << 20, AGAIN_MS = 500 };

struct found {
	struct text id;
	struct approval row;
	bool there;
};

/* The approvals that are read once more. */
struct approval_looks {
	struct approvals *approvals;
	struct work work;
	struct timer *timer;
	struct arena arena;
	struct found list[LOOKS_MAX];
	unsigned n;
	bool reading;
};

static int read_row(struct approvals *a, int lane, struct arena *arena, struct found *f)
{
	return store_approval_find(store_lane(a->store, lane), f->id, arena, &f->row, &f->there);
}

static void take(struct approvals *a, const struct found *f)
{
	struct pending *p = pending_find(a, f->id);

	if (f->there && f->row.status == APPROVAL_PENDING && !p) {
		p = pending_get(a, &f->row);
		if (p)
			pending_look_again(a, p);
		else
			log_err("could not load approval from another host",
				"approval=%.*s reason=\"%s\"", TEXT_ARGS(f->id), "out of memory");
	} else if (p && (!f->there || f->row.status != APPROVAL_PENDING)) {
		pending_resolved(a, p, f->there ? &f->row : NULL);
	}
}

/* ---- events ---- */

static int read(void *arg, int lane, struct arena *arena, const struct event *e, void **ret_found)
{
	struct found *f = arena_zalloc(arena, sizeof(*f));
	struct value *data = NULL;

	if (!f || value_unpack(arena, e->data, &data) != 0)
		return -ENOMEM;
	f->id = value_text(value_find(data, "id"));
	*ret_found = f;
	return f->id.len > 0 ? read_row(arg, lane, arena, f) : 0;
}

static void apply(void *arg, const struct event *e, void *found)
{
	(void)e;
	take(arg, found);
}

/* ---- looking again ---- */

static int looks_run(struct work *w, int lane)
{
	struct approval_looks *l = list_entry(w, struct approval_looks, work);
	int r = 0;

	for (unsigned i = 0; r == 0 && i < l->n; i++)
		r = read_row(l->approvals, lane, &l->arena, &l->list[i]);
	return r;
}

static void looks_finished(struct work *w, int result)
{
	struct approval_looks *l = list_entry(w, struct approval_looks, work);

	l->reading = false;
	if (result == -ECANCELED)
		return;
	for (unsigned i = 0; result == 0 && i < l->n; i++) {
		struct pending *p = pending_find(l->approvals, l->list[i].id);

		if (p)
			p->unsure = false;
		if (p)
			take(l->approvals, &l->list[i]);
	}
	timer_start(l->timer, result == 0 ? 0 : AGAIN_MS);
}

static int note(struct approval_looks *l, const struct pending *p)
{
	struct found *f = &l->list[l->n];

	*f = (struct found) {0};
	l->n += arena_copy_text(&l->arena, p->id, &f->id) == 0;
	return l->n < LOOKS_MAX;
}

static void on_look(void *looks)
{
	struct approval_looks *l = looks;
	bool room = true;

	if (l->reading)
		return;
	arena_reset(&l->arena);
	l->n = 0;
	list_for_each (at, following, &l->approvals->pending) {
		const struct pending *p = list_entry(at, struct pending, link);

		if (room && p->unsure)
			room = note(l, p);
	}
	if (l->n == 0)
		return;
	l->reading = true;
	l->work = (struct work) {.run = looks_run, .finished = looks_finished};
	background_start(&l->approvals->background, &l->work, false);
}

void pending_look_again(struct approvals *a, struct pending *p)
{
	if (!a->looks)
		return;
	p->unsure = true;
	timer_start(a->looks->timer, 0);
}

/* ---- start and end ---- */

static int looks_new(struct approvals *a)
{
	struct approval_looks *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	l->approvals = a;
	arena_init(&l->arena, LOOKS_ARENA_MAX);
	a->looks = l;
	return timer_new(a->loop, on_look, l, &l->timer);
}

int approvals_follow(struct approvals *a)
{
	static const struct text types[] = {TEXT("approval.*")};
	const struct follower_opts opts = {
		.events = a->events,
		.loop = a->loop,
		.background = a->background,
		.types = types,
		.n_types = 1,
		.read = read,
		.apply = apply,
		.arg = a,
	};
	int r = follower_start(&opts, &a->follower);

	return r == 0 && a->follower ? looks_new(a) : r;
}

void approvals_unfollow(struct approvals *a)
{
	follower_free(a->follower);
	if (!a->looks)
		return;
	timer_free(a->looks->timer);
	arena_done(&a->looks->arena);
	free(a->looks);
}
