/*
 * Approvals: the one inbox for every agent that asks a human.
 *
 * Who asks gives an id or gets one; rules of the settings (`allow`, `ask`, `deny`; the last that
 * matches wins) and grants answer first, then a human. The outcome is kept before anybody is
 * told, the first decision wins, and "nobody answered in time" is never "denied".
 *
 * Whoever waits is told once. One that was cut off (a restart) asks again with the same id: it
 * waits on, or gets the answer that came meanwhile.
 *
 * Told by the event log:
 *	approval.requested {approval_id, call_id, session_id, run_id, type, tool_name, count, total, …}
 *	approval.resolved {approval_id, call_id, session_id, run_id, type, tool_name, decision, approved,
 *		response_text, …}
 *
 * Functions that take a lane read on that worker's connection; all others belong to the loop. Texts
 * that go in are copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/noun/approval.h"
#include "base/noun/session.h"
#include "base/text.h"
#include "base/value.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/peer.h"
#include "io/work.h"

struct approvals;
struct approval_waiter;
struct events;
struct store;

enum {
	APPROVAL_ID_MAX = 128,
	APPROVAL_TOOL_MAX = 256,
	APPROVAL_COMMENT_MAX = 64 << 10,
	APPROVAL_INPUT_MAX = 1 << 20, /* bytes, packed */
	APPROVAL_INPUT_VALUES_MAX = 50000,
	APPROVAL_RULES_MAX = 128,
	APPROVAL_GRANTS_MAX = 1000,
	APPROVAL_LIST_MAX = 1000,
};

/* Who is at the other end of the connection that something came by; not `is`: koined itself. */
struct approval_client {
	bool is;
	struct peer peer;
};

enum approval_verdict { VERDICT_ASK, VERDICT_ALLOW, VERDICT_DENY };

/*
 * A rule of the settings. All that it names must match; texts are patterns with * and ?, and must
 * fit as a whole. The last that matches wins. `ask`, and no rule, leave it to the grants, of which
 * one that denies wins, and then to a human. Questions (contacts) are a human's, whatever the
 * rules.
 */
struct approval_rule {
	const char *name;
	enum approval_verdict verdict;
	const char *agent; /* NULL: any; so with those that follow */
	const char *tool;
	/* The texts in the input, at any depth; or NAME=PATTERN: all in the input's member of that name
	 * alone, which is what a rule that allows should name. What allows must fit all of these, and
	 * no key may stand twice; what denies fits if anything does. */
	const char *input;
	const char *comment; /* told with a verdict */
};

struct approvals_opts {
	struct store *store;
	struct events *events; /* NULL: nothing is told */
	struct loop *loop;
	struct background background;
	unsigned pending;   /* that may wait for a human; 0: 1000 */
	int64_t timeout_ms; /* for those who give none; 0: none */
	int64_t keep_ms;    /* decided ones; 0: for ever */
	bool agents_decide; /* what they have asked themselves, too */
	const struct approval_rule *rules;
	unsigned n_rules;
	/* On the loop: something of this session waits for a human (+1), or does not any more (-1).
	 * May be NULL. */
	void (*on_wait)(void *arg, struct text session, int change);
	void *arg;
};

/* What is pending in the store waits on. */
int approvals_start(const struct approvals_opts *opts, struct approvals **ret_approvals,
		    struct why *why);
void approvals_set_rules(struct approvals *a, const struct approval_rule *rules, unsigned n);
/* How many wait for a human; 0 for NULL. */
unsigned approvals_pending(const struct approvals *a);
/* Whoever waits is told REFUSE_STOPPING, and asks again. Nothing is asked or expires any more. */
void approvals_stop(struct approvals *a);
void approvals_free(struct approvals *a); /* accepts NULL */

struct approval_new {
	struct text id; /* {NULL, 0}: one is made, "local-UUID" */
	enum approval_kind kind;
	struct text session; /* ours, or the agent's own id of one; {NULL, 0}: not said */
	struct text run;     /* {NULL, 0}: not said */
	bool must_be_known;  /* REFUSE_NOT_FOUND unless session or run is one of ours */
	struct text agent;
	struct text origin;
	struct text tool;
	struct text tool_use_id;
	const struct value *input; /* an object; NULL: {} */
	int64_t timeout_ms;        /* 0: the default; < 0: none */
	struct approval_client from;
};

/* Made or found, and kept; its input unpacked. */
typedef void (*approval_fn)(void *arg, int result, const struct approval *approval,
			    const struct why *why);

/*
 * fn comes when it is kept: pending, or decided already by a rule or a grant. An id that is there
 * is that one, as it stands; with another kind, agent, tool or input it is REFUSE_CONFLICT. One that
 * a rule or a grant decides is told by approval.resolved alone. REFUSE_PARAMS, REFUSE_LIMIT,
 * REFUSE_NOT_FOUND ("session not found: …"), REFUSE_STOPPING.
 */
