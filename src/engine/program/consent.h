/*
 * A request to the approver, as processes and tools make it: they wait for the answer, and
 * withdraw the request when they no longer need it. It is embedded in the asker.
 */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "base/error.h"
#include "engine/approval/approval.h"

struct consent {
	struct approvals *approvals; /* NULL: there is nobody to approve it */
	const bool *stopping;        /* if set, nothing is withdrawn: the next start does that */
	struct text by;              /* who withdraws it */
	/* Called once, after consent_ask has returned. 0: it is allowed; else the reason why
	 * not. */
	void (*fn)(void *arg, int result, const struct error *error);
	void *arg;

	struct approval_waiter *waiter; /* NULL: nothing is asked, or it is decided */
	char id[APPROVAL_ID_MAX + 1];   /* of the request once it is stored; "" until then */
	bool left;
};

int consent_ask(struct consent *c, const struct approval_new *in, struct error *error);

/* The request is no longer needed. fn is called with REFUSE_CANCELLED: at once or, if the
 * request is still on its way to the store, when it has been withdrawn. */
void consent_leave(struct consent *c);

/* fn is not called any more, and nothing is withdrawn. */
void consent_drop(struct consent *c);
