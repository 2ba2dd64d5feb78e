/* Live records: their keys are read, their changes written, and what an ended epoch owned is settled. */
#include "engine/record/record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pack.h"
#include "base/error.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "store/store.h"

enum {
	RETRY_MS = 1000, /* of a change that failed */
	REAPED_ARENA_MAX = 1 << 30,
	READ_MAX = 256,   /* keys at once */
	WANTS_MAX = 1024, /* then events wait */
	ROWS_ARENA_MAX = 64 << 20,
	KEYS_ARENA_MAX = 64 << 20,
	READ_FAULT_MS = 500,
	STALE_MIN_MS = 20,
	STALE_MAX_MS = 500,
	SETTLE_MS = 120 * 1000,
};

/* A key of which there is no record in memory. */
struct want {
	struct list link;
	struct table_link by_key;
	struct text project, id;
	char bytes[];
};

struct record_feed {
	struct records *records;
	struct event_subscriber *subscriber; /* NULL: there are no other hosts */
	struct list wants;
	struct table wants_by_key;
	unsigned n_wants;
	struct list to_read; /* records that were named by events, or are stale */
	struct list later;   /* records that became stale, until the timer fires */
	struct timer *timer;
	unsigned pause_ms;
	bool again; /* some of `later` are stale although they were just read */

	struct work work;
	bool reading;
	struct arena keys, rows;
	struct record_found found[READ_MAX];
	unsigned n;         /* keys */
	unsigned n_reading; /* the first of them, which are read together */
	bool touched;
	bool syncing;
	bool failed; /* the timer repeats the read */
	bool gap;    /* events are missing: everything is to be read */
	struct record_found *listed;
	unsigned n_listed;
};

/* ---- keys that are to be read: they were named by events, or their records are stale ---- */

static struct record *find(const struct record_feed *f, struct text project, struct text id)
{
	const struct records_opts *o = &f->records->opts;

	return o->reads->find ? o->reads->find(o->arg, project, id) : NULL;
}

static uint64_t hash_of(struct text project, struct text id)
{
	return table_hash(id) ^ table_hash(project) * 0x9e3779b97f4a7c15U;
}

static struct want *find_want(const struct record_feed *f, struct text project, struct text id)
{
	for (struct table_link *at = table_find(&f->wants_by_key, hash_of(project, id)); at;
	     at = table_next(at)) {
		struct want *w = list_entry(at, struct want, by_key);

		if (text_equal(w->project, project) && text_equal(w->id, id))
			return w;
	}
	return NULL;
}

static void drop_want(struct record_feed *f, struct want *w)
{
	list_remove(&w->link);
	table_remove(&f->wants_by_key, &w->by_key);
	f->n_wants--;
	free(w);
}

static struct text put(char **at, struct text t)
{
	struct text copy = {.data = t.data ? *at : NULL, .len = t.len};

	if (t.len > 0)
		memcpy(*at, t.data, t.len);
	*at += t.len;
	return copy;
}

static int want_new(struct record_feed *f, struct text project, struct text id)
{
	struct want *w = malloc(sizeof(*w) + project.len + id.len);
	char *at;

	if (!w)
		return -ENOBUFS;
	at = w->bytes;
	w->project = put(&at, project);
	w->id = put(&at, id);
	list_append(&f->wants, &w->link);
	table_add(&f->wants_by_key, &w->by_key, hash_of(project, id));
	f->n_wants++;
	return 0;
}

static int want(struct record_feed *f, struct text project, struct text id)
{
	struct record *r = find(f, project, id);

	if (!r)
		return find_want(f, project, id) ? 0 : want_new(f, project, id);
	list_remove(&r->read_link);
	list_append(&f->to_read, &r->read_link);
	return 0;
}

void record_stale(struct record *r)
{
	struct record_feed *f = r->records->feed;

	r->stale = true;
	f->again = f->again || f->syncing;
	if (!list_empty(&r->read_link))
		return;
	if (list_empty(&f->later))
		timer_start(f->timer, STALE_MIN_MS);
	list_append(&f->later, &r->read_link);
}

struct text *record_ids(struct arena *a, const struct record_found *found, unsigned n)
{
	struct text *ids = arena_alloc(a, (n + 1) * sizeof(ids[0]));

	for (unsigned i = 0; ids && i < n; i++)
		ids[i] = found[i].id;
	return ids;
}

void record_match(struct record_found *found, unsigned n, void *rows, unsigned n_rows, size_t size,
		  size_t id_at)
{
	for (unsigned i = 0; i < n * n_rows; i++) {
		char *row = (char *)rows + i % n_rows * size;

		if (text_equal(found[i / n_rows].id, *(const struct text *)(row + id_at)))
			found[i / n_rows].row = row;
	}
}

