/*
 * An agent's hook, as hook.run and POST /hook run it: koined asks for a decision, or records what the
 * agent does and finds what it should remember, and words the answer for the agent.
 *
 * No thread waits for a decision.
 */
#pragma once

#include "base/uuid.h"
#include "call/call.h"
#include "engine/approval/approval.h"
#include "engine/session/note.h"
#include "engine/session/observed.h"
#include "hook/hook.h"

/* In its call's arena; call->opened points to it. */
struct hook_call {
	struct hook hook;
	struct hook_run run;
	struct text id;          /* of the approval */
	int64_t wait_ms;         /* 0: approval.timeout */
	enum approval_bond bond; /* BOND_PROCESS: the client may ask again under the same id */
	struct text status;      /* of the approval; {NULL, 0}: none was decided */
	struct text said;        /* the answer, as JSON; {NULL, 0}: nothing */
	struct done (*end)(struct hook_call *h); /* responds with it */

	/* the rest is hook.c's */
	struct call *call;
	struct approval_waiter *waiter;
	struct hook_note note;
	struct session_seen seen;
};

/* Words an outcome for the agent, into `said`. On failure `said` is empty, and the call must fail: an
 * agent takes silence for consent. */
int hook_say(struct hook_call *h, const struct hook_outcome *o);

/* For a hook that was read; and for one with `told`, about which nobody decides. On the loop. A call
 * that fails has not called `end`. */
struct done hook_decide(struct call *c, struct hook_call *h);
struct done hook_tell(struct call *c, struct hook_call *h);
