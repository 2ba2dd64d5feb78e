/* The changes of records on their way to the store. */
#include <errno.h>

#include "base/log.h"
#include "base/why.h"
#include "engine/record/inner.h"

enum { RETRY_MS = 1000 };

static struct record_change *first_of(const struct record *r)
{
	return list_entry(list_first(&r->changes), struct record_change, link);
}

static void report(struct record_change *c, int outcome)
{
	struct list *first;

	while ((first = list_first(&c->waiters))) {
		struct record_waiter *w = list_entry(first, struct record_waiter, link);

		list_remove(first);
		w->fn(w, outcome);
	}
}

/* Waiters of later changes are called, too: how long the retries take is unknown, and a shutdown cannot wait
 * for them. Changes may be added meanwhile, but none are removed. */
static void fail(struct record *r, int error)
{
	struct records *rs = r->records;

	if (!rs->failing && error != -ECANCELED)
		log_err(rs->opts.changes->failed, "%s=%.*s error=%s", rs->opts.name,
			TEXT_ARGS(rs->opts.changes->id(first_of(r))), fault_words(error));
	rs->failing = true;
	r->untold = false;
	r->error = error;
	if (list_empty(&r->failed_link))
		list_append(&rs->failed, &r->failed_link);
	timer_start(rs->retry, RETRY_MS);
	list_for_each (at, following, &r->changes)
		report(list_entry(at, struct record_change, link), error);
	rs->opts.changes->on_failed(rs->opts.arg);
}

/* On the next pass of the loop. */
static void fail_soon(struct record *r, int error)
{
	r->error = error;
	r->untold = true;
	if (list_empty(&r->failed_link))
		list_append(&r->records->failed, &r->failed_link);
	timer_start(r->records->retry, 0);
}

void record_report(struct record *r)
{
	if (!list_empty(&r->failed_link))
		fail_soon(r, r->error);
}

static int run(struct work *w, int lane)
{
	struct record_change *c = list_entry(w, struct record_change, work);

	(void)lane;
	return c->record->records->opts.changes->write(c);
}

/* Waiters may add changes, which are dropped, too. */
static void drop_all(struct record *r, int outcome)
{
	while (!list_empty(&r->changes)) {
		struct record_change *c = first_of(r);

		list_remove(&c->link);
		r->records->n_changes--;
		report(c, outcome);
		r->records->opts.changes->free(c);
	}
}

static void finished(struct work *w, int result)
{
	struct record_change *c = list_entry(w, struct record_change, work);
	struct record *r = c->record;
	struct records *rs = r->records;
	bool recovered = rs->failing;
	bool lost = result == 0 && rs->opts.changes->took && !rs->opts.changes->took(c);

	if (result != 0 && result != -ENOENT) {
		fail(r, result);
		return;
	}
	rs->failing = false;
	report(c, lost ? REFUSE_CONFLICT : result);
	list_remove(&c->link);
	rs->n_changes--;
	if (lost)
		drop_all(r, REFUSE_CONFLICT);
	record_submit(r);
	if (r->stale && !record_pending(r))
		record_feed_go(rs->feed);
	/* Call it last: it may free the record. */
	rs->opts.changes->stored(c, recovered);
}

static void try(struct record *r)
{
	const struct records_opts *o = &r->records->opts;
	struct record_change *c = first_of(r);
	int e;

	if (o->changes->prepare)
		o->changes->prepare(c);
	c->work = (struct work) {.run = run, .finished = finished};
	e = workers_submit(o->workers, &c->work, true);
	if (e != 0)
		fail_soon(r, e);
}

void record_submit(struct record *r)
{
	struct record_change *c = record_pending(r) ? first_of(r) : NULL;

	if (!c || c->begun || r->n_holds > 0)
		return;
	c->begun = true;
	if (r->records->opts.changes->begin)
		r->records->opts.changes->begin(c);
	try(r);
}

static void on_retry(void *records)
{
	struct records *rs = records;
	struct list failed;
	struct list *first;

	list_init(&failed);
	list_splice(&failed, &rs->failed);
	while ((first = list_first(&failed))) {
		struct record *r = list_entry(first, struct record, failed_link);

		list_remove(first);
		if (r->untold)
			fail(r, r->error);
		else if (r->n_holds == 0)
			try(r);
		else
			list_append(&rs->failed, first);
	}
	if (!list_empty(&rs->failed))
		timer_start(rs->retry, RETRY_MS);
}

void record_hold(struct record *r)
{
	r->n_holds++;
}

void record_release(struct record *r)
{
	if (r->n_holds > 0 && --r->n_holds == 0)
		record_submit(r);
}

struct record_change *record_open_change(struct record *r)
{
	struct record_change *last;

	if (list_empty(&r->changes))
		return NULL;
	last = list_entry(r->changes.prev, struct record_change, link);
	return last->begun ? NULL : last;
}

void record_change_init(struct record_change *c)
{
	list_init(&c->link);
	list_init(&c->waiters);
}

void record_add_change(struct record *r, struct record_change *c)
{
	c->record = r;
	list_append(&r->changes, &c->link);
	r->records->n_changes++;
}

void record_change_wait(struct record_change *c, struct record_waiter *w)
{
	list_append(&c->waiters, &w->link);
}

/* ---- start and end ---- */

void record_init(struct record *r, struct records *rs)
{
	*r = (struct record) {.records = rs};
	list_init(&r->changes);
	list_init(&r->failed_link);
	list_init(&r->read_link);
}

void record_drop(struct record *r)
{
	list_remove(&r->failed_link);
	list_remove(&r->read_link);
	drop_all(r, -ECANCELED);
}

int records_start(struct records *rs, const struct records_opts *opts)
{
	*rs = (struct records) {.opts = *opts};
	list_init(&rs->failed);
	return timer_new(opts->loop, on_retry, rs, &rs->retry)
		       ?: record_feed_new(rs) ?: record_reaper_new(rs);
}

void records_done(struct records *rs)
{
	record_feed_free(rs->feed);
	record_reaper_free(rs->reaper);
	timer_free(rs->retry);
}
