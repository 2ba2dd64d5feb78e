/*
 * A private folder is removed without recursion: nested folders are first moved up beside it,
 * so that neither our stack nor our descriptors depend on how deep a program has nested them.
 * No link is followed on the way.
 */
#include "io/process/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/inner.h"

/* A program that still makes files while we remove them is not waited for. */
enum { ROUNDS_MAX = 100000 };

/* Those who allow it by its name need the name that the kernel uses. */
static int without_links(const char *path, char out[PRIVATE_FOLDER_LEN])
{
	CLEANUP(freep) char *real = realpath(path, NULL);

	if (!real || strlen(real) >= PRIVATE_FOLDER_LEN) {
		rmdir(path);
		return real ? -ENAMETOOLONG : -errno;
	}
	strcpy(out, real);
	return 0;
}

int private_folder_new(char out[PRIVATE_FOLDER_LEN])
{
	const char *above = getenv("TMPDIR");
	char path[PRIVATE_FOLDER_LEN];
	int n = snprintf(path, sizeof(path), "%s/koine-agent-XXXXXX",
			 above && above[0] == '/' ? above : "/tmp");

	if (n >= PRIVATE_FOLDER_LEN)
		return -ENAMETOOLONG;
	if (!mkdtemp(path))
		return -errno;
	return without_links(path, out);
}

struct removal {
	uv_work_t work;
	unsigned moved; /* names that were given */
	char path[PRIVATE_FOLDER_LEN];
};

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A program may have closed it to itself, and so to us. */
static DIR *open_below(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d;

	if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, 0) == 0)
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	/* Without these permissions nothing in it can be removed. */
	(void)fchmod(fd, 0700);
	d = fdopendir(fd);
	if (!d)
		close(fd);
	return d;
}

static void move_up(struct removal *r, int from, const char *name, int top)
{
	char fresh[40];

	snprintf(fresh, sizeof(fresh), ".koine-gone-%u", r->moved++);
	/* A folder that is closed to us cannot be moved: its own entry ".." would change. */
	if (renameat(from, name, top, fresh) != 0 && errno == EACCES &&
	    fchmodat(from, name, 0700, 0) == 0)
		(void)renameat(from, name, top, fresh);
}

/* Removes the files of one folder and moves its folders up. */
static void empty(struct removal *r, int top, const char *name)
{
	DIR *d = open_below(top, name);
	const struct dirent *e;

	if (!d)
		return;
	while ((e = readdir(d))) {
		if (!is_dots(e->d_name) && unlinkat(dirfd(d), e->d_name, 0) != 0)
			move_up(r, dirfd(d), e->d_name, top);
	}
	closedir(d);
}

/* Goes once through everything that is there now; false when it is empty. */
static bool remove_round(struct removal *r, DIR *top)
{
	const struct dirent *e;
	bool any = false;

	rewinddir(top);
	while ((e = readdir(top))) {
		if (is_dots(e->d_name))
			continue;
		any = true;
		if (unlinkat(dirfd(top), e->d_name, 0) == 0)
			continue;
		empty(r, dirfd(top), e->d_name);
		(void)unlinkat(dirfd(top), e->d_name, AT_REMOVEDIR);
	}
	return any;
}

static void on_work(uv_work_t *work)
{
	struct removal *r = work->data;
	DIR *top = open_below(AT_FDCWD, r->path);
	unsigned rounds = 0;

	if (!top)
		return;
	while (rounds < ROUNDS_MAX && remove_round(r, top))
		rounds++;
	closedir(top);
	(void)rmdir(r->path);
}

static void on_removed(uv_work_t *work, int status)
{
	free(work->data);
}

void private_folder_remove(struct loop *l, const char *path)
{
	struct removal *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->work.data = r;
	snprintf(r->path, sizeof(r->path), "%s", path);
	if (uv_queue_work(loop_uv(l), &r->work, on_work, on_removed) != 0)
		free(r);
}
