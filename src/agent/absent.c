#include "agent/absent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/health.h"
#include "base/list.h"

struct absent {
	struct agent agent;
	struct agent_ops ops; /* its own copy: the kind that the agent would have had */
	struct loop *loop;
	struct list probes;
	char reason[ABSENT_REASON_MAX];
};

static struct absent *absent_of(struct agent *a)
{
	return list_entry(a, struct absent, agent);
}

static int absent_start(struct agent *a, const struct agent_ask *ask, const struct agent_sink *sink,
			struct agent_turn **ret_turn, struct why *why)
{
	(void)ask, (void)sink, (void)ret_turn;
	return refuse(why, REFUSE_UNAVAILABLE, "agent '%s' is not available: %s", a->name,
		      absent_of(a)->reason);
}

/* Such an agent has no turns. */
static void absent_cancel(struct agent_turn *t)
{
	(void)t;
}

static int absent_probe(struct agent *a, agent_health_fn fn, void *arg)
{
	struct absent *absent = absent_of(a);

	return health_later(absent->loop, &absent->probes, false, absent->reason, fn, arg);
}

static void absent_free(struct agent *a)
{
	struct absent *absent = absent_of(a);

	health_drop(&absent->probes);
	free(absent);
}

int absent_new(struct loop *l, const char *name, const char *kind, const char *reason,
	       struct agent **ret_agent)
{
	struct absent *absent = calloc(1, sizeof(*absent));

	if (!absent)
		return -ENOMEM;
	absent->ops = (struct agent_ops) {
		.kind = kind,
		.start = absent_start,
		.cancel = absent_cancel,
		.probe = absent_probe,
		.free = absent_free,
	};
	absent->agent.ops = &absent->ops;
	snprintf(absent->agent.name, sizeof(absent->agent.name), "%s", name);
	snprintf(absent->reason, sizeof(absent->reason), "%s", reason);
	absent->loop = l;
	list_init(&absent->probes);
	*ret_agent = &absent->agent;
	return 0;
}
