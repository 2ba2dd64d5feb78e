#include "engine/index/wait.h"

#include <errno.h>

#include "base/error.h"
#include "engine/index/inner.h"
#include "store/store.h"

/* ---- on a reader's thread ---- */

int index_wait_check(const struct memory_wait *w, struct error *error)
{
	if (w->result == REFUSE_STOPPING)
		return refuse(error, REFUSE_STOPPING, "koined is stopping");
	if (w->result == REFUSE_CANCELLED)
		return refuse(error, REFUSE_CANCELLED, "cancelled");
	if (w->result == REFUSE_LIMIT && w->crowded)
		return refuse(error, REFUSE_LIMIT,
			      "too many searches are waiting for an index (limit %d)",
			      MEMORY_WAITS_MAX);
	if (w->result == REFUSE_LIMIT)
		return refuse(error, REFUSE_LIMIT,
			      "the memories to search exceed the index limit of %zu bytes",
			      w->builder->indexes->max_bytes);
	return w->result;
}

int index_wait_for(struct memory_wait *w, const struct scope_name *scopes, unsigned n_scopes,
		   const struct store_model *model)
{
	for (unsigned i = 0; i < n_scopes; i++)
		w->scopes[i] = scopes[i];
	w->n_scopes = n_scopes;
	w->model = *model;
	return WORK_WAITS;
}

static int slice_run(struct work *work, int lane)
{
	struct memory_builder *b = list_entry(work, struct memory_builder, slice);
	struct memory_indexes *m = b->indexes;

	return build_slice(m, b->current, store_lane(m->store, lane),
			   memory_indexes_scratch(m, lane), &b->done);
}

static int reap_run(struct work *work, int lane)
{
	struct memory_builder *b = list_entry(work, struct memory_builder, reap);

	indexes_lock(b->indexes);
	indexes_unlock(b->indexes);
	return 0;
}

/* ---- references, on the loop ---- */

static void reap_finished(struct work *work, int result)
{
	list_entry(work, struct memory_builder, reap)->reaping = false;
}

static void unref(struct memory_builder *b, struct held_index *h)
{
	bool dropped;

	indexes_lock(b->indexes);
	index_unref(b->indexes, h);
	dropped = indexes_unlock_soon(b->indexes);
	if (!dropped || b->reaping)
		return;
	b->reaping = true;
	b->reap = (struct work) {.run = reap_run, .finished = reap_finished};
	workers_start(b->indexes->workers, &b->reap, false);
}

static void start_build(struct memory_builder *b, struct held_index *h)
{
	h->building = true;
	h->tried = false;
	list_append(&b->fresh, &h->build);
}

static void end_build(struct memory_builder *b, struct held_index *h)
{
	h->building = false;
	list_remove(&h->build);
	if (h->built)
		build_drop(b->indexes, h);
	unref(b, h);
}

static void drop_claim(struct memory_builder *b, struct memory_claim *claim)
{
	struct held_index *h = claim->held;

	list_remove(&claim->link);
	unref(b, h);
	/* A slice that is under way must come back first. */
	if (h->building && list_empty(&h->claims) && h != b->current)
		end_build(b, h);
}

static void drop_claims(struct memory_wait *w)
{
	while (w->n_claims > 0)
		drop_claim(w->builder, &w->claims[--w->n_claims]);
	w->n_missing = 0;
}

/* ---- the end of waiting ---- */

static void resume(struct memory_wait *w, int result)
{
	list_remove(&w->link);
	w->builder->n_waits--;
	w->result = result;
	if (result != 0)
		drop_claims(w);
	workers_start(w->builder->indexes->workers, w->work, false);
}

static void fail_all(struct held_index *h, int result)
{
	struct list *first;

	while ((first = list_first(&h->claims)))
		resume(list_entry(first, struct memory_claim, link)->wait, result);
}

static void index_wait_settle(struct memory_claim *claim)
{
	list_remove(&claim->link);
	if (--claim->wait->n_missing == 0)
		resume(claim->wait, 0);
}

/* ---- builds ---- */

/* Those who wait for vectors, too, wait on. */
static void built(struct memory_builder *b, struct held_index *h)
{
	struct list *first;

	list_for_each (at, following, &h->claims) {
		struct memory_claim *claim = list_entry(at, struct memory_claim, link);

		if (index_is_ready(h, claim->wait->model.dim))
			index_wait_settle(claim);
	}
	first = list_first(&h->claims);
	if (!first)
		return;
	h->model = list_entry(first, struct memory_claim, link)->wait->model;
	list_remove(&h->build);
	start_build(b, h);
}

static void index_wait_failed(struct memory_builder *b, struct held_index *h, int r)
{
	if (!h->built) {
		indexes_lock(b->indexes);
		index_set_stale(b->indexes, h);
		(void)indexes_unlock_soon(b->indexes);
	}
	fail_all(h, r);
}

