/* Who asks, for an approval that is bound to its asker. */
#pragma once

#include "call/call.h"
#include "engine/approval/approval.h"
#include "call/client.h"

/* Reads a file in /proc. */
static inline struct approval_client call_asker(const struct call *c)
{
	struct approval_client asker = {.is = true, .peer = c->peer};

	if (c->client)
		(void)client_process(c->client, &asker.pid, &asker.started);
	return asker;
}
