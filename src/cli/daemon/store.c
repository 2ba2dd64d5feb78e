/* koine store: what is done to a store that no daemon has open. koined does it: it has the database. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/kit/cli.h"

/* The koined beside us, which is of our version; false: none there. */
static bool find_beside(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *slash;

	if (n < 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + sizeof("/koined") > PATH_MAX)
		return false;
	strcpy(slash, "/koined");
	return access(path, X_OK) == 0;
}

static int cmd_adopt(struct cli *cli)
{
	char url[PATH_MAX + 8], beside[PATH_MAX], folder[PATH_MAX] = "";
	const char *file = cli->n_args == 1 ? cli->args[0] : NULL;
	const char *argv[] = {"koined", "--adopt", file ? "--store" : NULL, url, NULL};

	if (cli->n_args > 1 || (file && !file[0])) {
		complain("store adopt wants one FILE, or none");
		return EX_USAGE;
	}
	if (file && file[0] != '/' && !getcwd(folder, sizeof(folder))) {
		complain("cannot tell the current folder: %s", strerror(errno));
		return EX_OSERR;
	}
	if (snprintf(url, sizeof(url), "sqlite:%s%s%s", folder, folder[0] ? "/" : "",
		     file ? file : "") >= (int)sizeof(url)) {
		complain("the file's path is too long");
		return EX_USAGE;
	}
	fflush(stdout);
	if (find_beside(beside))
		execv(beside, (char *const *)argv);
	execvp("koined", (char *const *)argv);
	complain("cannot run koined: %s", strerror(errno));
	return EX_UNAVAILABLE;
}

const struct command store_commands[] = {
	{"adopt", "[FILE]", "take over a store that somebody else has made",
	 "koined refuses a store whose file belongs to another user: who made it decides what is\n"
	 "queued in it. This makes a copy that is ours, and holds what was queued: its tasks wait\n"
	 "for koine task release, its schedules are off, what it allows without asking and which\n"
	 "projects it trusts is forgotten. The old file stays, as FILE.theirs. Without FILE it is\n"
	 "the store that koined would use. No koined may have it open.\n",
	 cmd_adopt},
	{NULL},
};
