/*
 * Inside engine/approval: those that wait for a human are at hand on the loop, without their
 * input, which only the store has; each with its waiters and the time at which it expires.
 *
 * What the rules and the grants say is found out on the writer's thread, in the transaction that
 * keeps it.
 */
#pragma once

#include "base/list.h"
#include "engine/approval/approval.h"
#include "store/approval.h"

struct connection;

enum {
	APPROVAL_BUCKETS = 256,
	APPROVAL_ARENA_MAX = 8 << 20,         /* of a request or a decision on its way */
	APPROVAL_INPUT_ARENA_MAX = 16 << 20,  /* of an input that is unpacked for a moment */
	APPROVAL_COMING_BYTES_MAX = 64 << 20, /* of all requests on their way to the store */
	APPROVAL_SHOWN_INPUT_MAX = 32 << 10,  /* bytes, packed, that an event tells */
	APPROVAL_NAME_MAX = 256,              /* of sessions, runs, agents, tool uses */
	APPROVAL_ORIGIN_MAX = 4096,
	APPROVAL_PATTERN_MAX = 1024,
	APPROVAL_TIE_MS = 300 * 1000, /* a call and its approval are not further apart */
	APPROVAL_AGAIN_MS = 1000,     /* until an end that could not be kept is tried again */
};

/* The rules, as long as somebody reads them. Counted on the loop alone. */
struct approval_rules {
	unsigned refs;
	unsigned n;
	struct arena arena;
	struct approval_rule *list;
};

struct approvals {
	struct store *store;
	struct events *events;
	struct loop *loop;
	struct background background;
	unsigned max_pending;
	int64_t timeout_ms;
	int64_t keep_ms;
	bool agents_decide;
	void (*on_wait)(void *arg, struct text session, int change);
	void *wait_arg;
	struct approval_rules *rules;
	struct list pending; /* oldest first */
	struct list buckets[APPROVAL_BUCKETS];
	unsigned n_pending;
	unsigned n_due;    /* of these, that have a time to end */
	unsigned n_coming; /* requests on their way to the store */
	size_t n_coming_bytes;
	uint64_t n_asked; /* tells requests before a session's end from those after it */
	unsigned n_ended;
	struct list ended;   /* sessions that ended while requests were on their way */
	struct list refused; /* waiters whose answer is known and comes with the next turn */
	struct timer *due;
	struct timer *later; /* for the refused */
	uint64_t armed_ms;   /* steady; 0: due does not run */
	uint64_t sweep_ms;   /* steady: the next sweep */
	bool ends_fail;      /* said once */
	bool stopping;
};

/* One that waits for a human. */
struct pending {
	struct list link;
	struct list bucket_link;
	struct list waiters;
	struct text id;
	struct text session; /* {NULL, 0}: none */
	uint64_t due_ms;     /* steady; 0: never */
	enum approval_status end_as;
	bool ending; /* on its way to the store */
	char own[];  /* the texts */
};

struct approval_ask;

struct approval_waiter {
	struct list link;         /* in pending->waiters or approvals->refused */
	struct approval_ask *ask; /* on its way to the store; NULL: not */
	approval_fn on_kept;
	approval_fn fn;
	void *arg;
	int result; /* of a refused one */
	struct why why;
};

/* ---- pending.c: at hand ---- */

struct pending *pending_find(struct approvals *a, struct text id);
/* Makes it if it is not there; NULL: no memory. */
struct pending *pending_get(struct approvals *a, const struct approval *row);
/* It ends so when the loop turns, unless somebody decides before. */
void pending_end_as(struct approvals *a, struct pending *p, enum approval_status status);
/* An end that could not be kept: again, a little later. */
void pending_end_again(struct approvals *a, struct pending *p);
/* Not at hand any more; its waiters go to the list. */
void pending_take(struct approvals *a, struct pending *p, struct list *ret_waiters);
void pending_on_due(void *approvals);
void pending_free_all(struct approvals *a);
int pending_load(struct approvals *a);

/* ---- ask.c ---- */

/* waiter NULL: fn comes when it is kept. Else all is told to the waiter, nothing of it before this
 * returns. */
void approval_ask(struct approvals *a, const struct approval_new *in, approval_fn fn, void *arg,
		  struct approval_waiter *waiter);
/* The waiter has left. */
void approval_ask_forget(struct approval_ask *ask);

/* ---- session.c ---- */

/* Whether the session ended after that request was made, and before it came here. */
bool approval_ended_after(const struct approvals *a, uint64_t serial, struct text session);
void approval_ended_clear(struct approvals *a);

/* ---- wait.c ---- */

struct approval_waiter *waiter_new(approval_fn on_kept, approval_fn fn, void *arg);
/* Frees it, then tells. */
void waiter_tell(struct approval_waiter *w, int result, const struct approval *approval,
		 const struct why *why);
/* All of the list, which others may leave meanwhile. */
void waiters_tell(struct list *waiters, int result, const struct approval *approval,
		  const struct why *why);
/* With the next turn of the loop. */
void waiter_refuse(struct approvals *a, struct approval_waiter *w, int result,
		   const struct why *why);
void waiters_on_later(void *approvals);
void waiters_free(struct list *waiters);

/* ---- decide.c ---- */

/* How the call that it is tied to stands. */
enum session_approval approval_event_word(enum approval_status status);

/* Ends p as it says; nobody asked for it. */
void approval_end(struct approvals *a, struct pending *p);

/* ---- decider.c: on the writer's thread ---- */

/* Which process asks; row says none where it cannot be told. */
void asker_see(const struct peer *peer, struct approval *row);

/* Whether the client may decide what row asks, or, without a row, hand that out. What is known of it
 * is added to ret_by, which may be NULL. */
int decider_check(struct approvals *a, struct arena *arena, const struct approval_client *client,
		  const struct approval *row, struct approval *ret_by, struct why *why);

/* ---- policy.c ---- */

/* On the writer's thread: what rules and grants make of it, in row. A grant has one use less. */
int policy_decide(struct connection *db, struct arena *arena, const struct approval_rules *rules,
		  struct approval *row);
int policy_rules_new(const struct approval_rule *rules, unsigned n,
		     struct approval_rules **ret_rules);
void policy_rules_unref(struct approval_rules *rules); /* accepts NULL */

/* ---- grant.c ---- */

/* On the writer's thread. Refuses one too many. */
int grant_keep(struct connection *db, struct arena *arena, const struct grant *row,
	       struct why *why);

/* ---- event.c: on the writer's thread ---- */

int approval_tell_requested(struct events *events, const struct approval *row, unsigned total);
int approval_tell_resolved(struct events *events, const struct approval *row);

/* ---- read.c ---- */

/* As it is told; without memory for its input that is {}. */
struct approval approval_of(struct arena *a, const struct approval *row);

/* ---- approval.c ---- */

int approval_check_text(struct text t, const char *field, size_t max, struct why *why);

struct named_text {
	struct text text;
	const char *field;
	size_t max; /* bytes */
};
int approval_check_texts(const struct named_text *texts, unsigned n, struct why *why);
