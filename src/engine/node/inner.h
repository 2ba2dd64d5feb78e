/* Shared by the files of this folder. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "engine/node/node.h"

struct guard;

enum {
	NODE_SNAPSHOT_MAX = 1 << 20, /* bytes of all rows of hosts */
	NODE_WORDS_MAX = 200,
};

/* A life that somebody else renews, and since when, by our own steady clock, it has not been renewed. */
struct sighting {
	int64_t epoch, seen_ms;
	uint64_t since_ms;
};

/* What the thread says to the loop. */
struct news {
	struct arena arena;
	struct host *hosts; /* NULL: nothing new */
	unsigned n_hosts;
	int64_t now_ms;
	int64_t last;        /* number of the last event */
	bool told;           /* another host has added events */
	int64_t epoch;       /* of the life that was renewed or begun */
	uint64_t renewed_ms; /* of the steady clock, before it was asked for; 0: not renewed */
	bool fenced;         /* the store says that this life is over */
	bool joined;         /* a new life has begun */
	uint64_t begun_ms;   /* of the steady clock: before anything was asked; 0: no news */
	const char *stale;   /* why what we remember may be wrong; NULL if it is not */
	int fault;
	char words[NODE_WORDS_MAX]; /* the database's, or its client's */
};

struct node {
	struct store *store;
	struct loop *loop;
	struct events *_Atomic events; /* NULL: not heard yet */
	struct host us; /* its texts are in `own`; the thread's, but for name and labels */
	struct arena own;
	int64_t lease_ms;
	atomic_llong epoch;
	atomic_uint running;
	struct guard *guard; /* NULL: there are no programs */

	/* the thread's */
	pthread_t thread;
	bool begun;
	uint64_t beat_at, told_at, looked_at; /* the last ones, by the steady clock */
	uint64_t lease_over_ms;               /* by the steady clock: our last lease has run out */
	int64_t last;                         /* number of the last event that was seen */
	int64_t last_ms;                      /* when that was added; 0: not known */
	int64_t former;                       /* the epoch of our last life */
	struct sighting *sightings;           /* of those that were alive when we looked last */
	unsigned n_sightings;
	int woken[2]; /* a pipe: there is something for the thread */
	atomic_bool announces;
	atomic_bool stop;

	/* both sides' */
	pthread_mutex_t lock; /* guards news */
	struct news news;
	struct wake *wake;

	/* the loop's */
	struct news seen;     /* the hosts, as they were told last */
	struct timer *fence;  /* runs until this life must be given up */
	uint64_t fence_ms;    /* when that is, by the steady clock */
	int64_t leased;       /* the epoch that it runs for */
	struct ticker *reaps; /* now and then */
	uint64_t heard_ms;    /* begun_ms of the last news */
	int fault;
	char words[NODE_WORDS_MAX]; /* why the database does not answer, if fault is not 0 */
	void (*on_stale)(void *arg, const char *reason);
	void *stale_arg;
	struct node_listener listeners[NODE_LISTENERS_MAX];
	unsigned n_listeners;
};

/* When we give up what we run, counted from the time at which the lease was asked for. */
static inline uint64_t node_own_ms(const struct node *n)
{
	return (uint64_t)n->lease_ms * 2 / 3;
}

/* ---- life.c: on the thread, or before there is one ---- */

/* Waits for the end of an earlier life of this name; refuses if it goes on. */
int node_await_former(struct node *n, struct error *error);
/* Tries to begin a life. *ret_joined is false if an earlier one goes on. */
int node_begin_life(struct node *n, bool *ret_joined);
/* The first one, after that. */
int node_first_life(struct node *n, struct error *error);

/* Our clock shows the database's time from now on, as far as it can be told. */
int node_set_clock(struct node *n);

/* ---- thread.c ---- */

int node_thread_start(struct node *n);
void node_thread_stop(struct node *n);
