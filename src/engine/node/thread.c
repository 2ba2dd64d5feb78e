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
#include "engine/node/inner.h"
#include "io/process/guard.h"
#include "store/event.h"
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
	news->fenced = news->fenced || fresh->fenced;
	news->joined = news->joined || fresh->joined;
	news->fault = fresh->fault;
	memcpy(news->words, fresh->words, sizeof(news->words));
	pthread_mutex_unlock(&n->lock);
	wake_send(n->wake);
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

/* What we ran has ended when our last lease is over; the others may take it over from then on. */
static int begin_again(struct node *n, struct news *fresh)
{
	uint64_t boot_ms = clock_boot_ms();
	bool joined = false;
	int r;

	if (clock_steady_ms() < n->lease_over_ms)
		return 0;
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

static int look_at_hosts(struct node *n, struct news *fresh)
{
	struct connection *c = store_feed(n->store);
	unsigned n_lost;
	int r = store_host_lose(c, &n_lost);

	arena_init(&fresh->arena, NODE_SNAPSHOT_MAX);
	if (r == 0)
		r = store_host_list(c, &fresh->arena, &fresh->hosts, &fresh->n_hosts,
				    &fresh->now_ms);
	if (r != 0) {
		arena_done(&fresh->arena);
		fresh->hosts = NULL;
	}
	return r;
}

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

/* ---- events ---- */

static int look_at_events(struct node *n, struct news *fresh)
{
	int64_t first, last;
	int r;

	n->looked_at = clock_steady_ms();
	r = store_event_bounds(store_feed(n->store), &first, &last);
	if (r == 0 && last > n->last)
		fresh->last = n->last = last;
	return r;
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
	if (r == 0 && (told || is_due(n->looked_at, LOOK_MS)))
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

static void pause_after_fault(struct node *n)
{
	struct pollfd p = {.fd = n->woken[0], .events = POLLIN};

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
	struct news first = {0};
	bool told = true;

	say_fault(n, &first, look_at_hosts(n, &first));
	tell_loop(n, &first);

	while (!atomic_load(&n->stop)) {
		struct news fresh = {0};
		int r = turn(n, told, &fresh);

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
		r = -pthread_create(&n->thread, NULL, live, n);
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
