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
		complain("cannot determine the current folder: %s", strerror(errno));
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
		complain("invalid path '%s': empty or too long", cli->args[0]);
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

/* Returns only if koined cannot be run. */
static int become_koined(const char *const *argv)
{
	char program[PATH_MAX];

	fflush(stdout);
	errno = ENOENT;
	if (koined_find(program))
		execv(program, (char *const *)argv);
	complain("cannot run koined: %s", strerror(errno));
	return EX_UNAVAILABLE;
}

static int cmd_adopt(struct cli *cli)
{
	char url[PATH_MAX + 8], path[PATH_MAX] = "";
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
	return become_koined(argv);
}

/* ---- moving one ---- */

static int cmd_move(struct cli *cli)
{
	const char *argv[] = {"koined", "--move", cli->args[0], "--", cli->args[1], NULL};

	return become_koined(argv);
}

const struct command store_subs[] = {
	{"adopt", "[FILE|URL]", "Take over a store that another user created",
	 "koined refuses a store file of another user, because its creator controls the queued "
	 "work. `koine store adopt` makes a copy that belongs to you and holds the queue: tasks "
	 "wait for `koine task release`, schedules are off, and grants and trusted projects are "
	 "removed. The old file is kept as FILE.theirs. FILE defaults to koined's store. Stop "
	 "koined first.\n\nkoined also refuses a PostgreSQL database whose schema koine belongs to "
	 "another role. `koine store adopt URL` accepts that role on this machine for this "
	 "database, and holds the queue. From then on that role can run commands as you. Stop "
	 "every koined that uses the database first.\n",
	 cmd_adopt, ARGS(0, 1, "takes at most one FILE or URL"),
	 .examples = {"koine store adopt", "koine store adopt postgresql://anna@db/koine"}},
	{"move", "FROM TO", "Copy a store into another database",
	 "FROM and TO are sqlite:PATH or postgresql://..., as for koined --store. TO must be "
	 "empty: a new file, or a database without a store. Stop every koined that uses either "
	 "store first. "
	 "All rows are copied, read back and compared before the copy is used. FROM stays "
	 "unchanged. Run the command again to continue an interrupted move.\n",
	 cmd_move, ARGS(2, 2, "requires FROM and TO"),
	 .examples = {"koine store move sqlite:koine.db postgresql:///koine",
		      "koine store move postgresql:///koine sqlite:copy.db"}},
	{NULL},
};
