/*
 * The thread that keeps a node alive: it renews the lease, wakes the others when we have committed
 * events, and looks whether they have. It has a connection of its own, so that nothing which is slow in the store
 * costs us our lease.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/event/event.h"
#include "engine/node/inner.h"
#include "io/process/guard.h"
#include "store/host/host.h"
#include "store/store.h"

enum {
	BEATS = 6,            /* for each lease */
	LOOK_MS = 1000,       /* a wake may be lost */
	TELL_MS = 15,         /* many commits are one wake */
	AFTER_FAULT_MS = 250, /* until the next try */
};

/* ---- to the loop ---- */

static void tell_loop(struct node *n, const struct news *fresh)
{
	struct news *news = &n->news;

	pthread_mutex_lock(&n->lock);
	if (fresh->hosts) {
		arena_done(&news->arena);
		news->arena = fresh->arena;
		news->hosts = fresh->hosts;
		news->n_hosts = fresh->n_hosts;
		news->now_ms = fresh->now_ms;
	}
	if (fresh->last > news->last)
		news->last = fresh->last;
	if (fresh->renewed_ms > 0) {
		news->renewed_ms = fresh->renewed_ms;
		news->epoch = fresh->epoch;
	}
	news->told = news->told || fresh->told;
	news->fenced = news->fenced || fresh->fenced;
	news->joined = news->joined || fresh->joined;
	news->stale = news->stale ? news->stale : fresh->stale;
	news->begun_ms = fresh->begun_ms;
	news->fault = fresh->fault;
	memcpy(news->words, fresh->words, sizeof(news->words));
	pthread_mutex_unlock(&n->lock);
	wake_send(n->wake);
}

/* ---- events ---- */

/* NULL if the log goes on from where we were. */
static const char *find_stale(const struct node *n, int64_t known, const struct host_log *log)
{
	int64_t seen = known > n->last ? known : n->last;

	if (log->last < seen)
		return "the database has lost events that this host has read";
	if (n->last_ms > 0 && log->seen_ms > 0 && n->last_ms != log->seen_ms)
		return "the database's events differ from those that this host has read";
	return NULL;
}

static int look_at_events(struct node *n, struct news *fresh)
{
	/* Read before we ask: what we have committed by now is in the answer. */
	int64_t known = event_last(atomic_load(&n->events));
	struct host_log log;
	int r;

	n->looked_at = clock_steady_ms();
	r = store_host_log(store_feed(n->store), n->last, &log);
	if (r != 0)
		return r;
	fresh->stale = find_stale(n, known, &log);
	if (fresh->stale) {
		r = store_host_whole(store_feed(n->store));
		fresh->stale = r == 0 ? fresh->stale : NULL;
		return r;
	}
	if (log.last > n->last)
		fresh->last = n->last = log.last;
	n->last_ms = log.last_ms;
	store_note_event(n->store, log.last, log.last_ms);
	return 0;
}

/* ---- our life ---- */

static int renew(struct node *n, struct news *fresh)
{
	uint64_t boot_ms = clock_boot_ms();
	uint64_t asked_ms = clock_steady_ms();
	bool alive = false;
	int r;

	n->us.running = atomic_load(&n->running);
	r = store_host_renew(store_feed(n->store), &n->us, n->lease_ms, &alive);
	if (r != 0)
		return r;
	if (!alive) {
		fresh->fenced = true;
		return 0;
	}
	if (n->guard)
		guard_renew(n->guard, boot_ms + node_own_ms(n));
	n->lease_over_ms = asked_ms + (uint64_t)n->lease_ms;
	fresh->renewed_ms = asked_ms;
	fresh->epoch = n->us.epoch;
	return 0;
}

/* What we ran has ended when our last lease is over; the others may take it over from then on. No life
 * begins over a log that does not go on from what we remember. */
static int begin_again(struct node *n, struct news *fresh)
{
	uint64_t boot_ms = clock_boot_ms();
	bool joined = false;
	int r;

	if (clock_steady_ms() < n->lease_over_ms)
		return 0;
	r = look_at_events(n, fresh);
	if (r == 0 && !fresh->stale)
		r = node_begin_life(n, &joined);
	if (r != 0 || !joined)
		return r;
	if (n->guard)
		guard_renew(n->guard, boot_ms + node_own_ms(n));
	atomic_store(&n->epoch, n->us.epoch);
	fresh->joined = true;
	fresh->renewed_ms = n->beat_at;
	fresh->epoch = n->us.epoch;
	return 0;
}

static uint64_t sighted_since(const struct node *n, const struct host *h, uint64_t now)
{
	for (unsigned i = 0; i < n->n_sightings; i++) {
		const struct sighting *s = &n->sightings[i];

		if (s->epoch == h->epoch && s->seen_ms == h->seen_ms)
			return s->since_ms;
	}
	return now;
}

/* Replaces the sightings by those of now. */
static int sight(struct node *n, const struct host *hosts, unsigned n_hosts, uint64_t now)
{
	struct sighting *fresh = calloc(n_hosts + 1, sizeof(*fresh));
	unsigned count = 0;

	if (!fresh)
		return -ENOMEM;
	for (unsigned i = 0; i < n_hosts; i++) {
		if (hosts[i].state == HOST_ALIVE)
			fresh[count++] = (struct sighting) {hosts[i].epoch, hosts[i].seen_ms,
							    sighted_since(n, &hosts[i], now)};
	}
	free(n->sightings);
	n->sightings = fresh;
	n->n_sightings = count;
	return 0;
}

