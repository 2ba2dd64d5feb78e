/* koine backup, koine store: operations on the daemon's store. koined runs them, since it has
 * the database. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/child/koined.h"
#include "cli/daemon/daemon.h"
#include "cli/kit/args.h"
#include "cli/kit/call.h"
#include "cli/kit/print.h"

enum { HOUR_MS = 60 * 60 * 1000 };

/* Its absolute path: the daemon has another working folder. 0 or an exit code; *ret_fits: it is
 * not too long. */
static int make_absolute(const char *file, char path[PATH_MAX], bool *ret_fits)
{
	char folder[PATH_MAX] = "";

	if (file[0] != '/' && !getcwd(folder, sizeof(folder))) {
		complain("cannot tell the current folder: %s", strerror(errno));
		return EX_OSERR;
	}
	*ret_fits =
		snprintf(path, PATH_MAX, "%s%s%s", folder, folder[0] ? "/" : "", file) < PATH_MAX;
	return 0;
}

/* ---- backup ---- */

static int print_backup(const struct cli *cli, const struct koine_value *result)
{
	char path[PATH_MAX];
	bool fits;
	int r = make_absolute(cli->args[0], path, &fits);

	fputs("Store copied to ", stdout);
	print_text(stdout, text_of(path));
	fputc('\n', stdout);
	return r;
}

int cmd_backup(struct cli *cli)
{
	struct koine_json *j;
	char path[PATH_MAX];
	bool fits = false;
	int r = make_absolute(cli->args[0], path, &fits);

	if (r != 0)
		return r;
	if (!fits || cli->args[0][0] == '\0') {
		complain("'%s' is no path", cli->args[0]);
		return EX_USAGE;
	}
	/* A large store takes a while. */
	if (cli->options.timeout_ms == 0)
		cli->options.timeout_ms = HOUR_MS;
	j = params_new();
	params_add(j, "path", path);
	return call_print(cli, "store.backup", j, NULL, print_backup);
}

/* ---- adopting one ---- */

static int cmd_adopt(struct cli *cli)
{
	char url[PATH_MAX + 8], program[PATH_MAX], path[PATH_MAX] = "";
	const char *file = cli->n_args == 1 ? cli->args[0] : NULL;
	const char *argv[] = {"koined", "--adopt", file ? "--store" : NULL, url, NULL};
	bool is_database = file && strncmp(file, "postgresql:", 11) == 0;
	bool fits = true;
	int r = 0;

	if (file)
		r = !file[0]      ? args_refuse(cli)
		    : is_database ? 0
				  : make_absolute(file, path, &fits);
	if (r != 0)
		return r;
	if (!fits) {
		complain("the file's path is too long");
		return EX_USAGE;
	}
	snprintf(url, sizeof(url), "%s%s", is_database ? "" : "sqlite:", is_database ? file : path);
	fflush(stdout);
	errno = ENOENT;
	if (koined_find(program))
		execv(program, (char *const *)argv);
	complain("cannot run koined: %s", strerror(errno));
	return EX_UNAVAILABLE;
}

/* ---- moving one ---- */

static int cmd_move(struct cli *cli)
{
	const char *argv[] = {"koined", "--move", cli->args[0], "--", cli->args[1], NULL};
	char program[PATH_MAX];

	fflush(stdout);
	errno = ENOENT;
	if (koined_find(program))
		execv(program, (char *const *)argv);
	complain("cannot run koined: %s", strerror(errno));
	return EX_UNAVAILABLE;
}

const struct command store_subs[] = {
	{"adopt", "[FILE|URL]", "take over a store that somebody else has made",
	 "koined refuses a store whose file belongs to another user: who made it decides what is\n"
	 "queued in it. This makes a copy that is ours, and holds what was queued: its tasks wait\n"
	 "for koine task release, its schedules are off, what it allows without asking and which\n"
	 "projects it trusts is forgotten. The old file stays, as FILE.theirs. Without FILE it is\n"
	 "the store that koined would use. No koined may have it open.\n\n"
	 "A PostgreSQL database whose schema koine belongs to another role is refused, too. This\n"
	 "accepts that role, on this machine and for this database, and holds what was queued. "
	 "The\n"
	 "role can run commands as you from then on. No koined may use the database.\n",
	 cmd_adopt, ARGS(0, 1, "wants one FILE or URL, or none")},
	{"move", "FROM TO", "copy a store into another database",
	 "FROM and TO are sqlite:PATH or postgresql://..., as for koined --store. TO must be "
	 "empty: a\n"
	 "new file, or a database without a store. No koined may use either. Everything is copied\n"
	 "under its number, then read again and compared; only then is the copy a store. FROM "
	 "stays as\n"
	 "it is. A move that was interrupted goes on when it is said again.\n",
	 cmd_move, ARGS(2, 2, "wants FROM and TO")},
	{NULL},
};
