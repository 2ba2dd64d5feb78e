/* What the methods about approvals share. */
#pragma once

#include "call/call.h"
#include "engine/approval/approval.h"

struct approval_in {
	struct text id;
	struct text kind;
	struct text tool;
	const struct value *input;
	struct text session_id;
	struct text run_id;
	struct text agent;
	struct text origin;
	struct text tool_use_id;
	double timeout;
	bool by_rules;
};

/* Refuses the call where approvals were not started. */
int koine_need_approvals(struct call *c);

int koine_read_approval(struct call *c, struct approval_new *ret);

/* An approval_fn that answers the call with the approval's status. */
void koine_approval_told(void *arg, int result, const struct approval *a, const struct why *why);

/* ---- wait.c ---- */

struct done koine_approval_request(struct call *c);

/* ---- grant.c ---- */

struct done koine_grant_list(struct call *c);
struct done koine_grant_add(struct call *c);
struct done koine_grant_remove(struct call *c);

struct grant_in {
	struct text id;
	struct text tool;
	struct text pattern;
	struct text session_id;
	struct text agent;
	struct text verdict;
	struct text comment;
	double seconds;
	int64_t uses;
};
