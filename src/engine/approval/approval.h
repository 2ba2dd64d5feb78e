/*
 * Approvals: the one inbox for every agent that asks a human.
 *
 * The asker gives an id or gets one. Rules of the settings (`allow`, `ask`, `deny`; the last that
 * matches wins) and grants answer first, then a human. The outcome is stored before anybody is
 * told, the first decision wins, and "timed out waiting for an answer" is never "denied".
 *
 * Hosts that share a store have one inbox: whoever waits is told what was decided on any of them.
 *
 * A waiter is told once. If it was cut off (by a restart), it asks again with the same id: it
 * then continues to wait, or gets the answer that came in the meantime.
 *
 * An approval may be bound to its asker. When the process that waits is gone, or the agent above
 * it, it is withdrawn; at a start, too, if that process ended meanwhile, or if only a connection
 * waited. Only the host where it was asked looks at processes.
 *
 * The event log has:
 *	approval.requested {id, session_id, run_id, kind, tool, input?, count, total, …}
 *	approval.resolved {id, session_id, run_id, kind, tool, status, approved, decided_by, …}
 *
 * Functions that take a lane read on that worker's connection; all others belong to the loop. Texts
 * that are passed in are copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/metric.h"
#include "model/approval.h"
#include "model/session.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/peer.h"
#include "io/work.h"

struct approvals;
struct approval_waiter;
struct events;
struct node;
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

/* Who is at the other end of the connection; if `is` is not set: koined itself. */
struct approval_client {
	bool is;
	pid_t pid; /* the process that connected, still alive; 0: unknown */
	long long started;
	/* A human at the machine has let it in, and no agent gets in there. What comes by a proxy of
	 * another user, into which we cannot look, decides all the same. */
	bool let_in;
	struct peer peer;
};

enum approval_verdict { VERDICT_ASK, VERDICT_ALLOW, VERDICT_DENY };

/*
 * A rule of the settings. Everything that it names must match; texts are patterns with * and
 * ?, and must match as a whole. The last rule that matches wins. `ask`, or no rule, leaves the
 * decision to the grants, among which one that denies wins, and then to a human. Questions
 * (contacts) always go to a human, whatever the rules.
 */
struct approval_rule {
	const char *name;
	enum approval_verdict verdict;
	const char *agent; /* NULL: any; the same for those that follow */
	const char *tool;
	/* The texts in the input, at any depth; or NAME=PATTERN: only those in the input's
	 * member of that name, which is what a rule that allows should use. A rule that allows
	 * must match all of them, and no key may occur twice; a rule that denies matches if any
	 * of them does. */
	const char *input;
	const char *comment; /* returned with the verdict */
};

struct approvals_opts {
	struct store *store;
	struct events *events; /* NULL: no events are logged */
	struct node *node;     /* NULL: there is one host only */
	struct loop *loop;
	struct workers *workers;
	unsigned pending;   /* how many may wait for a human; 0: 1000 */
	int64_t timeout_ms; /* for requests that give none; 0: none */
	int64_t keep_ms;    /* decided ones; 0: for ever */
	bool agents_decide; /* they may also decide what they have asked themselves */
	const struct approval_rule *rules;
	unsigned n_rules;
	/* Runs on the loop: something in this session starts (+1) or stops (-1) waiting for a
	 * human. May be NULL. */
	void (*on_wait)(void *arg, struct text session, int change);
	void *arg;
};

/* What is pending in the store keeps waiting. */
int approvals_start(const struct approvals_opts *opts, struct approvals **ret_approvals,
		    struct error *error);
void approvals_set_rules(struct approvals *a, const struct approval_rule *rules, unsigned n);
/* How many wait for a human; 0 for NULL. */
unsigned approvals_pending(const struct approvals *a);

/* By whom decisions came. */
enum approval_by {
	APPROVAL_BY_CLIENT,
	APPROVAL_BY_RULE,
	APPROVAL_BY_GRANT,
	APPROVAL_BY_NOBODY,
	N_APPROVAL_BY
};

extern const char *const approval_by_names[N_APPROVAL_BY];

struct approval_figures {
	uint64_t n[N_APPROVAL_STATUSES][N_APPROVAL_BY]; /* decided since the start */
	struct histogram waited; /* of those that waited for a human, in milliseconds */
};

/* Runs on the loop; NULL for NULL. */
const struct approval_figures *approvals_figures(const struct approvals *a);

