#include "engine/event/follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/why.h"
#include "engine/event/inner.h"

enum {
	EVENTS_MAX = 256,     /* read for at once */
	BYTES_MAX = 4 << 20,  /* of them; one may be larger */
	ARENA_MAX = 64 << 20, /* with what is read */
	AGAIN_MS = 500,       /* after a fault */
};

struct heard {
	struct event event;
	void *found;
};

/* Some events, with what they are about. */
struct earful {
	struct arena arena;
	struct heard list[EVENTS_MAX];
	unsigned n;
	size_t bytes;
};

struct follower {
	struct follower_opts opts;
	struct event_subscriber *subscriber;
	struct earful earfuls[2]; /* one is filled while the other is read */
	unsigned filling;         /* which */
	unsigned n_changes;       /* of the noun's own, when it was read */
	bool reading;
	struct work work;
	struct timer *again;
};

static struct earful *read_one(struct follower *f)
{
	return &f->earfuls[!f->filling];
}

static void empty(struct earful *e)
{
	arena_done(&e->arena);
	arena_init(&e->arena, ARENA_MAX);
	e->n = 0;
	e->bytes = 0;
}

/* ---- reading ---- */

static int run(struct work *w, int lane)
{
	struct follower *f = list_entry(w, struct follower, work);
	struct earful *e = read_one(f);
	int r = 0;

	f->n_changes = f->opts.n_changes ? atomic_load(f->opts.n_changes) : 0;
	for (unsigned i = 0; i < e->n && r == 0 && f->opts.read; i++) {
		struct heard *h = &e->list[i];

		h->found = NULL;
		r = f->opts.read(f->opts.arg, lane, &e->arena, &h->event, &h->found);
	}
	return r;
}

static void read_on(struct follower *f);
static void submit(void *follower);

static void finished(struct work *w, int result)
{
	struct follower *f = list_entry(w, struct follower, work);
	struct earful *e = read_one(f);

	if (result == -ECANCELED)
		return;
	if (result != 0) {
		log_debug("could not read another host's events", "error=%s", fault_words(result));
		timer_start(f->again, AGAIN_MS);
		return;
	}
	if (f->opts.n_changes && f->n_changes != atomic_load(f->opts.n_changes)) {
		submit(f);
		return;
	}
	for (unsigned i = 0; i < e->n; i++)
		f->opts.apply(f->opts.arg, &e->list[i].event, e->list[i].found);
	empty(e);
	f->reading = false;
	read_on(f);
	event_resume(f->subscriber);
}

static void submit(void *follower)
{
	struct follower *f = follower;

	f->work = (struct work) {.run = run, .finished = finished};
	background_start(&f->opts.background, &f->work, false);
}

static void read_on(struct follower *f)
{
	if (f->reading || f->earfuls[f->filling].n == 0)
		return;
	f->filling = !f->filling;
	f->reading = true;
	submit(f);
}

/* ---- hearing ---- */

static int on_event(void *arg, const struct event *event)
{
	struct follower *f = arg;
	struct earful *e = &f->earfuls[f->filling];
	struct event *copy;

	if (!event_is_foreign(f->opts.events, event))
		return 0;
	if (e->n == EVENTS_MAX || (e->n > 0 && e->bytes > BYTES_MAX))
		return -ENOBUFS;
	copy = &e->list[e->n].event;
	*copy = *event;
	if (portrait_copy(&event_portrait, &e->arena, copy) != 0)
		return -ENOBUFS;
	e->bytes += portrait_bytes(&event_portrait, copy);
	e->n++;
	return 0;
}

/* What is kept at hand would be wrong from here on. */
static int on_gone(void *arg, int64_t n)
{
	const struct events *e = ((const struct follower *)arg)->opts.events;

	(void)n;
	if (e->on_gap)
		e->on_gap(e->gap_arg);
	return 0;
}

/* It takes more when what it has is read. */
static enum event_look look(void *arg)
{
	const struct follower *f = arg;
	const struct earful *e = &f->earfuls[f->filling];

	return e->n == EVENTS_MAX || e->bytes > BYTES_MAX ? EVENT_WAITS : EVENT_TAKES;
}

static void flush(void *arg)
{
	read_on(arg);
}

/* ---- start and end ---- */

static int subscribe(struct follower *f)
{
	const struct event_filter filter = {.types = f->opts.types, .n_types = f->opts.n_types};
	const struct event_sink sink = {
		.on_event = on_event, .on_gone = on_gone, .look = look, .flush = flush, .arg = f};

	return event_subscribe(f->opts.events, &filter, f->opts.events->first, &sink,
			       &f->subscriber);
}

int follower_start(const struct follower_opts *opts, struct follower **ret_follower)
{
	struct follower *f;
	int r;

	*ret_follower = NULL;
	if (!opts->events || !opts->events->host.data)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->opts = *opts;
	for (unsigned i = 0; i < 2; i++)
		arena_init(&f->earfuls[i].arena, ARENA_MAX);
	r = timer_new(opts->loop, submit, f, &f->again) ?: subscribe(f);
	if (r != 0)
		follower_free(f);
	else
		*ret_follower = f;
	return r;
}

void follower_free(struct follower *f)
{
	if (!f)
		return;
	event_unsubscribe(f->subscriber);
	timer_free(f->again);
	for (unsigned i = 0; i < 2; i++)
		arena_done(&f->earfuls[i].arena);
	free(f);
}
