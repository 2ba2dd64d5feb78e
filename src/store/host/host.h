/*
 * The hosts that share a store, and what they tell each other. Everything here uses the feed's
 * connection (store_feed), which belongs to one thread and is never inside a batch: each statement
 * is a transaction of its own. All times are the database's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "model/host.h"

struct connection;

/* A number for a life that begins. None is drawn twice. */
int store_host_draw_epoch(struct connection *c, int64_t *ret_epoch);

int store_host_find(struct connection *c, struct text name, struct arena *arena,
		    struct host *ret_host, bool *ret_found);

/*
 * A life begins: us->epoch, with a lease of lease_ms from now. It takes the place of the life
 * `before` (0: the name is new), if that has ended or was lost; `ended`: it is known to have
 * ended. *ret_joined is false if it has not, or if somebody else was quicker.
 */
int store_host_join(struct connection *c, const struct host *us, int64_t lease_ms, int64_t before,
		    bool ended, bool *ret_joined);

/* Renews the lease of a life. *ret_alive: false if it was taken for lost, or has been replaced. */
int store_host_renew(struct connection *c, const struct host *us, int64_t lease_ms,
		     bool *ret_alive);

/* It ends as it should. */
int store_host_leave(struct connection *c, struct text name, int64_t epoch);

/*
 * Takes this life for lost, if it has not renewed its lease since seen_ms and the lease is over by the
 * database's clock. That clock may be set: the caller has seen the lease stand still for its whole length by
 * a clock that cannot. Where the database's was set back, that alone counts.
 */
int store_host_lose(struct connection *c, const struct host *seen, bool *ret_lost);

/* How long a lease of this life is. */
static inline uint64_t store_host_lease(const struct host *h)
{
	return h->lease_ms > h->seen_ms ? (uint64_t)(h->lease_ms - h->seen_ms) : 0;
}

/* All that there ever were, by name, and the time that it is there. */
int store_host_list(struct connection *c, struct arena *arena, struct host **ret_hosts,
		    unsigned *ret_n, int64_t *ret_now_ms);

/* The time that it is there. */
int store_host_now(struct connection *c, int64_t *ret_now_ms);

/* Forgets one that is not alive. */
int store_host_forget(struct connection *c, struct text name, bool *ret_found);

/* ---- what they tell each other ---- */

/* The end of the event log, and when events were added. */
struct host_log {
	int64_t last;    /* number; 0: none */
	int64_t last_ms; /* when the last one was added; 0 if it is not there any more */
	int64_t seen_ms; /* and the one that was asked for */
};

int store_host_log(struct connection *c, int64_t seen, struct host_log *ret);

/* Whether all tables are there, with their rows: -EIO in the middle of a restore. */
int store_host_whole(struct connection *c);

/* Notifies the other hosts of new events. */
int store_host_tell(struct connection *c);

/* Waits until another one told of some, `fd` can be read, or the time is over. */
int store_host_hear(struct connection *c, int fd, int timeout_ms, bool *ret_told);
