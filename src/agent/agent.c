#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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
			struct agent_turn **ret_turn, struct error *error)
{
	(void)ask, (void)sink, (void)ret_turn;
	return refuse(error, REFUSE_UNAVAILABLE, "agent '%s' is not available: %s", a->name,
		      absent_of(a)->reason);
}

/* Such an agent has no turns. */
static void absent_cancel(struct agent_turn *t)
{
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

struct later {
	struct list link;
	struct wake *wake;
	agent_health_fn fn;
	void *arg;
	bool ok;
	char *text;
};

static void later_free(struct later *p)
{
	if (!p)
		return;
	wake_free(p->wake);
	free(p->text);
	free(p);
}

CLEANUP_POINTER(later, later_free)

static void agent_notify(void *arg)
{
	struct later *p = arg;
	const struct agent_health health = {.ok = p->ok, .text = p->text};

	list_remove(&p->link);
	p->fn(p->arg, &health);
	later_free(p);
}

int health_later(struct loop *l, struct list *open, bool ok, const char *text, agent_health_fn fn,
		 void *arg)
{
	CLEANUP(later_freep) struct later *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->fn = fn;
	p->arg = arg;
	p->ok = ok;
	p->text = strdup(text);
	if (!p->text)
		return -ENOMEM;
	r = wake_new(l, agent_notify, p, &p->wake);
	if (r != 0)
		return r;
	wake_send(p->wake);
	list_append(open, &p->link);
	TAKE(p);
	return 0;
}

void health_drop(struct list *open)
{
	while (!list_empty(open)) {
		struct later *p = list_entry(list_first(open), struct later, link);
		const struct agent_health health = {
			.ok = false, .text = "the agent was removed from the settings"};

		list_remove(&p->link);
		p->fn(p->arg, &health);
		later_free(p);
	}
}
