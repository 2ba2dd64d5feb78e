/* The methods of each dialect, and its listeners. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "call/server.h"
#include "daemon/life.h"
#include "io/listener.h"

/* ---- methods ---- */

/* A name that already exists is koine's own method, which answers with the members of all. */
static int add_new_methods(struct registry *r, const struct dialect *d)
{
	for (unsigned i = 0; i < d->n_methods; i++) {
		const struct method *m = &d->methods[i];
		int e = registry_find(r, text_of(m->name)) ? 0 : registry_add(r, m, 1);

		if (e != 0)
			return e;
	}
	return 0;
}

static int add_tables(struct registry *r, const struct method_table *const *tables)
{
	int e = 0;

	for (; e == 0 && tables && *tables; tables++)
		e = registry_add(r, (*tables)->rows, (*tables)->n);
	return e;
}

static int add_methods(struct registry *r, const struct dialect *d, bool debug)
{
	int e = registry_add(r, d->methods, d->n_methods) ?: add_tables(r, d->more_methods);

	if (e == 0 && debug && d->debug_methods)
		e = registry_add(r, d->debug_methods->rows, d->debug_methods->n);
	for (unsigned i = 0; e == 0 && d->speaks_all && i < n_dialects; i++)
		e = add_new_methods(r, dialects[i]);
	return e;
}

int registries_make(struct daemon *d)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n_dialects; i++) {
		r = registry_new(&d->registries[i])
			    ?: add_methods(d->registries[i], dialects[i],
					   d->settings->debug_methods);
	}
	return r;
}

void registries_free(struct daemon *d)
{
	for (unsigned i = 0; i < n_dialects; i++)
		registry_free(d->registries[i]);
}

/* ---- listeners ---- */

/* " (hld, pid 4711)"; "" if that is not known. */
static void name_occupant(const struct plan_row *row, char out[OCCUPANT_TEXT_MAX])
{
	char who[OCCUPANT_TEXT_MAX];
	struct occupant o;

	out[0] = '\0';
	if (!occupant_find(&row->address, &o) || !o.known)
		return;
	occupant_format(&o, who);
	snprintf(out, OCCUPANT_TEXT_MAX, " (%.*s)", OCCUPANT_TEXT_MAX - 4, who);
}

/* Another program may own a port permanently, and the original program a well-known socket. Any
 * other socket in use most likely belongs to a koined that is already running. */
static int say_how_without(const struct daemon *d, const struct plan_row *row, struct error *error)
{
	const char *name = row->dialect->name;
	const struct error inner = *error;
	char who[OCCUPANT_TEXT_MAX];

	name_occupant(row, who);
	if (row->address.kind == ADDRESS_UNIX && !row->dialect->home.path)
		return refuse(error, REFUSE_CONFLICT, "%s%s%s", inner.text, who,
			      d->settings->root[0] ? ""
						   : "; to start another koined, use --root DIR");
	return refuse(error, REFUSE_CONFLICT,
		      "%s%s; to start without %s, set [listen] %s = off or use --set listen.%s=off",
		      inner.text, who, name, name, name);
}

/* Logs what --check would note about this listener. */
static void note_listener(const struct daemon *d, const struct plan_row *row)
{
	const struct dialect *dialect = row->dialect;
	const struct dialect_token *token = dialect_token(dialect);
	char refuses[64];

	if (row->fd < 0 && row->address.kind == ADDRESS_UNIX &&
	    paths_open_to_all(row->address.path))
		log_warn("socket folder is writable by other users",
			 "dialect=%s address=%s reason=\"any user can replace the socket; "
			 "chmod "
			 "o-w or chmod +t its folder\"",
			 dialect->name, row->address.path);
	if (!token || !dialect->http_token_unset || hosts_token(&d->hosts, dialect))
		return;
	snprintf(refuses, sizeof(refuses), "%s rejects every call", dialect->name);
	log_info(refuses, "reason=\"neither %s nor %s.token_file is set\"", token->variable,
		 dialect->name);
}

static int check_runtime(const struct plan_row *row, struct error *error)
{
	char folder[PATH_LEN];

	if (!row->runtime)
		return 0;
	paths_runtime(folder);
	return paths_check_runtime(folder, error);
}

static int open_row(struct daemon *d, const struct plan_row *row, struct error *error)
{
	const struct dialect *dialect = row->dialect;
	const unsigned i = dialect_index(dialect);
	const struct uids *allowed = settings_uids(d->settings, dialect->name);
	const struct endpoint_opts opts = {
		.dialect = dialect,
		.registry = d->registries[i],
		.address = row->address,
		.framing = dialect->framing,
		.guest = dialect_guest(dialect),
		.fd = row->fd,
		.allow_uids = allowed->list,
		.n_allow_uids = allowed->n,
		.token = hosts_token(&d->hosts, dialect),
		.settings = d->hosts.list[i].settings,
	};
	struct endpoint *e;
	int r = check_runtime(row, error);

	if (r != 0)
		return r;
	r = server_listen(d->server, &opts, &e, error)
		    ?: hosts_listening(&d->hosts, row->project, e);
	if (r == 0 && e->guest)
		r = hosts_listening(&d->hosts, row->project, e->guest);
	if (r == 0)
		note_listener(d, row);
	return r;
}

