/*
 * Internal to engine/approval. Approvals that wait for a human are held in memory on the loop,
 * each with its waiters and its expiry time, but without its input, which only the store has.
 *
 * The rules and grants are evaluated on the writer's thread, in the transaction that stores
 * the outcome.
 */
#pragma once

#include "base/list.h"
#include "base/sets.h"
#include "engine/approval/approval.h"
#include "engine/record/record.h"
#include "store/approval.h"

struct connection;

enum {
	APPROVAL_ARENA_MAX = 8 << 20,         /* of a request or a decision on its way */
	APPROVAL_INPUT_ARENA_MAX = 16 << 20,  /* of an input that is temporarily unpacked */
	APPROVAL_COMING_BYTES_MAX = 64 << 20, /* of all requests on their way to the store */
	APPROVAL_SHOWN_INPUT_MAX = 32 << 10,  /* packed bytes that fit into an event */
	APPROVAL_NAME_MAX = 256,              /* of sessions, runs, agents, tool uses */
	APPROVAL_ORIGIN_MAX = 4096,
	APPROVAL_PATTERN_MAX = 1024,
	APPROVAL_TIE_MS = 300 * 1000, /* a call and its approval are at most this far apart */
	APPROVAL_AGAIN_MS = 1000, /* delay before an end that could not be stored is tried again */
};

#define APPROVAL_DISCONNECTED "the requesting client disconnected"

/* The rules, alive as long as somebody reads them. References are counted on the loop only. */
struct approval_rules {
	unsigned refs;
	unsigned n;
	struct arena arena;
	struct approval_rule *list;
};

struct approvals {
	struct approvals_opts opts; /* without the rules */
	struct records records;
	struct approval_rules *rules;
	struct list pending; /* oldest first */
	struct table by_id;  /* the same; by_id.n is their number */
	unsigned n_due;      /* how many of these have an expiry time */
	unsigned n_coming;   /* requests on their way to the store */
	size_t n_coming_bytes;
	/* Distinguishes requests made before a session's end from those made after it. */
	uint64_t n_asked;
	unsigned n_ended;
	struct list ended; /* sessions that ended while requests were on their way */
	struct timer *due;
	uint64_t armed_ms; /* steady clock; 0: the timer is not running */
	uint64_t sweep_ms; /* steady clock: the next sweep */
	bool ends_fail;    /* logged once */
	struct approval_figures figures;
	bool stopping;
};

/* How a pending approval ends if nobody decides it. */
enum pending_end {
	END_EXPIRES,
	END_SESSION, /* the session has ended, or has made the call */
	END_CLIENT,  /* the asker is gone */
	END_RESTART, /* the asker was part of an earlier daemon */
};

/* An approval that waits for a human. */
struct pending {
	struct list link;
	struct table_link by_id;
	struct approvals *approvals;
	struct list waiters;
	struct approval row; /* id, session, agent, tool, origin and host; host {NULL, 0}: here */
	bool left;           /* asked under an earlier daemon, and not again */
	struct record record;
	/* The tool and what it is for, as a number; 0: the call has an id of its own, or there is
	 * none. */
	uint64_t call;
	uint64_t due_ms; /* steady clock; 0: never */
	enum pending_end end;
	bool ending; /* on its way to the store */
	/* bond.c */
	enum approval_bond bond;
	bool gone;        /* its asker is gone: it is to be withdrawn */
	unsigned n_bound; /* how many waiters it was bound to, one after the other */
	bool waiter_gone; /* the process is; another may hold its connection */
	int64_t waiter_pid;
	int64_t waiter_started;
	struct process_watch *waiter; /* NULL: not watched */
	struct process_watch *asker;
	uint64_t expires_ms; /* steady clock; 0: never */
	char own[];          /* the texts */
};

struct approval_ask;

struct approval_waiter {
	struct list link;         /* in pending->waiters, or in none */
	struct approval_ask *ask; /* its request on the way to the store; NULL: none */
	struct pending *pending;  /* in whose list it is; NULL: none */
	approval_fn on_kept;
	approval_fn fn;
	void *arg;
	bool until_stored; /* fn is called when the approval is stored, whether it is decided or not */
};

/* ---- approval.c ---- */

/* A decision is stored. */
void approval_note(struct approvals *a, const struct approval *row, enum approval_by by);

/* ---- pending.c: approvals in memory ---- */

