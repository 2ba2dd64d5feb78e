#include "call/access.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "call/call.h"
#include "call/client.h"
#include "call/server.h"
#include "io/peer.h"
#include "io/process/lineage.h"

/* Many clients send all members and leave those empty that they do not use. */
static bool is_empty(const struct value *v)
{
	return !v || v->kind == VALUE_NULL ||
	       ((v->kind == VALUE_STRING || v->kind == VALUE_ARRAY || v->kind == VALUE_OBJECT) &&
		v->len == 0);
}

/* The folder of a process is a link in memory, so this may run on the loop. Finding the processes of
 * another connection than a Unix socket's takes longer; they work nowhere. This is no confinement: an agent may
 * change to any folder before it connects. It only rejects a folder in which the client does not work. */
static bool works_in(const struct peer *peer, struct text folder)
{
	char own[PATH_MAX];
	pid_t pid;

	return peer->local && peer_pids(peer, &pid, 1) == 1 && process_folder(pid, own) &&
	       text_is(folder, own);
}

static bool is_for_humans(const struct call *c, const struct field *f, const struct value *v)
{
	switch (f->for_humans) {
	case ANYBODY:
		return false;
	case HUMANS:
		return !is_empty(v);
	case HUMANS_IF_PROGRAM:
	case HUMANS_IF_RUNNER:
		return !is_empty(v) && v->kind == VALUE_STRING &&
		       c->server->opts.is_program(c->server->opts.engine, value_text(v),
						  f->for_humans == HUMANS_IF_RUNNER);
	case HUMANS_IF_ELSEWHERE:
		return !is_empty(v) && v->kind == VALUE_STRING &&
		       !works_in(&c->peer, value_text(v));
	}
	return true;
}

/* NULL: there is none, or the whole method is for humans. */
static const struct field *find_field(const struct call *c)
{
	const struct method *m = c->method;

	if (m->flags & METHOD_FOR_HUMANS)
		return NULL;
	for (unsigned i = 0; c->given && i < m->n_fields; i++) {
		if (is_for_humans(c, &m->fields[i], c->given[i]))
			return &m->fields[i];
	}
	return NULL;
}

bool human_needed(struct call *c)
{
	if (!c->server->opts.check_human)
		return false;
	c->for_humans = find_field(c);
	return (c->method->flags & METHOD_FOR_HUMANS) || c->for_humans;
}

static int call_access_check(const struct server *s, const struct dialect *by,
			     const struct peer *peer, const char *what, const char *name,
			     struct error *error)
{
	char text[sizeof(error->text)];
	int r;

	/* Other users were let in to talk, not to become the user of koined. */
	if (peer->other && !by->lets_in)
		r = refuse(error, REFUSE_FORBIDDEN,
			   "only the user that runs koined may call this method");
	else
		r = s->opts.check_human(s->opts.engine, by, peer, error);
	if (r <= 0)
		return r;
	snprintf(text, sizeof(text), "%s", error->text);
	return refuse(error, REFUSE_FORBIDDEN, "agents may not %s %s: %.400s", what, name, text);
}

int human_check(struct call *c)
{
	const struct field *f = c->for_humans;

	return call_access_check(c->server, c->endpoint->dialect, &c->peer, f ? "set" : "call",
				 f ? f->name : c->method->name, &c->error);
}

bool human_needed_for(const struct server *s, struct text agent)
{
	return s->opts.check_human && agent.len > 0 &&
	       s->opts.is_program(s->opts.engine, agent, false);
}

int human_check_peer(const struct server *s, const struct dialect *by, const struct peer *peer,
		     const char *name, struct error *error)
{
	return call_access_check(s, by, peer, "set", name, error);
}

enum { PIDS_MAX = 64 };

/* Nobody is visible at the other end. It may be one of ours: a process that hides itself, or one
 * whose socket came through another. Only processes of other users are certainly not, where ours
 * cannot become other users. */
static bool may_hide(const struct peer *peer)
{
	if (peer->local)
		return peer->pid > 0;
	return !peer->known || geteuid() == 0 || peer->uid == geteuid();
}

static bool is_confined(const struct client *s)
{
	pid_t pids[PIDS_MAX];
	unsigned n = peer_pids(&s->peer, pids, PIDS_MAX);

	if (n == 0)
		return may_hide(&s->peer);
	for (unsigned i = 0; i < n; i++) {
		if (confine_holds(pids[i]))
			return true;
	}
	return false;
}

/* "memory." stands for every name that begins so. */
static bool call_access_is_named(const char *const *names, const char *method)
{
	for (; *names; names++) {
		size_t n = strlen(*names);

		if (strncmp(*names, method, n) == 0 && ((*names)[n - 1] == '.' || !method[n]))
			return true;
	}
	return false;
}

bool confined_allows(struct client *s, const char *method)
{
	const char *const *names = s->server->opts.confined_methods;

	if (!names)
		return true;
	if (!s->looked) {
		s->confined = is_confined(s);
		s->looked = true;
	}
	return !s->confined || call_access_is_named(names, method);
}
