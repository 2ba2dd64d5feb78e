/*
 * The plan of all listeners, made before the first one is opened, so that an invalid address stops koined before it has
 * any client. In a terminal, koined uses the standard addresses of the dialects. As a service (--service), it uses
 * addresses of its own, because a package must not take another program's port or socket; the standard address is then
 * a second, optional row, which is skipped if another program uses it.
 */
#include "daemon/daemon.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder and the name of a socket. One that was cut is longer than any address may be. */
enum { PLACE_MAX = PATH_LEN + 64 };

/* ---- whose socket it is, where a project has one ---- */

static bool current_folder(char out[PATH_LEN])
{
	char here[PATH_LEN];

	if (!getcwd(here, sizeof(here)))
		return false;
	paths_resolve(here, out);
	return true;
}

/* A socket outside any project folder serves the first project named, or the current one. */
static int set_project(struct plan_row *row, const struct settings *s, struct error *error)
{
	const char *path = row->address.path;
	const char *socket = row->dialect->home.socket;
	size_t n = strlen(path);
	size_t tail = strlen(socket) + 1;
	char folder[PATH_LEN];

	if (n > tail && path[n - tail] == '/' && strcmp(path + n - tail + 1, socket) == 0) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(n - tail), path);
		paths_resolve(folder, row->project);
	} else if (s->n_projects > 0) {
		memcpy(row->project, s->projects[0], sizeof(row->project));
	} else if (s->root[0]) {
		paths_resolve(s->root, row->project);
	} else if (!current_folder(row->project)) {
		return refuse(error, REFUSE_UNAVAILABLE, "cannot determine the current directory");
	}
	return 0;
}

static int daemon_plan_add_row(struct plan *p, const struct dialect *d, const char *address,
			       struct error *error)
{
	struct plan_row *row = &p->rows[p->n];
	int r;

	*row = (struct plan_row) {.dialect = d, .fd = -1};
	r = address_parse(address, &row->address, error);
	if (r != 0)
		return r;
	if (row->address.kind == ADDRESS_HTTP && !d->http_paths && !d->http_routes)
		return refuse(error, REFUSE_PARAMS, "%s does not support HTTP; use tcp:HOST:PORT",
			      d->name);
	p->n++;
	return 0;
}

static int add_in_project(struct plan *p, const struct settings *s, const struct dialect *d,
			  const char *folder, struct error *error)
{
	char address[PATH_LEN + 64];
	struct error inner;
	int r;

	snprintf(address, sizeof(address), "unix:%s/%s", folder, d->home.socket);
	for (unsigned i = 0; i < p->n; i++) {
		if (strcmp(p->rows[i].address.path, address + strlen("unix:")) == 0)
			return 0;
	}
	r = daemon_plan_add_row(p, d, address, &inner);
	if (r != 0)
		return refuse(error, r, "project %s: %s", folder, inner.text);
	p->rows[p->n - 1].skipped_if_broken = true;
	return set_project(&p->rows[p->n - 1], s, error);
}

/* Its first address in the settings; NULL: none. */
static const char *named_address(const struct settings *s, const struct dialect *d)
{
	for (unsigned i = 0; i < s->n_listens; i++) {
		if (s->listens[i].dialect == d)
			return s->listens[i].address;
	}
	return NULL;
}

static bool is_off(const struct settings *s, const struct dialect *d)
{
	const char *address = named_address(s, d);

	return address && strcmp(address, "off") == 0;
}

static bool has_own_places(const struct settings *s)
{
	return s->places == PLACES_OWN;
}

/* A socket that was handed over has the name of its dialect, or else is koine's. It is already
 * bound. */
