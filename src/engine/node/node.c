#include "engine/node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/event/event.h"
#include "engine/node/inner.h"
#include "io/process/guard.h"
#include "io/process/tree.h"
#include "store/host/host.h"
#include "store/store.h"

enum {
	OWN_MAX = 16 << 10,
	ANSWER_LEAST_MS = 500,
	REAP_MS = 10 * 1000,
	SILENT_MS = 3000, /* the thread has news once in a second */
};

/* ---- what is known ---- */

int64_t node_epoch(const struct node *n)
{
	return n ? atomic_load(&n->epoch) : 0;
}

bool node_allows(const struct node *n)
{
	return !n || (node_epoch(n) != 0 && (!n->guard || guard_allows(n->guard)));
}

struct text node_name(const struct node *n)
{
	return n ? n->us.name : (struct text) {0};
}

bool node_is_us(const struct node *n, struct text name)
{
	return n && name.data && text_equal(n->us.name, name);
}

bool node_is_other(const struct node *n, struct text name)
{
	return n && name.data && !text_equal(n->us.name, name);
}

bool node_has_label(const struct node *n, struct text label)
{
	return !n || host_has_label(&n->us, label);
}

const struct host *node_list(const struct node *n, unsigned *ret_n, int64_t *ret_now_ms)
{
	*ret_n = n ? n->seen.n_hosts : 0;
	*ret_now_ms = n ? n->seen.now_ms : 0;
	return n ? n->seen.hosts : NULL;
}

const struct host *node_find(const struct node *n, struct text name)
{
	for (unsigned i = 0; n && i < n->seen.n_hosts; i++) {
		if (text_equal(n->seen.hosts[i].name, name))
			return &n->seen.hosts[i];
	}
	return NULL;
}

unsigned node_count(const struct node *n, unsigned *ret_rank)
{
	unsigned count = 0;

	*ret_rank = 0;
	for (unsigned i = 0; n && i < n->seen.n_hosts; i++) {
		const struct host *h = &n->seen.hosts[i];

		if (h->state != HOST_ALIVE)
			continue;
		if (node_is_us(n, h->name))
			*ret_rank = count;
		count++;
	}
	return count > 0 ? count : 1;
}

int node_forget(struct node *n, struct text name, struct error *error)
{
	bool found = false;
	int r = n ? store_host_forget(store_writer(n->store), name, &found) : 0;

	if (r == 0 && !found)
		r = refuse(error, REFUSE_NOT_FOUND, "host not found or still alive: '%.*s'",
			   TEXT_ARGS(name));
	return r;
}

const char *node_fault(const struct node *n)
{
	if (n && n->fault == 0 && clock_steady_ms() > n->heard_ms + SILENT_MS)
		return "no response from the database";
	return n && n->fault != 0 ? n->words : NULL;
}

void node_set_running(struct node *n, unsigned n_running)
{
	if (n)
		atomic_store(&n->running, n_running);
}

/* ---- listeners ---- */

void node_listen(struct node *n, void (*fn)(void *arg, enum node_event event), void *arg)
{
	if (n && n->n_listeners < NODE_LISTENERS_MAX)
		n->listeners[n->n_listeners++] = (struct node_listener) {fn, arg};
}

static void notify(const struct node *n, enum node_event event)
{
	for (unsigned i = 0; i < n->n_listeners; i++)
		n->listeners[i].fn(n->listeners[i].arg, event);
}

static void on_reap(void *node)
{
	notify(node, NODE_OTHERS);
}

/* ---- the end of a life ---- */

static void give_up(struct node *n, const char *reason)
{
	timer_stop(n->fence);
	/* Its time has come, or comes now. */
	if (n->guard)
		guard_renew(n->guard, 1);
	log_warn("lease lost, stopping the programs of this host", "host=%.*s reason=\"%s\"",
		 TEXT_ARGS(n->us.name), reason);
	notify(n, NODE_FENCED);
}

/* The thread may have begun another life meanwhile, which goes on. */
static bool end_life(struct node *n)
{
	long long epoch = n->leased;

	return epoch != 0 && atomic_compare_exchange_strong(&n->epoch, &epoch, 0);
}

void node_on_stale(struct node *n, void (*fn)(void *arg, const char *reason), void *arg)
{
	if (!n)
		return;
	n->on_stale = fn;
	n->stale_arg = arg;
}

void node_fence(struct node *n, const char *reason)
{
	if (n && end_life(n))
		give_up(n, reason);
}

static void go_stale(struct node *n, const char *reason)
{
	void (*fn)(void *arg, const char *reason) = n->on_stale;

	node_fence(n, reason);
	n->on_stale = NULL;
	if (fn)
		fn(n->stale_arg, reason);
}

/* Nobody would end our programs if we hung. */
static void on_guard_lost(void *node)
{
	if (end_life(node))
		give_up(node, "the guard process died");
}

/* ---- what the thread tells ---- */

/* Whether a life that was there is over. */
static bool has_gone(const struct news *before, const struct news *now)
{
	for (unsigned i = 0; i < now->n_hosts; i++) {
		const struct host *h = &now->hosts[i];

		for (unsigned k = 0; k < before->n_hosts; k++) {
			const struct host *b = &before->hosts[k];

			if (b->state == HOST_ALIVE && text_equal(b->name, h->name) &&
			    (h->state != HOST_ALIVE || h->epoch != b->epoch))
				return true;
		}
	}
	return false;
}

static bool see_hosts(struct node *n, struct news *news)
{
	bool gone = has_gone(&n->seen, news);

	arena_done(&n->seen.arena);
	n->seen = *news;
	return gone;
}

