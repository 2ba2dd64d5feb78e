/* koined --check: says what would happen, and whether it can. Changes nothing. */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>

#include "base/cleanup.h"
#include "daemon/life.h"
#include "search/vector/word_table.h"
#include "io/listener.h"
#include "io/peer.h"
#include "store/store.h"

static void refuse_taken(const struct occupant *o, struct error *error)
{
	char who[OCCUPANT_TEXT_MAX];

	occupant_format(o, who);
	refuse(error, REFUSE_CONFLICT, "address in use (%s)", who);
}

static bool check_unix(const struct address *a, struct error *error)
{
	struct occupant there;
	struct stat st;

	if (lstat(a->path, &st) != 0)
		return paths_usable(a->path, error);
	if (!S_ISSOCK(st.st_mode)) {
		refuse(error, REFUSE_CONFLICT, "the path exists and is not a socket");
		return false;
	}
	if (occupant_find(a, &there)) {
		refuse_taken(&there, error);
		return false;
	}
	snprintf(error->text, sizeof(error->text), "stale socket file, which koined would remove");
	return true;
}

static bool has_token(const struct settings *s, const struct dialect *d)
{
	const struct dialect_token *token = dialect_token(d);

	if (token && token->only)
		return true; /* without its own it serves nobody */
	return s->token_file[0] || (token && ((const char *)settings_of(s, d))[token->file]);
}

/* Whether the kernel says who connects, tried on a port that nobody uses. */
static bool check_peers(struct error *error)
{
	const struct sockaddr_in any = {.sin_family = AF_INET,
					.sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
	CLEANUP(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLEANUP(closep) int ask = -1;
	int r;

	if (fd < 0 || bind(fd, (const struct sockaddr *)&any, sizeof(any)) != 0 ||
	    listen(fd, 0) != 0)
		return true;
	r = peer_ask_open(fd, &ask);
	if (r != 0)
		refuse(error, REFUSE_UNAVAILABLE,
		       "the kernel cannot identify peers (sock_diag: %s): set token_file or use a "
		       "Unix socket",
		       strerror(-r));
	return r == 0;
}

/* Binds the port for a moment; nobody can connect, because it does not listen. */
static bool check_port(const struct address *a, struct error *error)
{
	struct sockaddr_storage addr;
	struct occupant there;
	const int on = 1;
	socklen_t len;
	CLEANUP(closep) int fd = -1;

	if (!address_inet(a->host, a->port, &addr, &len))
		return false;
	fd = socket(addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return true;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&addr, len) == 0)
		return true;
	if (errno != EADDRINUSE) {
		refuse(error, REFUSE_FORBIDDEN, "cannot bind: %s", strerror(errno));
		return false;
	}
	occupant_find(a, &there);
	refuse_taken(&there, error);
	return false;
}

static bool folder_usable(const struct plan_row *row, struct error *error)
{
	return !row->dialect->home.in_project ||
	       row->dialect->life->check_folder(row->project, error) == 0;
}

/* A broken project does not keep koined from starting. */
static bool is_skipped(const struct plan_row *row, struct error *error)
{
	if (!row->dialect->home.in_project || row->fd >= 0 || !row->skipped_if_broken)
		return false;
	if (!folder_usable(row, error))
		return true;
	return row->dialect->life->socket_broken(row->address.path) &&
	       refuse(error, REFUSE_CONFLICT, "the file at the socket path is not a socket");
}

static void print_yields(const struct plan_row *row, const char *address, const char *reason)
{
	if (row->address.kind == ADDRESS_UNIX)
		printf("would skip    %s %s  %s\n", row->dialect->name, address, reason);
	else
		printf("would listen  %s on a free port  ok: %s is taken: %s\n", row->dialect->name,
		       address, reason);
}

static bool check_row(const struct settings *s, const struct plan_row *row,
		      const struct running *running)
{
	char address[ADDRESS_TEXT_MAX];
	struct error error = {.text = "free"};
	bool ok = true;

	address_format(&row->address, address);
	if (is_skipped(row, &error)) {
		printf("would skip    %s %s  %s\n", row->dialect->name, address, error.text);
		return true;
	}
	if (row->fd >= 0) {
		snprintf(address, sizeof(address), "descriptor %d", row->fd);
		snprintf(error.text, sizeof(error.text), "socket passed by the service manager");
	} else if (running_listens(running, address)) {
		snprintf(error.text, sizeof(error.text), "in use by the running koined");
	} else if (row->address.kind == ADDRESS_UNIX) {
		ok = folder_usable(row, &error) && check_unix(&row->address, &error);
	} else {
		snprintf(error.text, sizeof(error.text), "loopback");
		ok = check_port(&row->address, &error) &&
		     (has_token(s, row->dialect) || check_peers(&error));
	}
	if (!ok && row->yields) {
		print_yields(row, address, error.text);
		return true;
	}
	printf("would listen  %s %s  %s: %s\n", row->dialect->name, address, ok ? "ok" : "error",
	       error.text);
	if (row->address.kind == ADDRESS_UNIX && paths_open_to_all(row->address.path))
		printf("note          any user can replace the socket %s: its "
		       "folder "
		       "is writable by all\n",
		       address);
	return ok;
}

static bool store_usable(const char *path, struct error *error)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return paths_usable(path, error);
	if (access(path, R_OK | W_OK) == 0)
		return true;
	refuse(error, REFUSE_FORBIDDEN, "cannot write to the file: %s", strerror(errno));
	return false;
}