static int add_given(struct plan *p, const struct settings *s, const struct activation *given,
		     struct error *error)
{
	for (unsigned i = 0; i < given->n; i++) {
		const struct dialect *d = dialect_find(given->sockets[i].name);
		struct plan_row *row = &p->rows[p->n++];

		*row = (struct plan_row) {
			.dialect = d ? d : dialects[0],
			.address = {.kind = ADDRESS_UNIX},
			.fd = given->sockets[i].fd,
			.skipped_if_broken = true,
		};
		row->off = has_own_places(s) && is_off(s, row->dialect);
		if (row->dialect->home.in_project && set_project(row, s, error) != 0)
			return REFUSE_UNAVAILABLE;
	}
	return 0;
}

/* A dialect with a port of its own; under --root it takes any free port. */
static int add_port(struct plan *p, const struct settings *s, const struct dialect *d,
		    struct error *error)
{
	int r = daemon_plan_add_row(p, d, d->home.address, error);

	if (r == 0 && s->root[0])
		p->rows[p->n - 1].address.port = 0;
	return r;
}

/* Under --root the root is a project; otherwise the current directory, if it has .aiwg. */
static int add_current_project(struct plan *p, const struct settings *s, const struct dialect *d,
			       struct error *error)
{
	char folder[PATH_LEN];
	struct stat st;

	if (s->root[0]) {
		paths_resolve(s->root, folder);
		return add_in_project(p, s, d, folder, error);
	}
	if (stat(".aiwg", &st) != 0 || !S_ISDIR(st.st_mode) || !current_folder(folder))
		return 0;
	return add_in_project(p, s, d, folder, error);
}

static int add_projects(struct plan *p, const struct settings *s, struct error *error)
{
	const struct dialect *d = NULL;
	int r = 0;

	for (unsigned i = 0; i < n_dialects; i++)
		d = dialects[i]->home.in_project ? dialects[i] : d;
	for (unsigned i = 0; r == 0 && d && i < s->n_projects; i++)
		r = add_in_project(p, s, d, s->projects[i], error);
	return r;
}

static const char *named_by_variable(const struct dialect *d)
{
	const char *names[] = {d->home.variable, d->home.old_variable};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = names[i] ? getenv(names[i]) : NULL;

		if (value && value[0])
			return value;
	}
	return NULL;
}

/* In /tmp a socket, or the lock beside it, may be another user's. It is not replaced, and we
 * listen elsewhere. */
static bool is_anothers(const char *path)
{
	char lock[PLACE_MAX + sizeof(".lock")];
	struct stat st;

	snprintf(lock, sizeof(lock), "%s.lock", path);
	return (lstat(path, &st) == 0 && st.st_uid != geteuid()) ||
	       (lstat(lock, &st) == 0 && st.st_uid != geteuid());
}

static int add_path(struct plan *p, const struct dialect *d, const char *path, struct error *error)
{
	char address[PLACE_MAX + sizeof("unix:")];

	snprintf(address, sizeof(address), "unix:%s", path);
	return daemon_plan_add_row(p, d, address, error);
}

/* In the runtime directory. */
static int add_runtime(struct plan *p, const struct dialect *d, struct error *error)
{
	char folder[PATH_LEN];
	char path[PLACE_MAX];
	int r;

	paths_runtime(folder);
	snprintf(path, sizeof(path), "%s/%s", folder, d->home.socket);
	r = add_path(p, d, path, error);
	if (r == 0)
		p->rows[p->n - 1].runtime = true;
	return r;
}

/* The path comes from a variable; otherwise it is under --root. False: from neither. */
static bool named_elsewhere(const struct settings *s, const struct dialect *d, char path[PLACE_MAX])
{
	const char *variable = named_by_variable(d);

	if (variable)
		(void)paths_expand(variable, path);
	else if (s->root[0])
		snprintf(path, PLACE_MAX, "%s/%s", s->root, d->home.socket);
	return variable || s->root[0];
}

/* Elsewhere, or where its clients look; or, if this user cannot write there, in the runtime
 * folder. */
static int add_default(struct plan *p, const struct settings *s, const struct dialect *d,
		       struct error *error)
{
	char path[PLACE_MAX];

