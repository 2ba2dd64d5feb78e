#include "engine/bridge/bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/bridge/inner.h"

/* ---- what the server tells ---- */

/* There is room again for what was left out. */
void bridge_settle(struct bridge *m)
{
	if (!m->missed || m->n_open == BRIDGE_OPEN_MAX)
		return;
	m->missed = false;
	agent_server_list_again(m->server);
}

static void on_asked(void *arg, const struct agent_server_ask *ask)
{
	bridged_ask(arg, ask);
}

/* If our own reply is on its way, its answer follows. */
static void on_answered(void *arg, struct text id)
{
	struct bridge *m = arg;
	struct bridged *q = bridged_find(m, id);

	if (q && !q->sending)
		bridged_withdraw(q, "decided in the agent's own dialog");
	bridge_settle(m);
}

static void on_idle(void *arg, struct text session)
{
	struct bridge *m = arg;

	list_for_each (at, following, &m->open) {
		struct bridged *q = list_entry(at, struct bridged, link);

		if (!q->sending && text_equal(q->session, session))
			bridged_withdraw(q, "the agent no longer waits for this approval");
	}
	bridge_settle(m);
}

static void on_noted(void *arg, const struct agent_server_note *note)
{
	bridge_note(arg, note);
}

static void on_listing(void *arg)
{
	struct bridge *m = arg;

	list_for_each (at, following, &m->left) {
		const struct bridge_left *left = list_entry(at, struct bridge_left, link);

		agent_server_know_folder(
			m->server, (struct text) {.data = left->folder, .len = left->folder_len});
	}
	list_for_each (at, following, &m->open) {
		struct bridged *q = list_entry(at, struct bridged, link);

		q->seen = false;
		agent_server_know_folder(m->server, q->folder);
	}
}

static void on_listed(void *arg)
{
	struct bridge *m = arg;

	list_for_each (at, following, &m->open) {
		struct bridged *q = list_entry(at, struct bridged, link);

		if (!q->seen && !q->sending)
			bridged_withdraw(q, "the agent server no longer lists this request");
		else
			bridged_send(q); /* decided before it could be sent */
	}
	bridge_left_withdraw(m, "the agent server no longer lists this request");
	bridge_settle(m);
}

static void on_changed(void *arg, enum agent_server_state state)
{
	struct bridge *m = arg;

	timer_stop(m->away);
	if (state != AGENT_SERVER_AWAY)
		return;
	timer_start(m->away, m->away_ms);
	list_for_each (at, following, &m->open)
		list_entry(at, struct bridged, link)->sending = false;
}

static const struct agent_server_fns fns = {
	.asked = on_asked,
	.answered = on_answered,
	.idle = on_idle,
	.noted = on_noted,
	.listing = on_listing,
	.listed = on_listed,
	.changed = on_changed,
};

static void withdraw_all(struct bridge *m, const char *reason)
{
	struct list *first;

	while ((first = list_first(&m->open)))
		bridged_withdraw(list_entry(first, struct bridged, link), reason);
	bridge_left_withdraw(m, reason);
}

static void on_away_for_long(void *arg)
{
	withdraw_all(arg, "the agent server is unreachable");
}

/* ---- one ---- */

static void bridge_free(struct bridge *m)
{
	struct list *first;

	list_remove(&m->link);
	m->all->n--;
	agent_server_free(m->server);
	while ((first = list_first(&m->open)))
		bridged_free(list_entry(first, struct bridged, link));
	bridge_left_free(m);
	timer_free(m->away);
	free(m);
}

static int make_server(struct bridge *m, const struct bridge_opts *opts)
{
	const struct agent_server_opts server = {
		.ops = opts->ops,
		.name = opts->name,
		.url = opts->url,
		.user = opts->user,
		.password_env = opts->password_env,
		.password_file = opts->password_file,
		.idle_ms = opts->idle_ms,
		.fns = &fns,
		.arg = m,
	};

	return agent_server_new(m->all->opts.loop, &server, &m->server);
}

int bridge_add(struct bridges *all, const struct bridge_opts *opts)
{
	struct bridge *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	list_append(&all->list, &m->link);
	all->n++;
	m->all = all;
	m->away_ms = opts->away_ms;
	list_init(&m->open);
	list_init(&m->left);
	memcpy(m->name, opts->name, strnlen(opts->name, BRIDGE_NAME_MAX));
	r = timer_new(all->opts.loop, on_away_for_long, m, &m->away) ?: make_server(m, opts);
	if (r != 0) {
		bridge_free(m);
		return r;
	}
	bridge_load(m);
	agent_server_start(m->server);
	return 0;
}

void bridge_remove(struct bridges *all, const char *name, bool comes_back)
{
	list_for_each (at, following, &all->list) {
		struct bridge *m = list_entry(at, struct bridge, link);

		if (strcmp(m->name, name) != 0)
			continue;
		if (!comes_back)
			withdraw_all(m, "the agent server was removed from the settings");
		bridge_free(m);
	}
}

/* ---- all of them ---- */

int bridges_new(const struct bridges_opts *opts, struct bridges **ret_bridges)
{
	struct bridges *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	list_init(&m->list);
	m->opts = *opts;
	*ret_bridges = m;
	return 0;
}

void bridges_stop(struct bridges *m)
{
	struct list *first;

	if (!m)
		return;
	m->stopping = true;
	while ((first = list_first(&m->list)))
		bridge_free(list_entry(first, struct bridge, link));
}

void bridges_free(struct bridges *m)
{
	bridges_stop(m);
	free(m);
}

unsigned bridges_count(const struct bridges *m)
{
	return m ? m->n : 0;
}

void bridges_look(const struct bridges *m, unsigned i, struct bridge_view *ret_view)
{
	const struct list *at = m->list.next;
	const struct bridge *found;

	while (i-- > 0)
		at = at->next;
	found = list_entry(at, struct bridge, link);
	*ret_view = (struct bridge_view) {.name = found->name, .open = found->n_open};
	agent_server_look(found->server, &ret_view->server);
}
