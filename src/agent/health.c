/* A health that is reported later; see health.h. */
#include "agent/health.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

static void later_freep(struct later **p)
{
	later_free(*p);
}

static void tell(void *arg)
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
	r = wake_new(l, tell, p, &p->wake);
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
