/*
 * Stale approvals: they were requested under an earlier daemon by an asker that, unlike
 * sessions, does not ask again, so nobody waits for them. They are withdrawn when the daemon
 * starts.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "io/work.h"

struct approval_old;
struct approval;
struct approvals;
struct loop;

/* What this agent has asked and the asker recognizes as its own; all of this must live as long
 * as the asker. */
struct approval_old_opts {
	struct loop *loop;
	struct workers *workers;
	const char *agent;
	bool (*is_own)(const struct approval *row);
	const bool *stopping;
	/* The asker's, for approval_old_free: set while the search runs. */
	struct approval_old **place;
};

void approval_withdraw_old(struct approvals *a, const struct approval_old_opts *opts);
void approval_old_free(struct approval_old *o); /* accepts NULL */