/* What it has read would be held until its turn comes; reading it again is cheap. */
static void queue_large(struct memory_builder *b, struct held_index *h)
{
	if (h->tried)
		return;
	h->tried = true;
	if (!list_empty(&b->large))
		build_drop(b->indexes, h);
	list_append(&b->large, &h->build);
}

static void slice_over(struct memory_builder *b, int r)
{
	struct held_index *h = b->current;

	if (r != 0)
		index_wait_failed(b, h, r);
	else if (b->done)
		built(b, h);
	else
		queue_large(b, h);
	b->current = NULL;
	if (list_empty(&h->claims))
		end_build(b, h);
	index_keeping_wake(b->indexes);
}

/* Takes turns, so that users with few memories do not wait for those with many. */
static struct held_index *next_build(struct memory_builder *b)
{
	bool fresh = !list_empty(&b->fresh) && (b->large_was_last || list_empty(&b->large));
	struct list *first = list_first(fresh ? &b->fresh : &b->large);

	if (!first)
		return NULL;
	b->large_was_last = !fresh;
	if (fresh)
		list_remove(first);
	return list_entry(first, struct held_index, build);
}

static void slice_finished(struct work *work, int result);

static void next_slice(struct memory_builder *b)
{
	if (b->current)
		return;
	b->current = next_build(b);
	if (!b->current)
		return;
	b->done = false;
	b->slice = (struct work) {.run = slice_run, .finished = slice_finished};
	workers_start(b->indexes->workers, &b->slice, false);
}

static void slice_finished(struct work *work, int result)
{
	struct memory_builder *b = list_entry(work, struct memory_builder, slice);

	slice_over(b, result);
	/* The threads have stopped: the others cannot be built, either. */
	while (result == -ECANCELED && (b->current = next_build(b)))
		slice_over(b, result);
	next_slice(b);
}

/* ---- waiting ---- */

static int claim(struct memory_wait *w, const struct scope_name *scope)
{
	struct memory_builder *b = w->builder;
	struct memory_indexes *m = b->indexes;
	struct memory_claim *c = &w->claims[w->n_claims];
	struct held_index *h;
	bool ready;

	indexes_lock(m);
	h = index_find(m, scope);
	if (h)
		index_ref(h);
	else
		h = index_new(m, scope);
	ready = h && index_is_ready(h, w->model.dim);
	if (h && !ready && !h->building)
		index_ref(h); /* the build's own */
	(void)indexes_unlock_soon(m);
	if (!h)
		return -ENOMEM;
	*c = (struct memory_claim) {.wait = w, .held = h};
	list_init(&c->link);
	w->n_claims++;
	if (ready)
		return 0;
	list_append(&h->claims, &c->link);
	w->n_missing++;
	if (!h->building) {
		h->model = w->model;
		start_build(b, h);
	}
	return 0;
}

static int claim_all(struct memory_wait *w)
{
	int r = 0;

	if (w->cancelled)
		return REFUSE_CANCELLED;
	if (w->builder->stopping)
		return REFUSE_STOPPING;
	w->crowded = w->builder->n_waits > MEMORY_WAITS_MAX;
	if (w->crowded)
		return REFUSE_LIMIT;
	for (unsigned i = 0; r == 0 && i < w->n_scopes; i++)
		r = claim(w, &w->scopes[i]);
	return r;
}

static void wait_begin(struct work_wait *as, struct work *work)
{
	struct memory_wait *w = list_entry(as, struct memory_wait, as);
	struct memory_builder *b = w->builder;
	int r;

	drop_claims(w);
	w->work = work;
	list_append(&b->waits, &w->link);
	b->n_waits++;
	r = claim_all(w);
	if (r != 0 || w->n_missing == 0)
		resume(w, r);
	next_slice(b);
}

static void wait_cancel(struct work_wait *as)
{
	struct memory_wait *w = list_entry(as, struct memory_wait, as);

	w->cancelled = true;
	if (!list_empty(&w->link))
		resume(w, REFUSE_CANCELLED);
}

static void wait_end(struct work_wait *as)
{
	struct memory_wait *w = list_entry(as, struct memory_wait, as);

	drop_claims(w);
	w->result = 0;
	w->cancelled = false;
}

void index_wait_init(struct memory_wait *w, struct memory_indexes *m)
{
	w->as = (struct work_wait) {.begin = wait_begin, .cancel = wait_cancel, .end = wait_end};
	w->builder = m ? &m->builder : NULL;
	w->work = NULL;
	w->n_claims = w->n_missing = 0;
	w->cancelled = false;
	w->result = 0;
	list_init(&w->link);
}

/* ---- start and end ---- */

void memory_builder_init(struct memory_builder *b, struct memory_indexes *m)
{
	b->indexes = m;
	list_init(&b->waits);
	list_init(&b->fresh);
	list_init(&b->large);
}

void memory_builder_stop(struct memory_builder *b)
{
	struct list *first;

	b->stopping = true;
	while ((first = list_first(&b->waits)))
		resume(list_entry(first, struct memory_wait, link), REFUSE_STOPPING);
}
