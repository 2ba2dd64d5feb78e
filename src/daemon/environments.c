/*
 * The environment of the programs that koined starts. It never contains secrets from the settings; programs of clients
 * and models get only a short list of variables.
 */
#include "daemon/life.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/command/words.h"
#include "base/cleanup.h"
#include "io/listener.h"

enum { VARIABLE_MAX = ADDRESS_TEXT_MAX + PATH_MAX + 40 };

/* ---- where we are ---- */

static const char *address_of(const struct server *server, const struct dialect *d)
{
	const char *found = NULL;

	list_for_each (at, following, &server->endpoints) {
		const struct endpoint *e = list_entry(at, struct endpoint, link);
		bool is_unix = strncmp(e->address, "unix:", 5) == 0;

		if (e->dialect != d || (d->home.told_sessions && !is_unix))
			continue;
		if (is_unix)
			return e->address;
		found = found ? found : e->address;
	}
	return found;
}

/* NAME=PATH, or NAME=ADDRESS where there is no path. The path is absolute, since programs work in
 * other folders. */
static int say_where(struct arena *a, const char *name, const char *address, const char **ret)
{
	const char *path = strncmp(address, "unix:", 5) == 0 ? address + 5 : NULL;
	char folder[PATH_MAX] = "";
	char out[VARIABLE_MAX];
	int n;

	if (path && path[0] != '/' && !getcwd(folder, sizeof(folder)))
		return -errno;
	n = snprintf(out, sizeof(out), "%s=%s%s%s", name, folder, folder[0] ? "/" : "",
		     path ? path : address);
	*ret = arena_copy(a, out, (size_t)n);
	return *ret ? 0 : -ENOMEM;
}

/* The variables that tell a program where we listen, NULL-terminated. */
struct environments_told {
	const char *all[DIALECTS_MAX + 1];
	const char *sessions[2 * DIALECTS_MAX + 1]; /* those for sessions only come first */
};

static int find_us(const struct server *server, struct arena *a, struct environments_told *ret)
{
	unsigned n = 0, n_sessions = 0;

	*ret = (struct environments_told) {{NULL}, {NULL}};
	for (unsigned i = 0; i < n_dialects; i++) {
		const struct dialect_home *home = &dialects[i]->home;
		const char *address = home->told_by ? address_of(server, dialects[i]) : NULL;
		const char **at = home->told_sessions ? &ret->sessions[n_sessions] : &ret->all[n];
		int r = address ? say_where(a, home->told_by, address, at) : 0;

		if (r != 0)
			return r;
		n_sessions += *at && home->told_sessions;
		n += *at && !home->told_sessions;
	}
	memcpy(&ret->sessions[n_sessions], ret->all, n * sizeof(ret->all[0]));
	return 0;
}

/* ---- each of them ---- */

/* The words of a setting, in the arena; NULL-terminated. */
static int read_words(struct arena *a, const char *text, const char ***ret_words)
{
	CLEANUP(freep) char **words = NULL;
	unsigned n = 0;

	*ret_words = NULL;
	/* A wrong setting was refused when it was set, so only an empty one fails here. */
	if (command_split(text, &words, &n, NULL) != 0)
		return 0;
	*ret_words = arena_zalloc(a, (n + 1) * sizeof(**ret_words));
	if (!*ret_words)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++) {
		(*ret_words)[i] = arena_copy(a, words[i], strlen(words[i]));
		if (!(*ret_words)[i])
			return -ENOMEM;
	}
	return 0;
}

static int make(struct arena *a, const struct environment_opts *like, const char *given,
		struct environment *ret)
{
	struct environment_opts o = *like;
	const char **words;
	int r = read_words(a, given, &words);

	o.given = words;
	return r == 0 ? environment_make(a, &o, ret) : r;
}

static int make_dialects(const struct settings *s, const struct environment_opts *like,
			 struct arena *a, struct environments *ret)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < n_dialects; i++) {
		const struct setting *row = dialect_variables(dialects[i]);

		if (row)
			r = make(a, like, (const char *)settings_of(s, dialects[i]) + row->offset,
				 &ret->dialects[i]);
	}
	return r;
}

int environments_make(const struct settings *s, const struct server *server, struct arena *a,
		      struct environments *ret)
{
	const char *secrets[SECRETS_MAX + 1];
	struct environments_told told;
	const struct environment_opts whole = {
		.from = (const char *const *)environ, .secrets = secrets, .own = told.all};
	struct environment_opts session = whole;
	struct environment_opts brief = whole;
	int r = find_us(server, a, &told);

	if (r != 0)
		return r;
	settings_secrets(s, secrets);
	session.own = told.sessions;
	brief.brief = true;
	r = make(a, &whole, "", &ret->plain)
		?: make(a, &whole, s->tasks.environment, &ret->tasks)
		?: make(a, &session, s->sessions.environment, &ret->sessions);
	for (unsigned i = 0; r == 0 && i < s->agents.n; i++)
		r = make(a, &whole, s->agents.list[i].environment, &ret->agents[i]);
	return r != 0 ? r : make_dialects(s, &brief, a, ret);
}
