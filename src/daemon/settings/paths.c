#include "daemon/settings/paths.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] == '/' ? value : NULL;
}

void paths_runtime(char out[PATH_LEN])
{
	const char *xdg = variable("XDG_RUNTIME_DIR");

	if (xdg)
		snprintf(out, PATH_LEN, "%s/koine", xdg);
	else if (geteuid() == 0)
		snprintf(out, PATH_LEN, "/run/koine");
	else
		snprintf(out, PATH_LEN, "/tmp/koine-%u", (unsigned)geteuid());
}

/* The file in $XDG/koine; otherwise below `system` for root, and below `own` in the home directory
 * for others. */
static void standard_path(const char *xdg_name, const char *system, const char *own,
			  const char *file, char out[PATH_LEN])
{
	const char *xdg = variable(xdg_name);
	const char *home = variable("HOME");

	if (xdg)
		snprintf(out, PATH_LEN, "%s/koine/%s", xdg, file);
	else if (geteuid() == 0 || !home)
		snprintf(out, PATH_LEN, "%s/koine/%s", system, file);
	else
		snprintf(out, PATH_LEN, "%s/%s/koine/%s", home, own, file);
}

void paths_config(char out[PATH_LEN])
{
	standard_path("XDG_CONFIG_HOME", "/etc", ".config", "koine.conf", out);
}

void paths_state(const char *file, char out[PATH_LEN])
{
	standard_path("XDG_STATE_HOME", "/var/lib", ".local/state", file, out);
}

bool paths_expand(const char *path, char out[PATH_LEN])
{
	const char *home = variable("HOME");

	if (strncmp(path, "~/", 2) != 0) {
		snprintf(out, PATH_LEN, "%s", path);
		return true;
	}
	snprintf(out, PATH_LEN, "%s%s", home ? home : "", path + 1);
	return home != NULL;
}

bool paths_usable(const char *path, struct error *error)
{
	char folder[PATH_LEN];
	struct stat st;
	const char *at;
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	/* Go up to the first folder that exists: the ones below it would be made. */
	do {
		slash = strrchr(folder, '/');
		if (slash)
			*slash = '\0';
		at = !slash ? "." : folder[0] ? folder : "/";
		if (stat(at, &st) == 0 && !S_ISDIR(st.st_mode))
			errno = ENOTDIR;
		else if (access(at, W_OK | X_OK) == 0)
			return true;
	} while (errno == ENOENT && slash && folder[0]);
	refuse(error, REFUSE_FORBIDDEN, "cannot write to %s: %s", at, strerror(errno));
	return false;
}

bool paths_open_to_all(const char *path)
{
	const char *slash = strrchr(path, '/');
	char folder[PATH_LEN];
	struct stat st;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	return stat(folder[0] ? folder : "/", &st) == 0 && (st.st_mode & S_IWOTH) &&
	       !(st.st_mode & S_ISVTX);
}

int paths_check_runtime(const char *folder, struct error *error)
{
	struct stat st;

	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return refuse(error, REFUSE_UNAVAILABLE, "cannot create %s: %s", folder,
			      strerror(errno));
	if (lstat(folder, &st) != 0)
		return refuse(error, REFUSE_UNAVAILABLE, "cannot stat %s: %s", folder,
			      strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return refuse(error, REFUSE_CONFLICT, "%s is not a folder", folder);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return refuse(error, REFUSE_FORBIDDEN,
			      "%s belongs to another user or is writable by others", folder);
	return 0;
}

int paths_folder(const char *path, char out[PATH_LEN], struct error *error)
{
	char whole[PATH_MAX];
	struct stat st;

	if (!realpath(path, whole) || stat(whole, &st) != 0)
		return refuse(error, REFUSE_NOT_FOUND, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return refuse(error, REFUSE_PARAMS, "%s is not a folder", path);
	if (strlen(whole) >= PATH_LEN)
		return refuse(error, REFUSE_PARAMS, "%s is too long", path);
	memcpy(out, whole, strlen(whole) + 1);
	return 0;
}

void paths_resolve(const char *path, char out[PATH_LEN])
{
	char whole[PATH_MAX];
	char copy[PATH_LEN];
	size_t n = strlen(path);

	snprintf(out, PATH_LEN, "%s", path);
	/* Go back from the end to the part that exists. */
	while (n > 0 && n < PATH_LEN) {
		snprintf(copy, sizeof(copy), "%.*s", (int)n, path);
		if (realpath(copy, whole)) {
			const char *start = strcmp(whole, "/") == 0 ? "" : whole;

			snprintf(out, PATH_LEN, "%.*s%s", PATH_LEN - 1, start, path + n);
			return;
		}
		do {
			n--;
		} while (n > 0 && path[n] != '/');
	}
}
