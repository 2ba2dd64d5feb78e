/*
 * A question to whoever approves, as processes and tools ask it: they wait for the answer, and withdraw
 * the question when they do not want it any more. It stands inside whatever asks.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "base/why.h"
#include "engine/approval/approval.h"

struct consent {
	struct approvals *approvals; /* NULL: there is nobody to approve it */
	const bool *stopping;        /* then nothing is withdrawn: the next start does that */
	struct text by;              /* who withdraws it */
	/* Comes once, after consent_ask has returned. 0: it may; else why not. */
	void (*fn)(void *arg, int result, const struct why *why);
	void *arg;

	struct approval_waiter *waiter; /* NULL: nothing is asked, or it is decided */
	char id[APPROVAL_ID_MAX + 1];   /* of the question once it is kept; "" until then */
	bool left;
};

int consent_ask(struct consent *c, const struct approval_new *in, struct why *why);

/* It is not wanted any more. fn comes with REFUSE_CANCELLED: at once, unless the question is still on
 * its way to the store; then when it has been withdrawn. */
void consent_leave(struct consent *c);

/* fn does not come any more, and nothing is withdrawn. */
void consent_drop(struct consent *c);