/* A lease that was renewed for a life which we have given up meanwhile is not ours. */
static void keep_lease(struct node *n, const struct news *news)
{
	uint64_t now = clock_steady_ms();
	uint64_t end = news->renewed_ms + node_own_ms(n);

	if (news->epoch != node_epoch(n))
		return;
	n->leased = news->epoch;
	n->fence_ms = end;
	timer_start(n->fence, end > now ? end - now : 0);
}

static void note_fault(struct node *n, int fault, const char *words)
{
	if (fault != 0)
		snprintf(n->words, sizeof(n->words), "%s", words);
	if (fault != 0 && n->fault == 0)
		log_warn("database unreachable", "host=%.*s reason=\"%s\"", TEXT_ARGS(n->us.name),
			 words);
	else if (fault == 0 && n->fault != 0)
		log_info("database reachable again", "host=%.*s", TEXT_ARGS(n->us.name));
	if (fault == 0 && n->fault != 0)
		store_answers(n->store);
	n->fault = fault;
}

static void on_news(void *node)
{
	struct node *n = node;
	struct news news;
	bool gone = false;

	pthread_mutex_lock(&n->lock);
	news = n->news;
	n->news = (struct news) {.last = n->news.last};
	pthread_mutex_unlock(&n->lock);
	/* The timer of the lease may come first; without news the database has not answered. */
	if (news.begun_ms == 0)
		return;
	n->heard_ms = news.begun_ms;
	note_fault(n, news.fault, news.words);
	if (news.stale) {
		go_stale(n, news.stale);
		arena_done(&news.arena);
		return;
	}
	if (news.fenced)
		give_up(n, "other hosts declared this host dead");
	if (news.renewed_ms > 0)
		keep_lease(n, &news);
	if (news.hosts)
		gone = see_hosts(n, &news);
	if (news.joined) {
		log_info("rejoined the cluster", "host=%.*s epoch=%lld", TEXT_ARGS(n->us.name),
			 (long long)news.epoch);
		notify(n, NODE_JOINED);
	}
	if (n->events)
		events_follow(n->events, news.last, news.told);
	if (gone)
		notify(n, NODE_OTHERS);
}

/* A loop that stood still, as in a long start, finds its timers due before it hears that the lease was
 * renewed meanwhile. */
static void on_fence(void *node)
{
	struct node *n = node;
	uint64_t now;

	on_news(n);
	now = clock_steady_ms();
	if (now < n->fence_ms)
		timer_start(n->fence, n->fence_ms - now);
	else if (end_life(n))
		give_up(n, "could not renew the lease in time");
}

/* ---- start and end ---- */

static int copy_texts(struct node *n, const struct node_opts *opts)
{
	n->us.parallel = opts->parallel;
	return arena_copy_text(&n->own, text_of(opts->name), &n->us.name)
		       ?: arena_copy_text(&n->own, text_of(opts->labels), &n->us.labels)
		       ?: arena_copy_text(&n->own, text_of(opts->version), &n->us.version);
}

/* What an earlier life has left running ends first: once ours has begun, others may take its tasks over. */
static int end_earlier(struct node *n, const char *owner)
{
	const struct guard_opts opts = {.owner = owner, .on_lost = on_guard_lost, .arg = n};

	if (!owner)
		return 0;
	(void)sweep_all(owner);
	return guard_start(n->loop, &opts, &n->guard);
}

static int begin(struct node *n, const struct node_opts *opts, struct error *error)
{
	unsigned answer_ms = (unsigned)opts->lease_ms / 6;
	int r = copy_texts(n, opts) ?: timer_new(n->loop, on_fence, n, &n->fence)
		?: ticker_new(n->loop, REAP_MS, on_reap, n, &n->reaps)
		?: wake_new(n->loop, on_news, n, &n->wake) ?: store_open_feed(n->store,
				    answer_ms > ANSWER_LEAST_MS ? answer_ms : ANSWER_LEAST_MS, error)
			    ?: node_await_former(n, error) ?: end_earlier(n, opts->owner)
			    ?: node_first_life(n, error) ?: node_set_clock(n);

	if (r != 0)
		return r;
	wake_hold(n->wake, false);
	if (n->guard)
		guard_renew(n->guard,
			    clock_boot_ms() - (clock_steady_ms() - n->beat_at) + node_own_ms(n));
	atomic_store(&n->epoch, n->us.epoch);
	n->heard_ms = clock_steady_ms();
	n->leased = n->us.epoch;
	n->fence_ms = n->beat_at + node_own_ms(n);
	timer_start(n->fence, node_own_ms(n));
	return node_thread_start(n);
}

int node_start(const struct node_opts *opts, struct node **ret_node, struct error *error)
{
	struct node *n;
	int r;

	*ret_node = NULL;
	if (!store_has_feed(opts->store))
		return 0;
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	n->store = opts->store;
	n->loop = opts->loop;
	n->lease_ms = opts->lease_ms;
	pthread_mutex_init(&n->lock, NULL);
	arena_init(&n->own, OWN_MAX);
	r = begin(n, opts, error);
	if (r != 0)
		node_free(n);
	else
		*ret_node = n;
	return r;
}

void node_hear_events(struct node *n, struct events *events)
{
	if (n)
		n->events = events;
}

void node_free(struct node *n)
{
	int64_t epoch = node_epoch(n);

	if (!n)
		return;
	node_thread_stop(n);
	guard_free(n->guard);
	if (epoch != 0)
		(void)store_host_leave(store_feed(n->store), n->us.name, epoch);
	timer_free(n->fence);
	ticker_free(n->reaps);
	wake_free(n->wake);
	arena_done(&n->news.arena);
	arena_done(&n->seen.arena);
	arena_done(&n->own);
	free(n->sightings);
	pthread_mutex_destroy(&n->lock);
	free(n);
}
