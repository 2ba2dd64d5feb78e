#include "dialect/asker.h"

#include "call/client.h"

struct approval_client call_asker(const struct call *c)
{
	struct approval_client asker = {.is = true, .peer = c->peer};

	if (c->client)
		(void)client_process(c->client, &asker.pid, &asker.started);
	return asker;
}