int record_keys(struct arena *a, const struct text *ids, unsigned n, struct record_found **ret)
{
	*ret = arena_zalloc(a, (n + 1) * sizeof(**ret));
	for (unsigned i = 0; *ret && i < n; i++)
		(*ret)[i].id = ids[i];
	return *ret ? 0 : -ENOMEM;
}

int records_want(struct records *rs, struct text project, struct text id)
{
	return want(rs->feed, project, id);
}

void records_touch(struct records *rs)
{
	if (rs->feed)
		rs->feed->touched = true;
}

/* ---- reading ---- */

static int take_key(struct record_feed *f, struct text project, struct text id)
{
	struct record_found *k = &f->found[f->n];
	int r = f->n < READ_MAX ? 0 : -ENOBUFS;

	if (r == 0)
		r = arena_copy_text(&f->keys, project, &k->project)
			    ?: arena_copy_text(&f->keys, id, &k->id);
	f->n += r == 0;
	return r;
}

/* A stale record is read when its changes are stored or lost. */
static int take_keys(struct record_feed *f)
{
	struct list *first;
	int e;

	list_for_each (at, following, &f->to_read) {
		struct record *r = list_entry(at, struct record, read_link);
		struct text project, id;

		if (r->stale && record_pending(r))
			continue;
		f->records->opts.reads->key(r, &project, &id);
		e = take_key(f, project, id);
		if (e != 0)
			return e;
		list_remove(at);
	}
	while ((first = list_first(&f->wants))) {
		struct want *w = list_entry(first, struct want, link);

		e = take_key(f, w->project, w->id);
		if (e != 0)
			return e;
		drop_want(f, w);
	}
	return 0;
}

static int read_run(struct work *w, int lane)
{
	struct record_feed *f = list_entry(w, struct record_feed, work);
	const struct records_opts *o = &f->records->opts;

	return o->reads->read ? o->reads->read(o->arg, lane, &f->rows, f->found, f->n_reading) : 0;
}

static void read_finished(struct work *w, int result);

static void read_submit(struct record_feed *f)
{
	f->touched = f->failed = false;
	arena_reset(&f->rows);
	for (unsigned i = 0; i < f->n_reading; i++)
		f->found[i].row = NULL;
	f->work = (struct work) {.run = read_run, .finished = read_finished};
	workers_start(f->records->opts.workers, &f->work, false);
}

static void sync_one(struct record_feed *f, struct record_found *k)
{
	struct record *r = find(f, k->project, k->id);

	k->stale = r && r->stale;
	if (f->records->opts.reads->sync)
		f->records->opts.reads->sync(f->records->opts.arg, k);
	r = find(f, k->project, k->id);
	/* It was not taken. */
	if (r && r->stale)
		record_stale(r);
}

static void sync_all(struct record_feed *f)
{
	unsigned n = f->n_reading;

	f->syncing = true;
	for (unsigned i = 0; i < n; i++)
		sync_one(f, &f->found[i]);
	f->syncing = false;
	f->n -= n;
	memmove(f->found, f->found + n, f->n * sizeof(f->found[0]));
	f->n_reading = f->n;
}

/* What is stale again waits for something that has not come yet. */
static void pause_later(struct record_feed *f)
{
	if (!f->again) {
		f->pause_ms = STALE_MIN_MS;
		return;
	}
	f->again = false;
	timer_start(f->timer, f->pause_ms);
	if (f->pause_ms < STALE_MAX_MS)
		f->pause_ms *= 2;
}

static void feed_go(struct record_feed *f);

static void read_rest(struct record_feed *f)
{
	if (f->n > 0) {
		read_submit(f);
		return;
	}
	arena_reset(&f->keys);
	arena_reset(&f->rows);
	f->reading = false;
	pause_later(f);
	feed_go(f);
	event_resume(f->subscriber);
}

static void read_finished(struct work *w, int result)
{
	struct record_feed *f = list_entry(w, struct record_feed, work);

	if (result == -ECANCELED)
		return;
	if (result == 0 && !f->touched) {
		sync_all(f);
		read_rest(f);
	} else if (result == 0) {
		read_submit(f);
	} else if (result == -ENOMEM && f->n_reading > 1) {
		/* Together their rows take more memory than they may. */
		f->n_reading /= 2;
		read_submit(f);
	} else {
		log_debug("could not read changes from other hosts", "noun=%s error=%s",
			  f->records->opts.name, fault_words(result));
		f->failed = true;
		timer_start(f->timer, READ_FAULT_MS);
	}
}

