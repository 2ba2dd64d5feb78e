/*
 * Which dialect listens where: handed over by the service manager, or by
 * --listen alone, or each at its place from the settings or by default.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"

static int add_row(struct plan *p, const struct spoken *spoken, const char *address,
		   struct why *why)
{
	struct plan_row *row = &p->rows[p->n];
	int r;

	*row = (struct plan_row) {.spoken = spoken, .fd = -1};
	r = address_parse(address, &row->address, why);
	if (r != 0)
		return r;
	if (row->address.kind == ADDRESS_HTTP && !spoken->dialect->http_paths)
		return refuse(why, REFUSE_PARAMS, "%s does not speak HTTP; tcp:HOST:PORT will do",
			      spoken->dialect->name);
	p->n++;
	return 0;
}

static int find_spoken(const char *name, const struct spoken **ret, struct why *why)
{
	*ret = dialect_find(name);
	if (!*ret)
		return refuse(why, REFUSE_NOT_FOUND, "no dialect '%.40s' to listen for", name);
	return 0;
}

/* A socket handed over is named for its dialect, or is koine's. Where it listens,
 * it knows itself. */
static void add_given(struct plan *p, const struct activation *given)
{
	for (unsigned i = 0; i < given->n; i++) {
		const struct spoken *spoken = dialect_find(given->sockets[i].name);

		p->rows[p->n++] = (struct plan_row) {
			.spoken = spoken ? spoken : dialect_find("koine"),
			.address = {.kind = ADDRESS_UNIX},
			.fd = given->sockets[i].fd,
		};
	}
}

static int add_named(struct plan *p, const struct settings *s, struct why *why)
{
	for (unsigned i = 0; i < s->n_listens; i++) {
		const struct listen_setting *l = &s->listens[i];
		const struct spoken *spoken;
		int r = find_spoken(l->dialect, &spoken, why);

		if (r == 0 && strcmp(l->address, "off") != 0)
			r = add_row(p, spoken, l->address, why);
		if (r != 0)
			return r;
	}
	return 0;
}

static bool is_named(const struct settings *s, const char *dialect)
{
	for (unsigned i = 0; i < s->n_listens; i++) {
		if (strcmp(s->listens[i].dialect, dialect) == 0)
			return true;
	}
	return false;
}

/* One with a port of its own; under --root any that is free. */
static int add_port(struct plan *p, const struct settings *s, const struct spoken *spoken,
		    struct why *why)
{
	int r = add_row(p, spoken, spoken->address, why);

	if (r == 0 && s->root[0])
		p->rows[p->n - 1].address.port = 0;
	return r;
}

/* By variable; under --root; where its clients look; or, where this user cannot
 * go, in the runtime folder. */
static int add_default(struct plan *p, const struct settings *s, const struct spoken *spoken,
		       struct why *why)
{
	char folder[PATH_LEN];
	char address[PATH_LEN + 64];
	const char *variable = spoken->variable ? getenv(spoken->variable) : NULL;
	bool runtime = false;
	int r;

	if (spoken->address)
		return add_port(p, s, spoken, why);
	paths_runtime(folder);
	if (variable && variable[0]) {
		snprintf(address, sizeof(address), "unix:%s", variable);
	} else if (s->root[0]) {
		snprintf(address, sizeof(address), "unix:%s/%s", s->root, spoken->socket);
	} else if (spoken->place && paths_usable(spoken->place, NULL)) {
		snprintf(address, sizeof(address), "unix:%s", spoken->place);
	} else {
		snprintf(address, sizeof(address), "unix:%s/%s", folder, spoken->socket);
		runtime = true;
	}
	r = add_row(p, spoken, address, why);
	if (r == 0)
		p->rows[p->n - 1].runtime = runtime;
	return r;
}

int plan_make(const struct settings *s, const struct activation *given, struct plan *ret_plan,
	      struct why *why)
{
	int r = 0;

	ret_plan->n = 0;
	if (given->n > 0) {
		add_given(ret_plan, given);
		return 0;
	}
	r = add_named(ret_plan, s, why);
	for (unsigned i = 0; r == 0 && !s->listen_only && i < n_dialects; i++) {
		if (!is_named(s, dialects[i].dialect->name))
			r = add_default(ret_plan, s, &dialects[i], why);
	}
	if (r == 0 && ret_plan->n == 0)
		return refuse(why, REFUSE_PARAMS, "nothing to listen at: every dialect is off");
	return r;
}
