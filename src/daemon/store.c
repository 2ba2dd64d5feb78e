/*
 * What koined does with a store and then exits: --adopt takes over one that another user has made,
 * --init-store makes the tables of one, --move copies one into another database.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/life.h"
#include "store/adopt.h"
#include "store/move/move.h"
#include "store/store.h"
#include "wire/crypto.h"

/* Moves what the store's tasks and sessions have written, unless it is already ours. */
static bool move_folder(const struct store_adopted *a, const char *ending)
{
	char from[PATH_LEN + 16], to[PATH_LEN + 16];
	struct stat st;

	snprintf(from, sizeof(from), "%s%s", a->path, ending);
	snprintf(to, sizeof(to), "%s%s", a->aside, ending);
	if (lstat(from, &st) != 0 || (S_ISDIR(st.st_mode) && st.st_uid == geteuid()))
		return true;
	if (rename(from, to) == 0)
		return true;
	fprintf(stderr, "koined: cannot move %s: %s\n", from, strerror(errno));
	return false;
}

int daemon_adopt(const struct settings *s)
{
	char url[PATH_LEN + 16], accepted[PATH_LEN + 16];
	struct store_adopted a;
	struct error error = {.text = "out of memory"};
	bool is_file;

	settings_store_url(s, url, sizeof(url));
	is_file = strncmp(url, "sqlite:", 7) == 0;
	if (make_own_folder(s, &error) != 0 ||
	    daemon_accepted(s, accepted, sizeof(accepted)) != 0 ||
	    store_adopt(url, accepted, &a, &error) != 0) {
		return complain(error.text, EX_UNAVAILABLE);
	}
	if (is_file && (!move_folder(&a, ".tasks") || !move_folder(&a, ".sessions")))
		return EX_UNAVAILABLE;
	if (is_file)
		printf("%s now belongs to you; the old file is %s\n", a.path, a.aside);
	else
		printf("%s is now trusted on this machine; its owner is %s\n", a.path, a.aside);
	printf("Held %lld tasks (to release them: koine task release)\n", (long long)a.n_tasks);
	printf("Disabled %lld schedules (to enable them: koine rule enable)\n",
	       (long long)a.n_jobs);
	printf("Deleted %lld grants and revoked the trust in all projects\n",
	       (long long)a.n_grants);
	return 0;
}

int daemon_init_store(const struct settings *s)
{
	char url[PATH_LEN + 16];
	struct error error = {.text = "out of memory"};

	settings_store_url(s, url, sizeof(url));
	if (store_init(url, &error) != 0) {
		return complain(error.text, EX_UNAVAILABLE);
	}
	printf("initialized %s\n", url);
	return 0;
}

/* ---- --move ---- */

enum { STOPPED = 130, LINE_WIDTH = 72 };

static volatile sig_atomic_t stop_asked;
static bool on_terminal;
static bool line_is_open;

static void ask_stop(int sig)
{
	stop_asked = sig;
}

static bool stopped(void)
{
	return stop_asked != 0;
}

static void store_end_line(void)
{
	if (line_is_open)
		printf("\r%*s\r", LINE_WIDTH, "");
	line_is_open = false;
	fflush(stdout);
}

/* One line on a terminal; elsewhere a line whenever the percentage has changed. */
static void store_show(const struct move_progress *now)
{
	static const char *const phases[] = {"reading", "copying", "checking"};
	static int said = -1;
	int percent = now->all_total > 0 ? (int)(now->all * 100 / now->all_total) : 100;
	char line[MOVE_NAME_MAX + 80];

	snprintf(line, sizeof(line), "%3d%% %s %s: %lld of %lld rows", percent, phases[now->phase],
		 now->table, (long long)now->n, (long long)now->total);
	if (on_terminal) {
		printf("\r%-*.*s", LINE_WIDTH, LINE_WIDTH, line);
		line_is_open = true;
	} else if (percent != said) {
		puts(line);
	}
	said = percent;
	fflush(stdout);
}

/* Beside a file are folders and files that are this machine's. */
static void say_what_stays(const char *from)
{
	static const char scheme[] = "sqlite:";
	static const char *const endings[] = {".tasks", ".sessions", "-index"};
	const char *path = from + sizeof(scheme) - 1;
	bool any = false;
	char name[PATH_LEN + 16];

	if (strncmp(from, scheme, sizeof(scheme) - 1) != 0)
		return;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (snprintf(name, sizeof(name), "%s%s", path, endings[i]) >= (int)sizeof(name) ||
		    access(name, F_OK) != 0)
			continue;
		printf("%s%s", any ? ", " : "Not copied (copy these files yourself): ", name);
		any = true;
	}
	fputs(any ? "\n" : "", stdout);
}

int daemon_move(const char *from, const char *to)
{
	const struct move_opts opts = {
		.digest = digest_hex,
		.progress = store_show,
		.stopped = stopped,
	};
	struct sigaction action = {.sa_handler = ask_stop};
	struct error error = {.text = "out of memory"};
	struct store_moved moved;
	int r;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	on_terminal = isatty(STDOUT_FILENO) == 1;
	r = store_move(from, to, &opts, &moved, &error);
	store_end_line();
	if (r == -ECANCELED && stopped())
		return complain("stopped; run the same command again to continue", STOPPED);
	if (r != 0)
		return complain(error.text,
				error.code == REFUSE_PARAMS ? EX_USAGE : EX_UNAVAILABLE);
	printf("Copied and verified %lld rows in %u tables%s. The old store is unchanged.\n",
	       (long long)moved.n_rows, moved.n_tables,
	       moved.resumed ? ", continuing an interrupted copy" : "");
	say_what_stays(from);
	return 0;
}
