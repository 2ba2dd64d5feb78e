/*
 * Folders of the cgroup2 file system. No controller is switched on, so our own group may keep
 * processes of its own beside its child groups.
 */
#include "io/process/inner.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "io/inner.h"

enum { DEPTH_MAX = 16 };

struct cgroup {
	int own;   /* our own group's folder, the parent of this one */
	int dir;   /* -1: not made */
	int procs; /* -1: not open */
	bool made;
	char name[NAME_MAX + 1];
};

static void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* "0::/path" in /proc/self/cgroup. */
static bool read_own_path(char out[PATH_MAX])
{
	CLEANUP(fclosep) FILE *f = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		/* Outside of what we can see. */
		if (strncmp(line + 3, "/..", 3) == 0)
			return false;
		memcpy(out, line + 3, strlen(line + 3) + 1);
		return true;
	}
	return false;
}

/* ID PARENT DEVICE ROOT POINT OPTIONS ... - cgroup2 ...: which part of the tree is seen where. */
static bool read_mount(char root[PATH_MAX], char point[PATH_MAX])
{
	CLEANUP(fclosep) FILE *f = fopen("/proc/self/mountinfo", "re");
	char line[3 * PATH_MAX];

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, " - cgroup2 ") &&
		    sscanf(line, "%*s %*s %*s %4095s %4095s", root, point) == 2)
			return true;
	}
	return false;
}

/* The folder of the group we are in. */
static int open_own(int *ret_fd)
{
	char path[PATH_MAX], root[PATH_MAX], point[PATH_MAX], folder[2 * PATH_MAX];
	const char *below = path;
	size_t n;

	if (!read_own_path(path) || !read_mount(root, point))
		return -EOPNOTSUPP;
	n = strlen(root);
	if (strcmp(root, "/") != 0) {
		if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/'))
			return -EOPNOTSUPP;
		below = path + n;
	}
	snprintf(folder, sizeof(folder), "%s%s", point, below);
	*ret_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_fd < 0 ? -EOPNOTSUPP : 0;
}

static bool is_name(const char *name)
{
	return *name && *name != '.' && strlen(name) <= NAME_MAX && !strpbrk(name, "/\n");
}

static int cgroup_write_file(int dir, const char *name, const char *text)
{
	CLEANUP(closep) int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : file_write_all(fd, text, strlen(text));
}

static int cgroup_make(struct cgroup *g)
{
	int r = open_own(&g->own);

	if (r != 0)
		return r;
	/* A process that may not move others out of our own group cannot fill another group. */
	if (faccessat(g->own, "cgroup.procs", W_OK, AT_EACCESS) != 0)
		return -EOPNOTSUPP;
	if (mkdirat(g->own, g->name, 0755) != 0)
		return errno == EEXIST ? -EEXIST : -EOPNOTSUPP;
	g->made = true;
	g->dir = openat(g->own, g->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (g->dir < 0)
		return -errno;
	g->procs = openat(g->dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return g->procs < 0 ? -errno : 0;
}

int cgroup_new(const char *name, struct cgroup **ret_cgroup)
{
	struct cgroup *g;
	int r;

	if (!is_name(name))
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->own = g->dir = g->procs = -1;
	strcpy(g->name, name);
	r = cgroup_make(g);
	if (r != 0) {
		cgroup_free(g);
		return r;
	}
	*ret_cgroup = g;
	return 0;
}

int cgroup_folder(const struct cgroup *g)
{
	return g->dir;
}

int cgroup_fd(const struct cgroup *g)
{
	return g->procs;
}

/* "populated 1": in it or below it. */
static bool is_populated(int dir)
{
	CLEANUP(closep) int fd = openat(dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return false;
	text[n] = '\0';
	return strstr(text, "populated 1") != NULL;
}

bool cgroup_is_populated(const struct cgroup *g)
{
	return is_populated(g->dir);
}

/* Each group directly below `dir`, the list of which stays open meanwhile. */
static void each_below(int dir, unsigned depth, void (*fn)(int dir, const char *name, unsigned))
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedirp) DIR *list = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *d;

	if (!list && copy >= 0)
		close(copy);
	while (list && depth < DEPTH_MAX && (d = readdir(list))) {
		if (d->d_type == DT_DIR && d->d_name[0] != '.')
			fn(dir, d->d_name, depth + 1);
	}
}

static void signal_listed(int dir)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	CLEANUP(fclosep) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int pid;

	if (!f && fd >= 0)
		close(fd);
	while (f && fscanf(f, "%d", &pid) == 1) {
		if (pid > 0)
			kill(pid, SIGKILL);
	}
}

static void signal_one(int parent, const char *name, unsigned depth)
{
	CLEANUP(closep) int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	signal_listed(dir);
	each_below(dir, depth, signal_one);
}

/* Before Linux 5.14: nothing can be born in a frozen group, and no pid can be reused. */
static int kill_frozen(int dir)
{
	int r = cgroup_write_file(dir, "cgroup.freeze", "1");

	signal_one(dir, ".", 0);
	cgroup_write_file(dir, "cgroup.freeze", "0");
	return r;
}

static int kill_all(int dir)
{
	int r = cgroup_write_file(dir, "cgroup.kill", "1");

	return r == -ENOENT ? kill_frozen(dir) : r;
}

int cgroup_kill(struct cgroup *g)
{
	return kill_all(g->dir);
}

/* With its child groups, which programs inside may have made. */
static void remove_one(int parent, const char *name, unsigned depth)
{
	CLEANUP(closep) int dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	each_below(dir, depth, remove_one);
	unlinkat(parent, name, AT_REMOVEDIR);
}

void cgroup_free(struct cgroup *g)
{
	if (!g)
		return;
	closep(&g->procs);
	closep(&g->dir);
	if (g->made)
		remove_one(g->own, g->name, 0);
	closep(&g->own);
	free(g);
}

static bool sweep_one(int own, const char *name)
{
	CLEANUP(closep) int dir = openat(own, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return false;
	if (is_populated(dir))
		kill_all(dir);
	remove_one(own, name, 0);
	return faccessat(own, name, F_OK, 0) == 0;
}

unsigned cgroup_sweep(const char *prefix)
{
	CLEANUP(closedirp) DIR *list = NULL;
	struct dirent *d;
	unsigned n_left = 0;
	int own;

	if (!*prefix || open_own(&own) != 0)
		return 0;
	list = fdopendir(own);
	if (!list)
		close(own);
	while (list && (d = readdir(list))) {
		if (d->d_type == DT_DIR && strncmp(d->d_name, prefix, strlen(prefix)) == 0)
			n_left += sweep_one(own, d->d_name);
	}
	return n_left;
}
