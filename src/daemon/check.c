/* koined --check: says what would happen, and whether it can. Changes nothing. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sysexits.h>

#include "base/cleanup.h"
#include "daemon/daemon.h"
#include "daemon/model.h"

/* Whether somebody accepts connections at the path. */
static bool answers(const char *path)
{
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to = {.sun_family = AF_UNIX};

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	return fd >= 0 && (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 || errno == EAGAIN);
}

static bool check_unix(const char *path, struct why *why)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return paths_usable(path, why);
	if (!S_ISSOCK(st.st_mode)) {
		refuse(why, REFUSE_CONFLICT, "exists and is not a socket");
		return false;
	}
	if (answers(path)) {
		refuse(why, REFUSE_CONFLICT, "something already listens there");
		return false;
	}
	snprintf(why->text, sizeof(why->text), "a dead socket is there; it would be removed");
	return true;
}

static bool check_row(const struct plan_row *row)
{
	char address[ADDRESS_TEXT_MAX];
	struct why why = {.text = "free"};
	bool ok = true;

	address_format(&row->address, address);
	if (row->fd >= 0) {
		snprintf(address, sizeof(address), "descriptor %d", row->fd);
		snprintf(why.text, sizeof(why.text), "handed over by the service manager");
	} else if (row->address.kind == ADDRESS_UNIX) {
		ok = check_unix(row->address.path, &why);
	} else {
		snprintf(why.text, sizeof(why.text), "loopback");
	}
	printf("would listen  %s %s  %s: %s\n", row->spoken->dialect->name, address,
	       ok ? "ok" : "NO", why.text);
	return ok;
}

static bool store_usable(const char *path, struct why *why)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return paths_usable(path, why);
	if (!S_ISREG(st.st_mode)) {
		refuse(why, REFUSE_CONFLICT, "exists and is not a regular file");
		return false;
	}
	if (access(path, R_OK | W_OK) != 0) {
		refuse(why, REFUSE_FORBIDDEN, "cannot write to it: %s", strerror(errno));
		return false;
	}
	return true;
}

/* Only from outside: looking into it would need its lock. */
static bool check_store(const struct settings *s)
{
	static const char scheme[] = "sqlite:";
	char url[PATH_LEN + 16];
	struct why why = {.text = "usable"};
	bool ok = false;

	settings_store_url(s, url, sizeof(url));
	if (strncmp(url, scheme, strlen(scheme)) != 0 || !url[strlen(scheme)])
		refuse(&why, REFUSE_PARAMS, "a store is sqlite:PATH");
	else
		ok = store_usable(url + strlen(scheme), &why);
	printf("would keep    %s  %s: %s\n", url, ok ? "ok" : "NO", why.text);
	return ok;
}

int daemon_check(const struct settings *s, const struct plan *plan)
{
	char token[256];
	struct why why;
	bool ok = true;

	printf("settings file %s\n", s->config[0] ? s->config : "(none)");
	for (unsigned i = 0; i < plan->n; i++)
		ok &= check_row(&plan->rows[i]);
	ok &= check_store(s);
	if (s->token_file[0] && token_read(s->token_file, token, sizeof(token), &why) != 0) {
		printf("token         NO: %s\n", why.text);
		ok = false;
	}
	if (model_check(s, &why) != 0) {
		printf("embedding key NO: %s\n", why.text);
		ok = false;
	}
	printf("\n");
	settings_write(s, stdout);
	printf("\n%s\n", ok ? "koined: can start" : "koined: cannot start");
	return ok ? 0 : EX_UNAVAILABLE;
}
