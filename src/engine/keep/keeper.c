#include "engine/keep/keeper.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/why.h"

enum { AGAIN_MS = 1000 };

static struct change *first_of(struct changes *all)
{
	return list_entry(list_first(&all->list), struct change, link);
}

static void tell(struct change *c, int result)
{
	struct list *first;

	while ((first = list_first(&c->waiters))) {
		struct change_waiter *w = list_entry(first, struct change_waiter, link);

		list_remove(first);
		w->fn(w, result);
	}
}

/* Tell those who wait for later changes, too: nobody knows how long the retries take, and a
 * shutdown cannot wait for them. Changes may be added meanwhile, but none are removed. */
static void fail(struct change *c, int result)
{
	struct changes *all = c->all;
	struct keeper *k = all->keeper;

	if (!k->failing && result != -ECANCELED)
		log_err(k->opts.failed, "%s=%.*s error=%s", k->opts.name, TEXT_ARGS(k->opts.id(c)),
			fault_words(result));
	k->failing = true;
	all->error = result;
	if (list_empty(&all->failed_link))
		list_append(&k->failed, &all->failed_link);
	timer_start(k->again, AGAIN_MS);
	list_for_each (at, following, &all->list)
		tell(list_entry(at, struct change, link), result);
	k->opts.not_kept(k->opts.arg);
}

static int run(struct work *w, int lane)
{
	struct change *c = list_entry(w, struct change, work);

	(void)lane;
	return c->all->keeper->opts.keep(c);
}

/* Waiters may add changes, which are dropped, too. */
static void drop_all(struct changes *all, int result)
{
	while (!list_empty(&all->list)) {
		struct change *c = first_of(all);

		list_remove(&c->link);
		all->keeper->n_changes--;
		tell(c, result);
		all->keeper->opts.free(c);
	}
}

static void finished(struct work *w, int result)
{
	struct change *c = list_entry(w, struct change, work);
	struct changes *all = c->all;
	struct keeper *k = all->keeper;
	bool recovered = k->failing;
	bool lost = result == 0 && k->opts.took && !k->opts.took(c);

	if (result != 0 && result != -ENOENT) {
		fail(c, result);
		return;
	}
	k->failing = false;
	tell(c, lost ? REFUSE_CONFLICT : result);
	list_remove(&c->link);
	k->n_changes--;
	if (lost)
		drop_all(all, REFUSE_CONFLICT);
	changes_submit(all);
	/* Call it last: it may drop the thing. */
	k->opts.kept(c, recovered);
}

static void try(struct change *c)
{
	const struct keeper *k = c->all->keeper;
	const struct background *b = &k->opts.background;
	int r;

	if (k->opts.prepare)
		k->opts.prepare(c);
	c->work = (struct work) {.run = run, .finished = finished};
	r = b->submit(b->arg, &c->work, true);
	if (r != 0)
		fail(c, r);
}

void changes_submit(struct changes *all)
{
	struct change *c = list_empty(&all->list) ? NULL : first_of(all);

	if (!c || c->begun || all->n_holds > 0)
		return;
	c->begun = true;
	if (all->keeper->opts.begin)
		all->keeper->opts.begin(c);
	try(c);
}

static void on_again(void *keeper)
{
	struct keeper *k = keeper;
	struct list failed;
	struct list *first;

	list_init(&failed);
	list_splice(&failed, &k->failed);
	while ((first = list_first(&failed))) {
		struct changes *all = list_entry(first, struct changes, failed_link);

		list_remove(first);
		if (all->n_holds == 0)
			try(first_of(all));
		else
			list_append(&k->failed, first);
	}
	if (!list_empty(&k->failed))
		timer_start(k->again, AGAIN_MS);
}

void changes_hold(struct changes *all)
{
	all->n_holds++;
}

void changes_release(struct changes *all)
{
	if (all->n_holds > 0 && --all->n_holds == 0)
		changes_submit(all);
}

int keeper_init(struct keeper *k, const struct keeper_opts *opts)
{
	*k = (struct keeper) {.opts = *opts};
	list_init(&k->failed);
	return timer_new(opts->loop, on_again, k, &k->again);
}

void keeper_done(struct keeper *k)
{
	timer_free(k->again);
}

void changes_init(struct changes *all, struct keeper *k)
{
	*all = (struct changes) {.keeper = k};
	list_init(&all->list);
	list_init(&all->failed_link);
}

void changes_drop(struct changes *all)
{
	list_remove(&all->failed_link);
	drop_all(all, -ECANCELED);
}

struct change *changes_open(struct changes *all)
{
	struct change *last;

	if (list_empty(&all->list))
		return NULL;
	last = list_entry(all->list.prev, struct change, link);
	return last->begun ? NULL : last;
}

void change_init(struct change *c)
{
	list_init(&c->link);
	list_init(&c->waiters);
}

void changes_add(struct changes *all, struct change *c)
{
	c->all = all;
	list_append(&all->list, &c->link);
	all->keeper->n_changes++;
}

void change_wait(struct change *c, struct change_waiter *w)
{
	list_append(&c->waiters, &w->link);
}