/* The database's clock alone decides nothing: when it is set forward, all leases are over at once. */
static int lose_silent(struct node *n, struct host *hosts, unsigned n_hosts, uint64_t asked_ms)
{
	int r = sight(n, hosts, n_hosts, clock_steady_ms());

	for (unsigned i = 0; i < n_hosts && r == 0; i++) {
		bool lost = false;

		if (hosts[i].state != HOST_ALIVE ||
		    sighted_since(n, &hosts[i], asked_ms) + store_host_lease(&hosts[i]) > asked_ms)
			continue;
		r = store_host_lose(store_feed(n->store), &hosts[i], &lost);
		if (r == 0 && lost)
			hosts[i].state = HOST_LOST;
	}
	return r;
}

static int look_at_hosts(struct node *n, struct news *fresh)
{
	uint64_t asked_ms = clock_steady_ms();
	int r;

	arena_init(&fresh->arena, NODE_SNAPSHOT_MAX);
	r = store_host_list(store_feed(n->store), &fresh->arena, &fresh->hosts, &fresh->n_hosts,
			    &fresh->now_ms)
		    ?: lose_silent(n, fresh->hosts, fresh->n_hosts, asked_ms);
	if (r != 0) {
		arena_done(&fresh->arena);
		fresh->hosts = NULL;
	}
	return r;
}

/* ---- beats ---- */

/* The loop gives a life up by itself; its epoch is then 0, and that of the thread is over. */
static int beat(struct node *n, struct news *fresh)
{
	bool lives = atomic_load(&n->epoch) != 0;
	int r;

	n->beat_at = clock_steady_ms();
	r = lives ? renew(n, fresh) : begin_again(n, fresh);
	if (fresh->fenced)
		atomic_store(&n->epoch, 0);
	return r ?: look_at_hosts(n, fresh) ?: node_set_clock(n);
}

static int tell_others(struct node *n)
{
	n->told_at = clock_steady_ms();
	atomic_store(&n->announces, false);
	return store_host_tell(store_feed(n->store));
}

/* ---- its turns ---- */

static bool is_due(uint64_t since, uint64_t every)
{
	return clock_steady_ms() >= since + every;
}

static uint64_t beat_ms(const struct node *n)
{
	return (uint64_t)n->lease_ms / BEATS;
}

static int turn(struct node *n, bool told, struct news *fresh)
{
	int r = 0;

	if (is_due(n->beat_at, beat_ms(n)))
		r = beat(n, fresh);
	if (r == 0 && atomic_load(&n->announces) && is_due(n->told_at, TELL_MS))
		r = tell_others(n);
	fresh->told = told;
	if (r == 0 && is_due(n->looked_at, LOOK_MS))
		r = look_at_events(n, fresh);
	return r;
}

static int sooner(uint64_t now, uint64_t at, int ms)
{
	if (at <= now)
		return 0;
	return at - now < (uint64_t)ms ? (int)(at - now) : ms;
}

static int until_next(const struct node *n)
{
	uint64_t now = clock_steady_ms();
	int ms = sooner(now, n->beat_at + beat_ms(n), LOOK_MS);

	ms = sooner(now, n->looked_at + LOOK_MS, ms);
	return atomic_load(&n->announces) ? sooner(now, n->told_at + TELL_MS, ms) : ms;
}

static void drain(struct node *n)
{
	char bytes[64];

	while (read(n->woken[0], bytes, sizeof(bytes)) > 0)
		continue;
}

/* The next turn asks the database at once: only an answer ends the fault. */
static void pause_after_fault(struct node *n)
{
	struct pollfd p = {.fd = n->woken[0], .events = POLLIN};

	n->looked_at = 0;
	(void)poll(&p, 1, AFTER_FAULT_MS);
}

static void say_fault(struct node *n, struct news *fresh, int fault)
{
	fresh->fault = fault;
	if (fault != 0)
		snprintf(fresh->words, sizeof(fresh->words), "%s",
			 store_message(store_feed(n->store)));
}

static void *live(void *arg)
{
	struct node *n = arg;
	struct news first = {.begun_ms = clock_steady_ms()};
	bool told = true;

	say_fault(n, &first, look_at_hosts(n, &first));
	tell_loop(n, &first);

	while (!atomic_load(&n->stop)) {
		struct news fresh = {.begun_ms = clock_steady_ms()};
		int r = turn(n, told, &fresh);

		if (store_rewound(n->store))
			fresh.stale = "the database lost commits in a failover or was restored "
				      "from a backup";
		say_fault(n, &fresh, r);
		tell_loop(n, &fresh);
		told = false;
		if (r == 0)
			r = store_host_hear(store_feed(n->store), n->woken[0], until_next(n),
					    &told);
		if (r != 0)
			pause_after_fault(n);
		drain(n);
	}
	return NULL;
}

/* ---- from other threads ---- */

static void wake_thread(struct node *n)
{
	/* A full pipe wakes it as well. */
	if (write(n->woken[1], "", 1) < 0)
		return;
}

void node_announce(void *node)
{
	struct node *n = node;

	if (n && !atomic_exchange(&n->announces, true))
		wake_thread(n);
}

int node_thread_start(struct node *n)
{
	int r = pipe2(n->woken, O_CLOEXEC | O_NONBLOCK) == 0 ? 0 : -errno;

	if (r == 0)
		r = thread_start(&n->thread, live, n);
	n->begun = r == 0;
	return r;
}

void node_thread_stop(struct node *n)
{
	atomic_store(&n->stop, true);
	if (n->begun) {
		wake_thread(n);
		pthread_join(n->thread, NULL);
		close(n->woken[0]);
		close(n->woken[1]);
	}
	n->begun = false;
}
