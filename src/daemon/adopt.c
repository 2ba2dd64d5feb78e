/* koined --adopt: takes over a store that somebody else has made, and exits. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "store/adopt.h"

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
	char url[PATH_LEN + 16];
	struct store_adopted a;
	struct why why = {.text = ""};

	settings_store_url(s, url, sizeof(url));
	if (store_adopt(url, &a, &why) != 0) {
		fprintf(stderr, "koined: %s\n", why.text);
		return EX_UNAVAILABLE;
	}
	if (!move_folder(&a, ".tasks") || !move_folder(&a, ".sessions"))
		return EX_UNAVAILABLE;
	printf("%s is ours now; the old one is %s\n"
	       "%lld tasks are held (koine task release), %lld schedules are off (koine "
	       "automation\n"
	       "enable), %lld grants and all trust in projects are gone\n",
	       a.path, a.aside, (long long)a.n_tasks, (long long)a.n_jobs, (long long)a.n_grants);
	return 0;
}
