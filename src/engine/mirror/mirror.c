#include "engine/mirror/mirror.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/mirror/inner.h"

/* ---- what the server tells ---- */

/* There is room again for what was left out. */
void mirror_settle(struct mirror *m)
{
	if (!m->missed || m->n_open == MIRROR_OPEN_MAX)
		return;
	m->missed = false;
	agent_server_list_again(m->server);
}

static void on_asked(void *arg, const struct agent_server_ask *ask)
{
	mirrored_ask(arg, ask);
}

/* If our own reply is on its way, its answer follows. */
static void on_answered(void *arg, struct text id)
{
	struct mirror *m = arg;
	struct mirrored *q = mirrored_find(m, id);

	if (q && !q->sending)
		mirrored_withdraw(q, "decided in the agent's own dialog");
	mirror_settle(m);
}

static void on_idle(void *arg, struct text session)
{
	struct mirror *m = arg;

	list_for_each (at, following, &m->open) {
		struct mirrored *q = list_entry(at, struct mirrored, link);

		if (!q->sending && text_equal(q->session, session))
			mirrored_withdraw(q, "the agent no longer waits for this approval");
	}
	mirror_settle(m);
}

static void on_noted(void *arg, const struct agent_server_note *note)
{
	mirror_note(arg, note);
}

static void on_listing(void *arg)
{
	struct mirror *m = arg;

	list_for_each (at, following, &m->left) {
		const struct mirror_left *left = list_entry(at, struct mirror_left, link);

		agent_server_know_folder(
			m->server, (struct text) {.data = left->folder, .len = left->folder_len});
	}
	list_for_each (at, following, &m->open) {
		struct mirrored *q = list_entry(at, struct mirrored, link);

		q->seen = false;
		agent_server_know_folder(m->server, q->folder);
	}
}

static void on_listed(void *arg)
{
	struct mirror *m = arg;

	list_for_each (at, following, &m->open) {
		struct mirrored *q = list_entry(at, struct mirrored, link);

		if (!q->seen && !q->sending)
			mirrored_withdraw(q, "the agent server no longer lists this request");
		else
			mirrored_send(q); /* decided before it could be sent */
	}
	mirror_left_withdraw(m, "the agent server no longer lists this request");
	mirror_settle(m);
}

static void on_changed(void *arg, enum agent_server_state state)
{
	struct mirror *m = arg;

	timer_stop(m->away);
	if (state != AGENT_SERVER_AWAY)
		return;
	timer_start(m->away, m->away_ms);
	list_for_each (at, following, &m->open)
		list_entry(at, struct mirrored, link)->sending = false;
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

static void withdraw_all(struct mirror *m, const char *why)
{
	struct list *first;

	while ((first = list_first(&m->open)))
		mirrored_withdraw(list_entry(first, struct mirrored, link), why);
	mirror_left_withdraw(m, why);
}

static void on_away_for_long(void *arg)
{
	withdraw_all(arg, "the agent server is unreachable");
}

/* ---- one ---- */

static void mirror_free(struct mirror *m)
{
	struct list *first;

	list_remove(&m->link);
	m->all->n--;
	agent_server_free(m->server);
	while ((first = list_first(&m->open)))
		mirrored_free(list_entry(first, struct mirrored, link));
	mirror_left_free(m);
	timer_free(m->away);
	free(m);
}

static int make_server(struct mirror *m, const struct mirror_opts *opts)
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

int mirror_add(struct mirrors *all, const struct mirror_opts *opts)
{
	struct mirror *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	list_append(&all->list, &m->link);
	all->n++;
	m->all = all;
	m->away_ms = opts->away_ms;
	list_init(&m->open);
	list_init(&m->left);
	memcpy(m->name, opts->name, strnlen(opts->name, MIRROR_NAME_MAX));
	r = timer_new(all->opts.loop, on_away_for_long, m, &m->away) ?: make_server(m, opts);
	if (r != 0) {
		mirror_free(m);
		return r;
	}
	mirror_load(m);
	agent_server_start(m->server);
	return 0;
}

void mirror_remove(struct mirrors *all, const char *name, bool comes_back)
{
	list_for_each (at, following, &all->list) {
		struct mirror *m = list_entry(at, struct mirror, link);

		if (strcmp(m->name, name) != 0)
			continue;
		if (!comes_back)
			withdraw_all(m, "the agent server was removed from the settings");
		mirror_free(m);
	}
}

/* ---- all of them ---- */

int mirrors_new(const struct mirrors_opts *opts, struct mirrors **ret_mirrors)
{
	struct mirrors *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	list_init(&m->list);
	m->opts = *opts;
	*ret_mirrors = m;
	return 0;
}

void mirrors_stop(struct mirrors *m)
{
	struct list *first;

	if (!m)
		return;
	m->stopping = true;
	while ((first = list_first(&m->list)))
		mirror_free(list_entry(first, struct mirror, link));
}

void mirrors_free(struct mirrors *m)
{
	mirrors_stop(m);
	free(m);
}

unsigned mirrors_count(const struct mirrors *m)
{
	return m ? m->n : 0;
}

void mirrors_look(const struct mirrors *m, unsigned i, struct mirror_view *ret_view)
{
	const struct list *at = m->list.next;
	const struct mirror *found;

	while (i-- > 0)
		at = at->next;
	found = list_entry(at, struct mirror, link);
	*ret_view = (struct mirror_view) {.name = found->name, .open = found->n_open};
	agent_server_look(found->server, &ret_view->server);
}
