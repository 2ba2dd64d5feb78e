/* Which agents answer, and how fast: all are asked at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "engine/chat/inner.h"

enum { PROBE_TEXT_MAX = 200 };

struct probe;

struct probed {
	struct probe *probe;
	struct chat_agent_info info;
	char text[PROBE_TEXT_MAX];
	bool answered;
};

struct probe {
	chat_agents_fn fn;
	void *arg;
	struct timer *timer;
	uint64_t started_ms;
	unsigned n;
	unsigned n_open;
	bool told;
	struct chat_agent_info *infos; /* behind the agents */
	struct probed agents[];
};

/* It lives until the last agent has answered, even if nobody waits for that any more. */
static void tell(struct probe *p)
{
	if (p->told)
		return;
	p->told = true;
	timer_free(p->timer);
	p->timer = NULL;
	for (unsigned i = 0; i < p->n; i++)
		p->infos[i] = p->agents[i].info;
	p->fn(p->arg, p->infos, p->n);
}

static void on_time(void *arg)
{
	struct probe *p = arg;

	for (unsigned i = 0; i < p->n; i++) {
		if (!p->agents[i].answered)
			p->agents[i].info.ms = CHAT_PROBE_MS;
	}
	tell(p);
}

static void answered(struct probed *a, bool ok, const char *text)
{
	struct probe *p = a->probe;

	a->answered = true;
	a->info.ok = ok;
	a->info.ms = (int64_t)(clock_steady_ms() - p->started_ms);
	if (snprintf(a->text, sizeof(a->text), "%s", text) >= (int)sizeof(a->text))
		a->text[utf8_whole(a->text, sizeof(a->text) - 1)] = '\0';
	if (--p->n_open > 0)
		return;
	tell(p);
	free(p);
}

static void on_health(void *arg, const struct agent_health *health)
{
	answered(arg, health->ok, health->text ? health->text : "");
}

static void describe(struct probe *p, const struct chat_roster *roster, unsigned i)
{
	const struct agent *agent = roster->members[i].agent;
	struct probed *a = &p->agents[i];

	a->probe = p;
	a->info = (struct chat_agent_info) {
		.name = agent->name,
		.kind = agent->ops->kind,
		.model = agent->model,
		.is_default = agent == roster->agent,
		.text = a->text,
	};
	snprintf(a->text, sizeof(a->text), "no answer within %d s", CHAT_PROBE_MS / 1000);
}

int chat_probe(struct chat *chat, chat_agents_fn fn, void *arg)
{
	const struct chat_roster *roster = chat_roster(chat);
	unsigned n = roster->n;
	struct probe *p = calloc(1, sizeof(*p) + n * (sizeof(p->agents[0]) + sizeof(p->infos[0])));
	int r = -ENOMEM;

	if (p)
		r = timer_new(chat->loop, on_time, p, &p->timer);
	if (r != 0) {
		free(p);
		return r;
	}
	p->fn = fn;
	p->arg = arg;
	p->n = n;
	p->infos = (struct chat_agent_info *)&p->agents[n];
	p->n_open = n + 1; /* one of our own, until all were asked */
	p->started_ms = clock_steady_ms();
	timer_start(p->timer, CHAT_PROBE_MS);
	for (unsigned i = 0; i < n; i++) {
		struct agent *agent = roster->members[i].agent;

		describe(p, roster, i);
		r = agent->ops->probe(agent, on_health, &p->agents[i]);
		if (r != 0)
			answered(&p->agents[i], false, strerror(-r));
	}
	if (--p->n_open == 0) {
		tell(p);
		free(p);
	}
	return 0;
}
