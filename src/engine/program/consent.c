#include "engine/program/consent.h"

#include <stdio.h>

static void program_consent_end(struct consent *c, int result, const struct error *error)
{
	struct error cancelled = {.text = ""};

	if (c->left) {
		result = refuse(&cancelled, REFUSE_CANCELLED, "cancelled");
		error = &cancelled;
	}
	c->fn(c->arg, result, error);
}

static void withdraw(struct consent *c)
{
	consent_drop(c);
	if (c->id[0] && !*c->stopping)
		approval_withdraw(c->approvals, text_of(c->id), c->by, NULL);
	program_consent_end(c, 0, NULL);
}

static void on_kept(void *arg, int result, const struct approval *approval,
		    const struct error *error)
{
	struct consent *c = arg;

	if (result != 0)
		return;
	snprintf(c->id, sizeof(c->id), "%.*s", TEXT_ARGS(approval->id));
	if (c->left)
		withdraw(c);
}

static void on_decided(void *arg, int result, const struct approval *approval,
		       const struct error *error)
{
	struct consent *c = arg;
	struct error own = {.text = ""};

	c->waiter = NULL;
	c->id[0] = '\0';
	if (result == 0) {
		error = &own;
		result = approval_verdict(approval, &own);
	}
	program_consent_end(c, result, error);
}

int consent_ask(struct consent *c, const struct approval_new *in, struct error *error)
{
	if (!c->approvals)
		return refuse(
			error, REFUSE_FORBIDDEN,
			"the action requires approval, but this server does not support approvals");
	return approval_wait(c->approvals, in, on_kept, on_decided, c, &c->waiter, error);
}

void consent_leave(struct consent *c)
{
	c->left = true;
	if (c->id[0] || *c->stopping)
		withdraw(c);
}

void consent_drop(struct consent *c)
{
	approval_leave(c->waiter);
	c->waiter = NULL;
}