	if (d->home.address)
		return add_port(p, s, d, error);
	if (d->home.in_project)
		return add_current_project(p, s, d, error);
	if (named_elsewhere(s, d, path) || (d->home.path && paths_expand(d->home.path, path) &&
					    paths_usable(path, NULL) && !is_anothers(path)))
		return add_path(p, d, path, error);
	return add_runtime(p, d, error);
}

static bool is_given(const struct plan *p, const struct dialect *d)
{
	for (unsigned i = 0; i < p->n; i++) {
		if (p->rows[i].dialect == d && p->rows[i].fd >= 0)
			return true;
	}
	return false;
}

/* With places of our own: elsewhere, or in the runtime directory. Ports and projects are not ours. */
static int add_own(struct plan *p, const struct settings *s, const struct dialect *d,
		   struct error *error)
{
	char path[PLACE_MAX];

	if (d->home.address || d->home.in_project || is_given(p, d))
		return 0;
	if (named_elsewhere(s, d, path))
		return add_path(p, d, path, error);
	return add_runtime(p, d, error);
}

/* And where its clients look. */
static int add_both(struct plan *p, const struct settings *s, const struct dialect *d,
		    struct error *error)
{
	char path[PLACE_MAX];
	unsigned before;
	int r = add_own(p, s, d, error);

	before = p->n;
	if (r != 0)
		return r;
	if (d->home.address)
		r = add_port(p, s, d, error);
	else if (d->home.in_project)
		return add_current_project(p, s, d, error);
	else if (d->home.path && !named_elsewhere(s, d, path) && paths_expand(d->home.path, path))
		r = add_path(p, d, path, error);
	for (; r == 0 && before < p->n; before++)
		p->rows[before].yields = true;
	return r;
}

static int add_named(struct plan *p, const struct settings *s, struct error *error)
{
	for (unsigned i = 0; i < s->n_listens; i++) {
		const struct listen_setting *l = &s->listens[i];
		const struct dialect *d = l->dialect;
		int r = 0;

		if (strcmp(l->address, "on") == 0) {
			r = has_own_places(s) ? add_both(p, s, d, error)
					      : add_default(p, s, d, error);
		} else if (strcmp(l->address, "off") != 0) {
			r = daemon_plan_add_row(p, d, l->address, error);
			if (r == 0 && d->home.in_project)
				r = set_project(&p->rows[p->n - 1], s, error);
		}
		if (r != 0)
			return r;
	}
	return 0;
}

static int add_all(struct plan *p, const struct settings *s, struct error *error)
{
	int r = add_named(p, s, error);

	for (unsigned i = 0; r == 0 && !s->listen_only && i < n_dialects; i++) {
		const struct dialect *d = dialects[i];

		if (!d->home.optional && !named_address(s, d))
			r = has_own_places(s) ? add_own(p, s, d, error)
					      : add_default(p, s, d, error);
	}
	return r;
}

int plan_one(const struct settings *s, const struct dialect *d, struct plan *ret_plan,
	     struct error *error)
{
	int r;

	ret_plan->n = 0;
	if (is_off(s, d))
		return refuse(error, REFUSE_FORBIDDEN, "disabled by [listen] %s = off", d->name);
	r = add_default(ret_plan, s, d, error);
	for (unsigned i = 0; r == 0 && i < ret_plan->n; i++)
		ret_plan->rows[i].yields = true;
	return r;
}

int plan_make(const struct settings *s, const struct activation *given, struct plan *ret_plan,
	      struct error *error)
{
	int r;

	ret_plan->n = 0;
	r = add_given(ret_plan, s, given, error);
	/* What was handed over is all there is, or with places of our own the places of its
	 * dialects. */
	if (r == 0 && (given->n == 0 || has_own_places(s)))
		r = add_all(ret_plan, s, error);
	if (r == 0)
		r = add_projects(ret_plan, s, error);
	if (r == 0 && ret_plan->n == 0)
		return refuse(error, REFUSE_PARAMS,
			      "no listeners: every dialect is off; enable a dialect in [listen]");
	return r;
}