/* ---- everything ---- */

static int list_run(struct work *w, int lane)
{
	struct record_feed *f = list_entry(w, struct record_feed, work);
	const struct records_opts *o = &f->records->opts;

	arena_reset(&f->rows);
	f->n_listed = 0;
	return o->reads->list ? o->reads->list(o->arg, lane, &f->rows, &f->listed, &f->n_listed)
			      : 0;
}

static void list_finished(struct work *w, int result)
{
	struct record_feed *f = list_entry(w, struct record_feed, work);

	if (result == -ECANCELED)
		return;
	for (unsigned i = 0; i < f->n_listed && result == 0; i++)
		result = want(f, f->listed[i].project, f->listed[i].id);
	f->reading = false;
	f->gap = f->gap || result != 0;
	if (result != 0)
		timer_start(f->timer, READ_FAULT_MS);
	else
		feed_go(f);
}

static void reload(struct record_feed *f)
{
	const struct records_opts *o = &f->records->opts;

	if (o->reads->reload(o->arg) != 0) {
		timer_start(f->timer, READ_FAULT_MS);
		return;
	}
	f->gap = false;
	f->reading = true;
	f->work = (struct work) {.run = list_run, .finished = list_finished};
	workers_start(o->workers, &f->work, false);
}

/* Reads the queue, unless that is going on. */
static void feed_go(struct record_feed *f)
{
	int e;

	if (f->reading)
		return;
	if (f->gap) {
		reload(f);
		return;
	}
	e = take_keys(f);
	f->n_reading = f->n;
	if (f->n == 0 && e != 0)
		timer_start(f->timer, READ_FAULT_MS);
	if (f->n == 0)
		return;
	f->reading = true;
	read_submit(f);
}

static void on_timer(void *feed)
{
	struct record_feed *f = feed;

	list_splice(&f->to_read, &f->later);
	if (f->failed)
		read_submit(f);
	else
		feed_go(f);
}

/* ---- events of other hosts ---- */

/* The key of an event that names no other. */
static bool hear_id(void *arg, const struct event *e, struct text *ret_project, struct text *ret_id)
{
	*ret_id = packed_text(packed_find(e->data, "id"));
	return ret_id->len > 0;
}

static int on_event(void *arg, const struct event *e)
{
	struct record_feed *f = arg;
	const struct records_opts *o = &f->records->opts;
	struct text project = {0}, id = {0};

	if (!event_is_foreign(o->events, e))
		return 0;
	if (f->n_wants >= WANTS_MAX) {
		feed_go(f);
		return -ENOBUFS;
	}
	return (o->reads->heard ?: hear_id)(o->arg, e, &project, &id) ? want(f, project, id) : 0;
}

static int on_gone(void *arg, int64_t n)
{
	struct record_feed *f = arg;

	(void)n;
	f->gap = true;
	feed_go(f);
	return 0;
}

static enum event_look look(void *arg)
{
	const struct record_feed *f = arg;

	return f->n_wants >= WANTS_MAX ? EVENT_WAITS : EVENT_TAKES;
}

static void flush(void *arg)
{
	feed_go(arg);
}

static int subscribe(struct record_feed *f)
{
	const struct records_opts *o = &f->records->opts;
	const struct event_filter filter = {.types = o->reads->types, .n_types = o->reads->n_types};
	const struct event_sink sink = {
		.on_event = on_event, .on_gone = on_gone, .look = look, .flush = flush, .arg = f};

	if (!events_host(o->events).data)
		return 0;
	return event_subscribe(o->events, &filter, events_first(o->events), &sink, &f->subscriber);
}

static int feed_new(struct records *rs)
{
	struct record_feed *f;

	if (!rs->opts.reads)
		return 0;
	assert(rs->opts.reads->reload);
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	rs->feed = f;
	f->records = rs;
	f->pause_ms = STALE_MIN_MS;
	list_init(&f->wants);
	list_init(&f->to_read);
	list_init(&f->later);
	arena_init(&f->keys, KEYS_ARENA_MAX);
	arena_init(&f->rows, ROWS_ARENA_MAX);
	return timer_new(rs->opts.loop, on_timer, f, &f->timer) ?: subscribe(f);
}

static void feed_free(struct record_feed *f)
{
	struct list *first;

	if (!f)
		return;
	event_unsubscribe(f->subscriber);
	timer_free(f->timer);
	while ((first = list_first(&f->wants)))
		drop_want(f, list_entry(first, struct want, link));
	table_done(&f->wants_by_key);
	arena_done(&f->keys);
	arena_done(&f->rows);
	free(f);
}