/* Waiters get REFUSE_STOPPING, and ask again later. From now on nothing is asked and nothing
 * expires. */
void approvals_stop(struct approvals *a);
void approvals_free(struct approvals *a); /* accepts NULL */

struct approval_new {
	struct text id; /* {NULL, 0}: one is made, "local-UUID" */
	enum approval_kind kind;
	struct text session; /* our id, or the agent's own id of one; {NULL, 0}: not given */
	struct text run;     /* {NULL, 0}: not given */
	bool must_be_known;  /* REFUSE_NOT_FOUND unless session or run is one of ours */
	struct text agent;
	struct text origin;
	struct text tool;
	struct text tool_use_id;
	const struct value *input; /* an object; NULL: {} */
	int64_t timeout_ms;        /* 0: the default; < 0: none */
	bool by_rules;             /* what no rule or grant decides is REFUSE_UNAVAILABLE */
	/* What it ends with, once it waits for a human. BOND_PROCESS becomes BOND_CONNECTION where
	 * the process is not known. */
	enum approval_bond bond;
	struct approval_client from;
};

/* An id for one that is to be withdrawn, perhaps, before it is stored. */
int approval_make_id(struct arena *arena, struct text *ret_id);

/* It was made or found, and is stored; its input is unpacked. */
typedef void (*approval_fn)(void *arg, int result, const struct approval *approval,
			    const struct error *error);

/*
 * Calls fn when the approval is stored: pending, or already decided by a rule or a grant. An
 * id that already exists stands for that approval in its current state; with another kind,
 * agent, tool or input it is REFUSE_CONFLICT. An approval that a rule or a grant decides is
 * only reported by approval.resolved. REFUSE_PARAMS, REFUSE_LIMIT, REFUSE_NOT_FOUND ("session
 * not found: …"), REFUSE_STOPPING. What is refused without the store is returned, and fn is not
 * called; nor is it called before this has returned.
 */
int approval_request(struct approvals *a, const struct approval_new *in, approval_fn fn, void *arg,
		     struct error *error);

/*
 * The same, but calls fn when it is decided, whatever the outcome. REFUSE_STOPPING: ask again.
 * The waiter may leave until fn is called; the approval stays. on_kept, which may be NULL, is
 * called once before fn, when the approval is stored and pending.
 */
int approval_wait(struct approvals *a, const struct approval_new *in, approval_fn on_kept,
		  approval_fn fn, void *arg, struct approval_waiter **ret_waiter,
		  struct error *error);
void approval_leave(struct approval_waiter *w); /* accepts NULL */
/* The same, because the waiter's connection is closed: an approval that is bound to it, and that nobody
 * else waits for, is withdrawn. */
void approval_abandon(struct approval_waiter *w); /* accepts NULL */

struct approval_decision {
	struct text id;
	enum approval_status status; /* APPROVED, DENIED, RESPONDED, SUPERSEDED */
	struct text comment;         /* {NULL, 0}: none */
	struct text by;              /* {NULL, 0}: "human" */
	struct approval_client from;
	/* A door of our own that it came by, which is recorded as its program: "notify"; a client
	 * at that door is examined all the same. {NULL, 0}: it came from a client, or from nobody. */
	struct text via;
	/* Refuses if what is asked is not what the decider was shown. Runs on the writer's thread, in
	 * the decision's transaction; its argument lives until fn is called. NULL: a client reads
	 * the approval itself. */
	int (*check)(const void *shown, const struct approval *row, struct error *error);
	const void *shown;
	/* From now on, the same agent's same tool is allowed (or denied) without asking,
	 * whatever the input. */
	bool grants;
	bool grant_session; /* only in its session */
	int64_t grant_ms;   /* 0: for good */
	int64_t grant_uses; /* 0: any number */
};

/* Calls fn when the decision is stored, with the approval's new state. REFUSE_NOT_FOUND:
 * "approval not found: ID"; REFUSE_CONFLICT: "this approval has already been responded to", with
 * the approval as it is; REFUSE_PARAMS: a decision of the wrong kind (a function call is
 * approved or denied, a contact is responded to, with a comment; both can be superseded), or an
 * impossible grant; REFUSE_FORBIDDEN: the client belongs to the agent that asks, or was started
 * by koined, or cannot be identified. Such a client may still withdraw what was asked. What is
 * refused without the store is returned, and fn is not called. */