/* Somebody else has the place where its clients look, or we may not use it: who is there is left
 * alone. A port is then a free one; beside a socket there is our own place. */
static int yield(struct daemon *d, const struct plan_row *row, int r, struct error *error)
{
	char address[ADDRESS_TEXT_MAX];
	char who[OCCUPANT_TEXT_MAX];
	struct plan_row other = *row;

	address_format(&row->address, address);
	name_occupant(row, who);
	if (row->address.kind == ADDRESS_UNIX) {
		log_warn("could not listen on default address", "dialect=%s reason=\"%s%s\"",
			 row->dialect->name, error->text, who);
		return 0;
	}
	if (r != REFUSE_CONFLICT)
		return r;
	log_warn("port in use, listening on another port", "dialect=%s address=%s reason=\"%s%s\"",
		 row->dialect->name, address, error->text, who);
	other.address.port = 0;
	return open_row(d, &other, error);
}

static void turn_away(void *arg, int fd, const struct peer *peer)
{
	close(fd);
}

/* The service manager listens where the settings have the dialect off. A socket that nobody
 * serves would keep clients waiting, so they are turned away. */
static int listen_shut(struct daemon *d, const struct plan_row *row, struct error *error)
{
	const struct listener_opts opts = {
		.fd = row->fd, .name = row->dialect->name, .anybody = true, .on_accept = turn_away};

	log_info("dialect is off, closed its socket",
		 "dialect=%s reason=\"the service manager passed a socket, but [listen] is "
		 "off; clients are rejected\"",
		 row->dialect->name);
	return listener_open(d->loop, &row->address, &opts, &d->shut[d->n_shut++], error);
}

static int listen_at(struct daemon *d, const struct plan_row *row, struct error *error)
{
	int r;

	if (row->off)
		return listen_shut(d, row, error);
	r = open_row(d, row, error);
	if (r > 0 && row->yields)
		return yield(d, row, r, error);
	return r == REFUSE_CONFLICT ? say_how_without(d, row, error) : r;
}

/* A project that cannot be served is logged and skipped, so that the others are served. An address
 * that the user named is not: a start without it would look like a success. */
static int listen_in_project(struct daemon *d, const struct plan_row *row, struct error *error)
{
	const struct dialect_life *life = row->dialect->life;
	int r = life->check_folder(row->project, error);
	bool broken = r != 0;

	if (r == 0)
		r = listen_at(d, row, error);
	if (r > 0 && !broken)
		broken = row->fd < 0 && life->socket_broken(row->address.path);
	if (!broken || !row->skipped_if_broken)
		return r;
	log_warn("could not serve project", "reason=\"%s\"", error->text);
	return 0;
}

int listen_everywhere(struct daemon *d, struct error *error)
{
	const struct plan *plan = d->plan;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < plan->n; i++) {
		const struct plan_row *row = &plan->rows[i];

		r = row->dialect->home.in_project ? listen_in_project(d, row, error)
						  : listen_at(d, row, error);
	}
	if (r == 0 && list_empty(&d->server->endpoints))
		return refuse(error, REFUSE_UNAVAILABLE,
			      "cannot serve any project, and no other listener is on");
	return r;
}

/* Whoever may read it finds it by the status: a port may be any, and its file anywhere. */
static int say_token_file(struct daemon *d, struct endpoint *e)
{
	char found[PATH_LEN];
	char path[PATH_MAX];

	token_find_file(d->settings, e->dialect, found, sizeof(found));
	if (!found[0] || !realpath(found, path))
		return 0;
	e->token_file = arena_copy(&d->arena, path, strlen(path));
	return e->token_file ? 0 : -ENOMEM;
}

int listen_on_request(void *daemon, const struct dialect *dialect, struct error *error)
{
	struct daemon *d = daemon;
	struct plan *plan = calloc(1, sizeof(*plan));
	int r;

	if (!plan)
		return -ENOMEM;
	r = plan_one(d->settings, dialect, plan, error);
	for (unsigned i = 0; r == 0 && i < plan->n; i++)
		r = listen_at(d, &plan->rows[i], error);
	free(plan);
	return r;
}

int tokens_make(struct daemon *d, struct error *error)
{
	int r = 0;

	list_for_each (at, following, &d->server->endpoints) {
		struct endpoint *e = list_entry(at, struct endpoint, link);
		const char *token;

		r = hosts_make_token(&d->hosts, d->settings, e->dialect, error);
		if (r != 0)
			return r;
		token = hosts_token(&d->hosts, e->dialect);
		if (token)
			snprintf(e->token, sizeof(e->token), "%s", token);
		r = say_token_file(d, e);
		if (r != 0)
			return r;
	}
	return r;
}

void listen_say(const struct daemon *d)
{
	list_for_each (at, following, &d->server->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);

		printf("listening %s %s\n", e->dialect->name, e->address);
	}
}
