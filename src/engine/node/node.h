/*
 * This koined as one of several hosts over one store: its life there, and what it hears of the others.
 *
 * A life has a number, its epoch, and a lease that is renewed again and again, by the database's clock.
 * Whatever a host runs is written down with its epoch, and others take it over when the lease has run
 * out. So a host that could not renew in time gives everything up that it runs, before that
 * (`on_fenced`; a guard process ends its programs even if it hangs), and begins a new life when it can.
 *
 * What the others change is heard through their events: a wake says that there are new ones, and
 * once in a second somebody looks whether there are, since a wake may be lost.
 *
 * A store that only one koined can use has no node: NULL, which everything here accepts, and whose
 * epoch is 0. Everything runs on the loop unless it says otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/host.h"
#include "base/error.h"
#include "io/loop.h"

struct events;
struct node;
struct store;

enum { NODE_LISTENERS_MAX = 8 };

struct node_opts {
	struct store *store;
	struct loop *loop;
	const char *name;
	const char *labels; /* words */
	const char *version;
	int64_t lease_ms;
	unsigned parallel; /* tasks that may run here, for others to see */
	const char *owner; /* of the marks of our programs; NULL: there are none, and so no guard */
};

/* Begins a life. If an earlier one of this name has not ended yet, waits until its lease is over;
 * refuses if it goes on. Ends what an earlier one has left running. Call it before anything is read that
 * others may change. *ret_node is NULL if only one koined can use the store. */
int node_start(const struct node_opts *opts, struct node **ret_node, struct error *error);

/* From here on it hears of the others' events. */
void node_hear_events(struct node *n, struct events *events);

/* The store is not what we remember: its log ends before what we have seen of it, or another database is in
 * its place. This life is over, and what is at hand must be read anew. Called at most once. */
void node_on_stale(struct node *n, void (*fn)(void *arg, const char *reason), void *arg);

/* Gives up this life, if there is one. */
void node_fence(struct node *n, const char *reason);

/* Ends this life, so that the others need not wait for its lease. Programs must have ended. */
void node_free(struct node *n);

/* Of this life; 0: there is none, or no node. Any thread. */
int64_t node_epoch(const struct node *n);

/* Whether programs may be started: always without a node, else while there is a life. */
bool node_allows(const struct node *n);

struct text node_name(const struct node *n); /* {NULL, 0}: no node */
bool node_is_us(const struct node *n, struct text name);
/* Another host has this name. False without a node. */
bool node_is_other(const struct node *n, struct text name);
/* Whether other hosts may share the store. */
static inline bool node_shares(const struct node *n)
{
	return n != NULL;
}
/* A host that is alone has every label. */
bool node_has_label(const struct node *n, struct text label);

/* How many hosts are alive, ourselves included, and our place among them, from 0. */
unsigned node_count(const struct node *n, unsigned *ret_rank);

/* The hosts as they were at the last beat; valid until the next turn of the loop. *ret_now_ms is the
 * database's time of then. */
const struct host *node_list(const struct node *n, unsigned *ret_n, int64_t *ret_now_ms);

/* The one with this name; NULL: there is none. */
const struct host *node_find(const struct node *n, struct text name);

/* Forgets one that is not alive. Runs on the writer's thread. */
int node_forget(struct node *n, struct text name, struct error *error);

/* Why the database does not answer, in its client's words; NULL if it does. Also after this process stood
 * still: what is at hand may be old until the database was asked again. */
const char *node_fault(const struct node *n);

/* For others to see. */
void node_set_running(struct node *n, unsigned n_running);

/* The writer has committed events. Any thread. */
void node_announce(void *node);

enum node_event {
	/* This life is over: nothing that runs here belongs to this host any more. Whatever is running must be ended,
	 * and nothing of it may be written (and would not be: the epoch is another). */
	NODE_FENCED,
	NODE_JOINED, /* a new life has begun */
	/* Some host has ended its life, or was lost: what it ran may be taken over. Also reported from time
	 * to time without a reason, so that nothing is left over if the host that took it over died. */
	NODE_OTHERS,
	N_NODE_EVENTS
};

struct node_listener {
	void (*fn)(void *arg, enum node_event event);
	void *arg;
};

/* At most NODE_LISTENERS_MAX; lives as long as the node. */
void node_listen(struct node *n, void (*fn)(void *arg, enum node_event event), void *arg);
