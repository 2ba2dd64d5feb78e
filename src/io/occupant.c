/* Finds the program that uses an address, so that the log can name it. */
#include "io/listener.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/unix_name.h"
#include "io/process/lineage.h"

/* A program chooses its name itself. */
static void read_program(struct occupant *o)
{
	struct process_seen seen;

	if (!process_see(o->pid, &seen))
		return;
	snprintf(o->program, sizeof(o->program), "%.*s", (int)sizeof(o->program) - 1, seen.name);
	for (char *p = o->program; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
}

static bool find_unix(const char *path, struct occupant *ret)
{
	CLEANUP(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CLEANUP(unix_name_close) struct unix_name to = {.folder = -1};
	struct peer peer;
	struct stat st;

	if (fd < 0 || unix_name_open(path, &to) != 0)
		return false;
	/* With a full backlog somebody is there, too; and another user's socket may be one. */
	if (connect(fd, (struct sockaddr *)&to.addr, sizeof(to.addr)) != 0)
		return errno == EAGAIN ||
		       (errno == EACCES && lstat(path, &st) == 0 && S_ISSOCK(st.st_mode));
	if (!peer_of_unix(fd, &peer))
		return true;
	ret->known = true;
	ret->uid = peer.uid;
	ret->pid = peer.pid;
	return true;
}

static bool find_port(const struct address *a, struct occupant *ret)
{
	struct sockaddr_storage name;
	struct peer peer;
	socklen_t len;

	if (!address_inet(a->host, a->port, &name, &len) || !peer_at_port(&name, &peer))
		return false;
	ret->known = true;
	ret->uid = peer.uid;
	if (peer_pids(&peer, &ret->pid, 1) == 0)
		ret->pid = 0;
	return true;
}

bool occupant_find(const struct address *a, struct occupant *ret)
{
	bool there;

	*ret = (struct occupant) {.known = false};
	there = a->kind == ADDRESS_UNIX ? find_unix(a->path, ret) : find_port(a, ret);
	if (there)
		read_program(ret);
	return there;
}

void occupant_format(const struct occupant *o, char out[OCCUPANT_TEXT_MAX])
{
	const struct passwd *user = o->known && o->uid != geteuid() ? getpwuid(o->uid) : NULL;
	int n = snprintf(out, OCCUPANT_TEXT_MAX, "%s",
			 o->program[0] ? o->program
			 : o->known    ? "a program"
				       : "somebody");

	if (o->pid > 0)
		n += snprintf(out + n, (size_t)(OCCUPANT_TEXT_MAX - n), ", pid %d", (int)o->pid);
	if (user)
		snprintf(out + n, (size_t)(OCCUPANT_TEXT_MAX - n), ", user %.32s", user->pw_name);
	else if (o->known && o->uid != geteuid())
		snprintf(out + n, (size_t)(OCCUPANT_TEXT_MAX - n), ", user %u", (unsigned)o->uid);
}
