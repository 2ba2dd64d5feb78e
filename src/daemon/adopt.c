/*
 * koined --adopt takes over a store that another user has made. koined --init-store makes the tables of one. Both
 * exit then.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/life.h"
#include "store/adopt.h"
#include "store/store.h"

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
	struct why why = {.text = "out of memory"};
	bool is_file;

	settings_store_url(s, url, sizeof(url));
	is_file = strncmp(url, "sqlite:", 7) == 0;
	if (make_own_folder(s, &why) != 0 || daemon_accepted(s, accepted, sizeof(accepted)) != 0 ||
	    store_adopt(url, accepted, &a, &why) != 0) {
		return complain(why.text, EX_UNAVAILABLE);
	}
	if (is_file && (!move_folder(&a, ".tasks") || !move_folder(&a, ".sessions")))
		return EX_UNAVAILABLE;
	if (is_file)
		printf("%s now belongs to you; the old file is %s\n", a.path, a.aside);
	else
		printf("Accepted %s on this machine; trusted owner: %s\n", a.path, a.aside);
	printf("Held %lld tasks (to release them: koine task release)\n", (long long)a.n_tasks);
	printf("Disabled %lld schedules (to enable them: koine automation enable)\n",
	       (long long)a.n_jobs);
	printf("Removed %lld grants, and revoked the trust in all projects\n",
	       (long long)a.n_grants);
	return 0;
}

int daemon_init_store(const struct settings *s)
{
	char url[PATH_LEN + 16];
	struct why why = {.text = "out of memory"};

	settings_store_url(s, url, sizeof(url));
	if (store_init(url, &why) != 0) {
		return complain(why.text, EX_UNAVAILABLE);
	}
	printf("initialized %s\n", url);
	return 0;
}
