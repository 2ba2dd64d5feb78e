/*
 * The hosting half behind <koine/koine.h>: one koine_server is one loop, one
 * server and one dialect whose methods the host has added.
 */
#pragma once

#include <pthread.h>

#include "base/list.h"
#include "call/call.h"
#include "call/server.h"
#include "koine/koine.h"
#include "lib/value_api.h"

struct host_method {
	struct list link;
	struct method row;
	koine_handler handler;
	void *arg;
	char *text; /* every string of the row, one after another */
	struct field fields[];
};

struct posted {
	struct list link;
	void (*fn)(void *arg);
	void *arg;
};

/* Something to be done later. */
struct host_timer {
	struct list link;
	struct timer *timer;
	void (*fn)(void *arg);
	void *arg;
};

struct koine_server {
	struct loop *loop;
	struct server *server;
	struct registry *registry;
	struct list methods;
	struct wake *wake;
	pthread_mutex_t lock; /* guards posted */
	struct list posted;
	bool stopped;
	uid_t allow_uids[KOINE_ALLOW_MAX]; /* for everything listened at from now on */
	unsigned n_allow_uids;
	bool anybody;
	struct list timers; /* struct host_timer */
	struct list mcps;   /* struct koine_mcp */
	struct error error;
};

/* What a call keeps for the host while it is open: in its arena, at call->state. */
struct host_call {
	struct koine_json result;
	void (*on_cancel)(struct koine_call *c, void *arg);
	void *cancel_arg;
};

static inline struct call *inner(struct koine_call *c)
{
	return (struct call *)c;
}

static inline const struct call *inner_const(const struct koine_call *c)
{
	return (const struct call *)c;
}

/* mcp_api.c: what ends before the server is freed, and what only then can be. */
void host_mcps_close(struct koine_server *s);
void host_mcps_free(struct koine_server *s);

/* Listens for those whom the server allows; `opts` has the dialect, framing and token. `bound` may be
 * NULL. */
int host_listen(struct koine_server *s, struct endpoint_opts *opts, const char *address,
		char *bound, size_t bound_size, struct endpoint **ret_endpoint);

/* Puts the reason into s->error, unless it is there. */
int host_explain(struct koine_server *s, int r);

/* The row's handler: asks the host, and makes sure that the call is answered. */
struct done host_handle(struct call *c);

/* -EINVAL for a method without name or handler. */
int host_method_new(const struct koine_method *m, struct host_method **ret_method);
void host_method_free(struct host_method *h);
