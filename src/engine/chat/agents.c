/* The agents: which ones answer now, which ones did before, and whether they are healthy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "engine/chat/inner.h"

struct agent *chat_find_agent(const struct chat *chat, struct text name)
{
	const struct chat_roster *roster = chat_roster(chat);

	for (unsigned i = 0; i < roster->n; i++) {
		if (text_is(name, roster->members[i].agent->name))
			return roster->members[i].agent;
	}
	return NULL;
}

int chat_check_agent(const struct chat *chat, struct text name, const char *field,
		     struct error *error)
{
	if (chat_find_agent(chat, name))
		return 0;
	return refuse_field(error, field, "agent not found: '%.*s'", TEXT_ARGS(text_cut(name, 60)));
}

struct agent *chat_agent(const struct chat *chat, struct text name)
{
	if (!chat)
		return NULL;
	return name.data ? chat_find_agent(chat, name) : chat_roster(chat)->agent;
}

struct agent *chat_worker(const struct chat *chat)
{
	struct agent *agent = chat_agent(chat, (struct text) {0});

	return agent && !agent->ops->quotes_only ? agent : NULL;
}

int chat_refuse_work(struct error *error, const char *section)
{
	return refuse(error, REFUSE_UNAVAILABLE,
		      "no agent is configured: install " CODING_AGENT
		      ", or name one in koine.conf ([%s] "
		      "runner, [chat] agent)",
		      section);
}

struct agent *chat_agent_at(const struct chat *chat, unsigned i)
{
	const struct chat_roster *roster = chat ? chat_roster(chat) : NULL;

	return roster && i < roster->n ? roster->members[i].agent : NULL;
}

/* ---- a new roster ---- */

/* Searches all rosters, past and present. */
static bool is_ours(const struct chat *chat, const struct agent *agent)
{
	for (const struct chat_roster *r = chat->rosters; r; r = r->before) {
		for (unsigned i = 0; i < r->n; i++) {
			if (r->members[i].agent == agent)
				return true;
		}
	}
	return false;
}

static void free_roster(struct chat_roster *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (r->members[i].own)
			agent_free(r->members[i].agent);
	}
	free(r);
}

static void free_new(const struct chat *chat, struct agent *const *agents, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!is_ours(chat, agents[i]))
			agent_free(agents[i]);
	}
}

static int make_roster(const struct chat *chat, struct agent *const *agents, unsigned n,
		       struct chat_roster **ret_roster)
{
	struct chat_roster *r = calloc(1, sizeof(*r) + n * sizeof(r->members[0]));

	if (!r) {
		free_new(chat, agents, n);
		return -ENOMEM;
	}
	r->n = n;
	for (unsigned i = 0; i < n; i++)
		r->members[i] = (struct chat_member) {agents[i], !is_ours(chat, agents[i])};
	*ret_roster = r;
	return 0;
}

static int choose_default(struct chat_roster *r, const char *name, struct error *error)
{
	for (unsigned i = 0; name && i < r->n; i++) {
		if (strcmp(r->members[i].agent->name, name) == 0)
			r->agent = r->members[i].agent;
	}
	if (name && !r->agent)
		return refuse(error, REFUSE_NOT_FOUND, "agent not found: '%.60s'", name);
	return 0;
}

int chat_set_agents(struct chat *chat, struct agent *const *agents, unsigned n, const char *name,
		    struct error *error)
{
	struct chat_roster *roster;
	unsigned n_new = 0;
	int r = make_roster(chat, agents, n, &roster);

	if (r != 0)
		return r;
	r = choose_default(roster, name, error);
	for (unsigned i = 0; i < n; i++)
		n_new += roster->members[i].own;
	if (r == 0 && chat->n_agents + n_new > CHAT_AGENTS_MAX)
		r = refuse(error, REFUSE_LIMIT,
			   "too many agents since koined started (limit %d); restart koined to use "
			   "the new agents",
			   CHAT_AGENTS_MAX);
	if (r != 0) {
		free_roster(roster);
		return r;
	}
	chat->n_agents += n_new;
	roster->before = chat->rosters;
	chat->rosters = roster;
	atomic_store_explicit(&chat->roster, roster, memory_order_release);
	return 0;
}

void rosters_free(struct chat *chat)
{
	struct chat_roster *r;

	while ((r = chat->rosters)) {
		chat->rosters = r->before;
		free_roster(r);
	}
}

/* ---- health: all are asked at once ---- */

enum { PROBE_TEXT_MAX = 200 };

struct chat_agents_probe;

struct probed {
	struct chat_agents_probe *probe;
	struct chat_agent_info info;
	char text[PROBE_TEXT_MAX];
	bool answered;
};

struct chat_agents_probe {
	chat_agents_fn fn;
	void *arg;
	struct timer *timer;
	uint64_t started_ms;
	unsigned n;
	unsigned n_open;
	bool asking; /* chat_probe has not returned yet */
	bool told;
	struct chat_agent_info *infos; /* stored after the agents */
	struct probed agents[];
};

/* It lives until the last agent has answered, even if nobody is waiting any more. */
static void chat_agents_notify(struct chat_agents_probe *p)
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
	struct chat_agents_probe *p = arg;

	for (unsigned i = 0; i < p->n; i++) {
		if (!p->agents[i].answered)
			p->agents[i].info.ms = CHAT_PROBE_MS;
	}
	chat_agents_notify(p);
	if (p->n_open == 0)
		free(p);
}

static void answered(struct probed *a, bool ok, const char *text)
{
	struct chat_agents_probe *p = a->probe;

	a->answered = true;
	a->info.ok = ok;
	a->info.ms = (int64_t)(clock_steady_ms() - p->started_ms);
	if (snprintf(a->text, sizeof(a->text), "%s", text) >= (int)sizeof(a->text))
		a->text[utf8_whole(a->text, sizeof(a->text) - 1)] = '\0';
	if (--p->n_open > 0 || p->asking)
		return;
	chat_agents_notify(p);
	free(p);
}

static void on_health(void *arg, const struct agent_health *health)
{
	answered(arg, health->ok, health->text ? health->text : "");
}

static void describe(struct chat_agents_probe *p, const struct chat_roster *roster, unsigned i)
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
	snprintf(a->text, sizeof(a->text), "timed out after %d s", CHAT_PROBE_MS / 1000);
}

int chat_probe(struct chat *chat, chat_agents_fn fn, void *arg)
{
	const struct chat_roster *roster = chat_roster(chat);
	unsigned n = roster->n;
	struct chat_agents_probe *p =
		calloc(1, sizeof(*p) + n * (sizeof(p->agents[0]) + sizeof(p->infos[0])));
	int r = -ENOMEM;

	if (p)
		r = timer_new(chat->opts.loop, on_time, p, &p->timer);
	if (r != 0) {
		free(p);
		return r;
	}
	p->fn = fn;
	p->arg = arg;
	p->n = n;
	p->infos = (struct chat_agent_info *)&p->agents[n];
	p->n_open = n;
	p->asking = true;
	p->started_ms = clock_steady_ms();
	timer_start(p->timer, CHAT_PROBE_MS);
	for (unsigned i = 0; i < n; i++) {
		struct agent *agent = roster->members[i].agent;

		describe(p, roster, i);
		r = agent->ops->probe(agent, on_health, &p->agents[i]);
		if (r != 0)
			answered(&p->agents[i], false, strerror(-r));
	}
	p->asking = false;
	if (p->n_open == 0)
		timer_start(p->timer, 0);
	return 0;
}