void approval_request(struct approvals *a, const struct approval_new *in, approval_fn fn,
		      void *arg);

/*
 * The same, but fn comes when it is decided, whatever the outcome. REFUSE_STOPPING: ask again. One
 * waiter may leave until fn came; the approval stays. Nothing comes before this returns, and all
 * refusals come to fn: what is returned is 0, or -ENOMEM and fn does not come.
 * on_kept, which may be NULL, comes before, once, when it is kept and pending.
 */
int approval_wait(struct approvals *a, const struct approval_new *in, approval_fn on_kept,
		  approval_fn fn, void *arg, struct approval_waiter **ret_waiter);
void approval_leave(struct approval_waiter *w); /* accepts NULL */

struct approval_decision {
	struct text id;
	enum approval_status status; /* APPROVED, DENIED, RESPONDED, SUPERSEDED */
	struct text comment;         /* {NULL, 0}: none */
	struct text by;              /* {NULL, 0}: "human" */
	struct approval_client from;
	/* The same agent's same tool, whatever the input, is allowed (or denied) from now on without
	 * asking. */
	bool grants;
	bool grant_session; /* only in its session */
	int64_t grant_ms;   /* 0: for good */
	int64_t grant_uses; /* 0: any number */
};

/* fn comes when it is kept, with how it is now. REFUSE_NOT_FOUND: "approval not found: ID";
 * REFUSE_CONFLICT: "this approval has already been responded to", with the approval as it is;
 * REFUSE_PARAMS: a decision of the wrong kind (a function call is approved or denied, a contact
 * responded to, with a comment; both can be superseded), a grant that cannot be; REFUSE_FORBIDDEN:
 * a client that belongs to the agent which asks, or that koined has started, or that cannot be told.
 * Such a one may withdraw what was asked. */
void approval_decide(struct approvals *a, const struct approval_decision *d, approval_fn fn,
		     void *arg);

/* Whoever asked has left: it is superseded, unless it is decided. Nobody is told. */
void approval_withdraw(struct approvals *a, struct text id, struct text by);

/* What a decision means to a program that has asked whether it may: 0, or why not. "Nobody has
 * answered" is never "denied". */
int approval_verdict(const struct approval *row, struct why *why);

/* On the loop: a session has ended; what it asked is of no use any more. Accepts NULL. */
void approval_session_ended(struct approvals *a, struct text session);

struct approval_filter {
	int status;          /* enum approval_status, or -1: any */
	struct text session; /* {NULL, 0}: any */
	int64_t limit;       /* 0: APPROVAL_LIST_MAX */
};

/* Pending ones oldest first, others newest first; up to 8 MiB of them, and what the arena has room
 * for. */
int approval_list(struct approvals *approvals, int lane, struct arena *a,
		  const struct approval_filter *f, struct approval **ret_approvals,
		  unsigned *ret_n);

/* REFUSE_NOT_FOUND: "approval not found: ID". A beginning that only one has will do where
 * `short_id`; what begins several is refused with their ids (REFUSE_PARAMS), even if it is one
 * itself. */
int approval_get(struct approvals *approvals, int lane, struct arena *a, struct text id,
		 bool short_id, struct approval *ret_approval, struct why *why);

int grant_list(struct approvals *approvals, int lane, struct arena *a, struct grant **ret_rows,
	       unsigned *ret_n);
/* fn's approval is NULL. Without an id one is made; uses 0 is any number. It names what it is for:
 * at least one of session, agent (as it is), tool and pattern (as a rule's input). Who belongs to an
 * agent that has ever asked is refused (REFUSE_FORBIDDEN); `from` may be NULL. */
void grant_add(struct approvals *a, const struct grant *row, const struct approval_client *from,
	       approval_fn fn, void *arg);
void grant_remove(struct approvals *a, struct text id, const struct approval_client *from,
		  approval_fn fn, void *arg);

/* On the writer's thread: whether the other end may let things act. Not what koined itself runs, nor who
 * belongs to an agent that has ever asked: REFUSE_FORBIDDEN. Accepts NULL. */
int approval_may_decide(struct approvals *approvals, struct arena *a,
			const struct approval_client *client, struct why *why);

/*
 * For sessions, on the writer's thread within a batch: a call of a tool has come; the
 * approval that asked for it before is tied to it, and the event, which was added, says pending.
 * *ret_id {NULL, 0}: none did.
 */
int approval_tie(struct approvals *approvals, struct arena *a, const struct session_event *event,
		 struct text run, struct text *ret_id);

/* On the writer's thread: deletes some that were decided too long ago. */
int approval_sweep(struct approvals *a, bool *ret_more);
/* On the loop: whether it is time to. */
bool approval_sweeps(struct approvals *a); /* accepts NULL */