struct pending *pending_find(struct approvals *a, struct text id);
/* Makes it if it does not exist; NULL: no memory. */
struct pending *pending_get(struct approvals *a, const struct approval *row);
/* It ends like this on the next pass of the loop, unless somebody decides before. */
void pending_end_as(struct approvals *a, struct pending *p, enum pending_end end);
/* An end could not be stored: try it again a little later. */
void pending_end_again(struct approvals *a, struct pending *p);
/* It is decided, as the row says, or gone (NULL): tells its waiters. */
void pending_resolved(struct approvals *a, struct pending *p, const struct approval *row);
/* Removes it from memory; its waiters move to the list. */
void pending_take(struct approvals *a, struct pending *p, struct list *ret_waiters);
/* Its waiters move to the list. */
void pending_take_waiters(struct pending *p, struct list *ret_waiters);
void pending_on_due(void *approvals);
void pending_free_all(struct approvals *a);
int pending_load(struct approvals *a);

/* An end was refused, because another process waits for it now. */
void pending_go_on(struct approvals *a, struct pending *p);

/* ---- bond.c: the processes that wait ---- */

/* Watches those of the row, which is as the store has it. */
void pending_bind(struct pending *p, const struct approval *row);
/* The end of an earlier waiter, when it had been bound n_bound times, was not stored, and another process
 * waits now. That one may be gone, too. */
void pending_bound_anew(struct pending *p, unsigned n_bound);
/* After a restart: what only a connection waited for is withdrawn. */
void pending_bind_again(struct pending *p, const struct approval *row);
void pending_unbind(struct pending *p);
/* A waiter's connection is closed. */
void pending_abandoned(struct pending *p);
/* Whether the row is still bound to the process that is gone. */
bool pending_is_bound(const struct approvals *a, int64_t waiter_pid, int64_t waiter_started,
		      const struct approval *row);

/* ---- follow.c: other hosts ---- */

int approvals_follow(struct approvals *a);

/* ---- ask.c ---- */

/* If it returns 0, everything else goes to the waiter, and nothing before that. */
int approval_ask(struct approvals *a, const struct approval_new *in, struct approval_waiter *waiter,
		 struct error *error);
/* The waiter has left; with `abandoned`, since its connection is closed. */
void approval_ask_forget(struct approval_ask *ask, bool abandoned);

/* ---- session.c ---- */

/* Whether the session ended after that request was made, and before it arrived here. */
bool approval_ended_after(const struct approvals *a, uint64_t serial, struct text session);
void approval_ended_clear(struct approvals *a);

/* ---- wait.c ---- */

/* Frees it, then calls its callback. */
void waiter_tell(struct approval_waiter *w, int result, const struct approval *approval,
		 const struct error *error);
/* All waiters in the list; others may leave it meanwhile. */
void waiters_tell(struct list *waiters, int result, const struct approval *approval,
		  const struct error *error);
void waiters_free(struct list *waiters);

/* ---- decide.c ---- */

/* The state of the call that it is tied to. */
enum session_approval approval_event_word(enum approval_status status);

/* Ends p in this way, without a request from anybody. */
void approval_end(struct approvals *a, struct pending *p);

/* ---- decider.c: on the writer's thread ---- */

/* Finds the asking process, and the waiting one of a row that is bound; row names none that cannot
 * be identified. */
void asker_see(const struct approval_client *from, struct approval *row);

/* Whether the client may decide what row asks or, without a row, make grants. What is known of
 * the client is added to ret_by, which may be NULL. */
int decider_check(struct approvals *a, struct arena *arena, const struct approval_client *client,
		  const struct approval *row, struct approval *ret_by, struct error *error);

/* ---- policy.c ---- */

/* Runs on the writer's thread: applies rules and grants, with the result in row. A grant that is
 * used has one use less. */
int policy_decide(struct connection *db, struct arena *arena, const struct approval_rules *rules,
		  struct approval *row);
int policy_rules_new(const struct approval_rule *rules, unsigned n,
		     struct approval_rules **ret_rules);
void policy_rules_unref(struct approval_rules *rules); /* accepts NULL */

/* ---- grant.c ---- */

/* Runs on the writer's thread. Refuses it if there are too many. */
int grant_keep(struct connection *db, struct arena *arena, const struct grant *row,
	       struct error *error);

/* ---- event.c: on the writer's thread ---- */

int approval_tell_requested(struct events *events, const struct approval *row, unsigned total);
int approval_tell_resolved(struct events *events, const struct approval *row);

/* ---- read.c ---- */

/* In the form for callbacks; if there is no memory for its input, the input is {}. */
struct approval approval_of(struct arena *a, const struct approval *row);