/* ---- changes on their way to the store ---- */

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
	r->unreported = false;
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
	r->unreported = true;
	if (list_empty(&r->failed_link))
		list_append(&r->records->failed, &r->failed_link);
	timer_start(r->records->retry, 0);
}

void record_report(struct record *r)
{
	if (!list_empty(&r->failed_link))
		fail_soon(r, r->error);
}

static int write_run(struct work *w, int lane)
{
	struct record_change *c = list_entry(w, struct record_change, work);

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

static void write_finished(struct work *w, int result)
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
		feed_go(rs->feed);
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
	c->work = (struct work) {.run = write_run, .finished = write_finished};
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
		if (r->unreported)
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

/* ---- what belongs to an epoch that is over ---- */

struct record_reaper {
	struct records *records;
	struct work work;
	struct record_reaped reaped;
	bool busy;
};

static int reap_run(struct work *w, int lane)
{
	struct record_reaper *r = list_entry(w, struct record_reaper, work);
	const struct records_opts *o = &r->records->opts;

	r->reaped.n = 0;
	r->reaped.more = false;
	return o->owners->reap(o->arg, &r->reaped);
}

static void reap(struct records *rs);

/* If it failed, it is tried again with the next look at the hosts. */
static void reap_finished(struct work *w, int result)
{
	struct record_reaper *r = list_entry(w, struct record_reaper, work);
	const struct records_opts *o = &r->records->opts;

	if (result == 0 && o->owners->reaped)
		o->owners->reaped(o->arg, &r->reaped);
	arena_reset(&r->reaped.arena);
	r->busy = false;
	if (result == 0 && r->reaped.more)
		reap(r->records);
}

static void reap(struct records *rs)
{
	struct record_reaper *r = rs->reaper;

	if (!r || r->busy || rs->stopping || !node_allows(rs->opts.node))
		return;
	r->busy = true;
	r->work = (struct work) {
		.run = reap_run, .finished = reap_finished, .arena = &r->reaped.arena};
	workers_start(rs->opts.workers, &r->work, true);
}

static void on_node(void *records, enum node_event event)
{
	struct records *rs = records;
	const struct record_owner_ops *ops = rs->opts.owners;
	void (*const fns[N_NODE_EVENTS])(void *arg) = {[NODE_FENCED] = ops->fenced,
						       [NODE_JOINED] = ops->joined,
						       [NODE_OTHERS] = ops->others};

	/* cppcheck-suppress uninitvar ; cppcheck does not read designated elements */
	if (fns[event])
		fns[event](rs->opts.arg);
	if (event != NODE_FENCED)
		reap(rs);
}

static int reaper_new(struct records *rs)
{
	if (!rs->opts.node || !rs->opts.owners)
		return 0;
	rs->reaper = calloc(1, sizeof(*rs->reaper));
	if (!rs->reaper)
		return -ENOMEM;
	rs->reaper->records = rs;
	arena_init(&rs->reaper->reaped.arena, REAPED_ARENA_MAX);
	node_listen(rs->opts.node, on_node, rs);
	return 0;
}

static void reaper_free(struct record_reaper *r)
{
	if (!r)
		return;
	arena_done(&r->reaped.arena);
	free(r);
}

/* ---- before the threads start ---- */

static int settle_once(struct store *store, struct events *events, int (*fn)(void *arg), void *arg)
{
	int r = store_begin(store);

	if (r != 0)
		return r;
	r = fn(arg) ?: events_store(events);
	if (r == 0)
		r = store_commit(store);
	else
		store_rollback(store);
	if (r == 0)
		events_committed(events);
	events_dropped(events);
	return r;
}

int records_settle(struct store *store, struct events *events, int (*fn)(void *arg), void *arg)
{
	const struct timespec pause = {.tv_sec = 1};
	uint64_t end = clock_steady_ms() + SETTLE_MS;
	int r;

	while ((r = settle_once(store, events, fn, arg)) == -EBUSY || r == -EDEADLK) {
		if (clock_steady_ms() > end)
			break;
		log_warn("waiting for locks of other hosts", "reason=\"%s\"",
			 store_message(store_writer(store)));
		nanosleep(&pause, NULL);
	}
	return r;
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
	return timer_new(opts->loop, on_retry, rs, &rs->retry) ?: feed_new(rs) ?: reaper_new(rs);
}

void records_done(struct records *rs)
{
	feed_free(rs->feed);
	reaper_free(rs->reaper);
	timer_free(rs->retry);
}
