/* koine backup: the daemon copies its store. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/memory/memory.h"

enum { HOUR_MS = 60 * 60 * 1000 };

/* The daemon has another folder than we have. */
static int absolute(const char *file, char path[PATH_MAX])
{
	char folder[PATH_MAX] = "";
	int n;

	if (file[0] != '/' && !getcwd(folder, sizeof(folder))) {
		complain("cannot tell the current folder: %s", strerror(errno));
		return EX_OSERR;
	}
	n = snprintf(path, PATH_MAX, "%s%s%s", folder, folder[0] ? "/" : "", file);
	if (n < PATH_MAX && file[0] != '\0')
		return 0;
	complain("'%s' is no path", file);
	return EX_USAGE;
}

static int print_backup(const struct cli *cli, const struct koine_value *result, const char *path)
{
	if (cli->options.json) {
		print_json_compact(stdout, result);
		return 0;
	}
	fputs("Store copied to ", stdout);
	print_text(stdout, path, strlen(path));
	fputc('\n', stdout);
	return 0;
}

int cmd_backup(struct cli *cli)
{
	struct koine_answer *a = NULL;
	struct memory_call c;
	char path[PATH_MAX];
	int r;

	if (cli->n_args != 1) {
		complain("backup wants one FILE");
		return EX_USAGE;
	}
	r = absolute(cli->args[0], path);
	if (r == 0)
		r = memory_begin(&c, cli, "store.backup");
	if (r != 0)
		return r;
	/* A large store takes its time. */
	if (cli->options.timeout_ms == 0)
		cli->options.timeout_ms = HOUR_MS;
	memory_add_text(&c, "path", path);
	r = memory_send(&c, &a);
	if (r == 0)
		r = print_backup(cli, koine_answer_result(a), path);
	koine_answer_free(a);
	memory_done(&c);
	return r;
}