int approval_decide(struct approvals *a, const struct approval_decision *d, approval_fn fn,
		    void *arg, struct error *error);

/* The asker does not wait any more: the approval is superseded, unless it is decided. No callback is called.
 * comment NULL: the asker's client has disconnected. */
void approval_withdraw(struct approvals *a, struct text id, struct text by, const char *comment);

/* Calls fn for each pending approval that this agent asked for on this host. The row has its id, session,
 * agent, tool and origin. */
void approvals_each(struct approvals *a, struct text agent,
		    void (*fn)(void *arg, const struct approval *row), void *arg);

/* Withdraws the approvals that this agent asked for under an earlier daemon, and has not asked for again, if
 * is_own: for askers that, unlike sessions, do not ask again after a restart. Accepts NULL. */
void approvals_withdraw_left(struct approvals *a, struct text agent,
			     bool (*is_own)(const struct approval *row));

/* Whether it was asked on this host, so that its asker is here, if anywhere. */
bool approval_is_of_here(const struct approvals *a, const struct approval *row);

/* What a decision means to a program that asked for permission: 0, or the reason why not.
 * "Nobody has answered" is never "denied". */
int approval_verdict(const struct approval *row, struct error *error);

/* Runs on the loop: a session has ended, so its open requests are of no use any more. Accepts
 * NULL. */
void approval_session_ended(struct approvals *a, struct text session);

/*
 * Runs on the loop: the agent has made this call, so somebody has said yes at its own dialog, and
 * the question is of no use any more. It is known by its session, its tool and its input: agents
 * give the call no id when they ask. Of several that are the same, the oldest goes. Accepts NULL.
 */
void approval_call_was_made(struct approvals *a, struct text session, struct text tool,
			    const struct value *input);

struct approval_filter {
	int status;          /* enum approval_status, or -1: any */
	struct text session; /* {NULL, 0}: any */
	int64_t limit;       /* 0: APPROVAL_LIST_MAX */
};

/* Pending ones come oldest first, others newest first; at most 8 MiB of them, and what fits into
 * the arena. */
int approval_list(struct approvals *approvals, int lane, struct arena *a,
		  const struct approval_filter *f, struct approval **ret_approvals,
		  unsigned *ret_n);

/* What the event log said, or would say, of a request; without a number. */
struct event;
int approval_as_event(struct arena *a, const struct approval *row, struct event *ret_event);

/* REFUSE_NOT_FOUND: "approval not found: ID". With `short_id`, a unique prefix is enough; a
 * prefix of several ids is refused with these ids (REFUSE_PARAMS), even if it is itself a whole
 * id. */
int approval_get(struct approvals *approvals, int lane, struct arena *a, struct text id,
		 bool short_id, struct approval *ret_approval, struct error *error);

int grant_list(struct approvals *approvals, int lane, struct arena *a, struct grant **ret_rows,
	       unsigned *ret_n);
/* fn's approval is NULL. Without an id one is made; uses 0 means any number. The grant must name
 * what it is for: at least one of session, agent (literally), tool and pattern (like a rule's
 * input). A client that belongs to an agent that has ever asked is refused (REFUSE_FORBIDDEN);
 * `from` may be NULL. What is refused without the store is returned, and fn is not called. */
int grant_add(struct approvals *a, const struct grant *row, const struct approval_client *from,
	      approval_fn fn, void *arg, struct error *error);
int grant_remove(struct approvals *a, struct text id, const struct approval_client *from,
		 approval_fn fn, void *arg, struct error *error);

/* Runs on the writer's thread: whether the client may let things act. REFUSE_FORBIDDEN for what
 * koined itself runs, and for a client that belongs to an agent that has ever asked. Accepts
 * NULL. */
int approval_may_decide(struct approvals *approvals, const struct approval_client *client,
			struct error *error);

/*
 * For sessions, on the writer's thread within a batch: a tool call has arrived. The approval
 * that was requested for it is tied to it, and the event, which is already added, is marked
 * pending. *ret_id {NULL, 0}: there was none.
 */
int approval_tie(struct approvals *approvals, struct arena *a, const struct session_event *event,
		 struct text run, struct text *ret_id);

/* Runs on the writer's thread. Deletes some that were decided too long ago. */
int approval_sweep(struct approvals *a, bool *ret_more);
/* Runs on the loop. True: it is time to do so, and the caller does it. */
bool approval_claim_sweep(struct approvals *a); /* accepts NULL */