static bool is_same_file(const char *path, struct text other)
{
	char name[PATH_MAX];
	struct stat a, b;

	if (other.len >= sizeof(name))
		return false;
	memcpy(name, other.data, other.len);
	name[other.len] = '\0';
	return stat(path, &a) == 0 && stat(name, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

static bool check_store(const struct settings *s, const struct running *running)
{
	char url[PATH_LEN + 16], accepted[PATH_LEN + 16], note[STORE_NOTE_MAX] = "";
	struct error error = {.text = "usable"};
	const char *path;
	bool ok = true;

	settings_store_url(s, url, sizeof(url));
	/* settings_check has checked that there is a colon. */
	path = strchr(url, ':') + 1;
	if (running->pid && is_same_file(path, running->store))
		snprintf(error.text, sizeof(error.text), "in use by the running koined");
	else
		ok = (strncmp(url, "sqlite:", 7) != 0 || store_usable(path, &error)) &&
		     daemon_accepted(s, accepted, sizeof(accepted)) == 0 &&
		     store_look(url, accepted, note, &error) == 0;
	printf("would open    %s  %s: %s\n", url, ok ? "ok" : "error", error.text);
	if (note[0])
		printf("note          store: %s\n", note);
	return ok;
}

static bool listens(const struct plan *plan, const struct dialect *d)
{
	for (unsigned i = 0; i < plan->n; i++) {
		if (plan->rows[i].dialect == d)
			return true;
	}
	return false;
}

/* A dialect without the token it needs is not an error, but it serves nobody. */
static bool check_token(const struct settings *s, const struct plan *plan, const struct dialect *d)
{
	char what[32];
	char value[256];
	struct error error;

	snprintf(what, sizeof(what), "%s token", d->name);
	if (token_read_own(s, d, value, sizeof(value), &error) != 0) {
		printf("%-13s error: %s\n", what, error.text);
		return false;
	}
	if (dialect_token(d)->only && !value[0] && listens(plan, d))
		printf("note          %s rejects every call: set %s or %s.token_file\n", d->name,
		       dialect_token(d)->variable, d->name);
	explicit_bzero(value, sizeof(value));
	return true;
}

static bool check_tokens(const struct settings *s, const struct plan *plan)
{
	char value[256];
	struct error error;
	bool ok = token_read_common(s, value, sizeof(value), &error) == 0;

	explicit_bzero(value, sizeof(value));
	if (!ok)
		printf("token         error: %s\n", error.text);
	for (unsigned i = 0; i < n_dialects; i++) {
		if (dialect_token(dialects[i]))
			ok &= check_token(s, plan, dialects[i]);
	}
	return ok;
}

/* Where each dialect listens, in the form of a settings file. A second listener can only come
 * from --listen, so it is shown as a comment. */
static void write_listens(const struct plan *plan)
{
	char address[ADDRESS_TEXT_MAX];

	printf("[listen]\n");
	for (unsigned i = 0; i < n_dialects; i++) {
		unsigned n = 0;

		for (unsigned k = 0; k < plan->n; k++) {
			const struct plan_row *row = &plan->rows[k];

			if (row->dialect != dialects[i])
				continue;
			address_format(&row->address, address);
			printf("%s%s = %s\n", n++ || row->fd >= 0 ? "; " : "", row->dialect->name,
			       row->fd >= 0 ? "socket passed by the service manager" : address);
		}
		if (n == 0)
			printf("%s = off\n", dialects[i]->name);
	}
	printf("\n");
}

/* Users who are admitted may call every method there. */
static void note_others(const struct settings *s)
{
	for (unsigned i = 0; i < s->listeners.n; i++) {
		const struct listener_setting *l = &s->listeners.list[i];

		if (l->allow_uids.n == 0)
			continue;
		printf("note          users ");
		for (unsigned k = 0; k < l->allow_uids.n; k++)
			printf("%u ", (unsigned)l->allow_uids.list[k]);
		printf("may call every method of %s\n", l->name);
	}
}

/* koined starts anyway, and searches by words. */
static void note_model(const struct settings *s, const struct plan *plan)
{
	char address[ADDRESS_TEXT_MAX];

	for (unsigned i = 0; i < plan->n; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (!row->dialect->makes_vectors || !s->embedding_url[0] ||
		    !model_is_at(s->embedding_url, &row->address))
			continue;
		address_format(&row->address, address);
		printf("note          ignoring embedding_url: %s is koined's own listener; "
		       "searches match only words\n",
		       address);
	}
}

/* Asks at koine's own socket, if there is one. */
static void look_for_running(const struct plan *plan, struct running *ret)
{
	const char *path = "";

	for (unsigned i = 0; i < plan->n; i++) {
		const struct plan_row *row = &plan->rows[i];

		if (row->dialect == dialects[0] && row->address.kind == ADDRESS_UNIX && row->fd < 0)
			path = row->address.path;
	}
	running_ask(ret, path);
	if (ret->pid)
		printf("koined        already running, pid %d\n", (int)ret->pid);
}

static bool check_words(const struct settings *s)
{
	struct word_file *file;
	struct error error = {.text = "out of memory"};
	int r = words_open(s, &file, &error);

	if (r != 0)
		printf("word vectors  error: %s\n", error.text);
	else if (file)
		printf("word vectors  %s  ok: %zu words\n", word_file_path(file).data,
		       word_file_words(file));
	word_file_close(file);
	return r == 0;
}

static void print_verdict(bool ok, pid_t running)
{
	if (ok && running)
		printf("\nkoined: already running, pid %d; could start with these settings\n",
		       (int)running);
	else
		printf("\n%s\n",
		       ok ? "koined: can start" : "koined: cannot start; fix the errors above");
}

int daemon_check(const struct settings *s, const struct plan *plan)
{
	struct running running;
	struct error error;
	bool ok = true;

	printf("settings file %s\n", s->config[0] ? s->config : "(none)");
	look_for_running(plan, &running);
	for (unsigned i = 0; i < plan->n; i++)
		ok &= check_row(s, &plan->rows[i], &running);
	ok &= check_store(s, &running);
	ok &= check_tokens(s, plan);
	ok &= agents_check(s);
	servers_check(s);
	rules_check(s);
	notify_check(s);
	if (model_check(s, &error) != 0) {
		printf("embedding key error: %s\n", error.text);
		ok = false;
	}
	ok &= check_words(s);
	note_others(s);
	note_model(s, plan);
	printf("\n");
	write_listens(plan);
	settings_write(s, stdout);
	print_verdict(ok, running.pid);
	running_done(&running);
	return ok ? 0 : EX_UNAVAILABLE;
}
