/*
 * One inotify descriptor, and one watch for each folder below the root.
 *
 * A new folder is watched first and then searched, so that what was put there before the watch
 * is not missed. What was put there in between is reported twice, which is the lesser evil.
 *
 * A folder that is moved keeps its inotify watch under its old name, so its watches are
 * dropped when it leaves and made anew where it arrives. Events that are still queued for a
 * dropped watch name no folder we know, and are skipped.
 */
#include "io/watch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/log.h"
#include "io/inner.h"

enum {
	MAX_FOLDERS = 8192,
	N_BUCKETS = 1024,
	EVENTS_SIZE = 16 * 1024,
};

enum {
	FOLDER_EVENTS = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
			IN_ONLYDIR | IN_EXCL_UNLINK,
};

struct io_watch_folder {
	struct list by_wd;  /* in a bucket */
	struct list unseen; /* on the list to be searched, or unlinked */
	int wd;
	unsigned round; /* the last rescan that saw it */
	char path[];
};

struct watch {
	uv_poll_t poll;
	int fd;
	bool closed;
	bool started;
	bool full; /* it was logged that not all folders are watched */
	unsigned round;
	unsigned n_folders;
	unsigned max_folders;
	int root_wd;
	char *root;
	struct list buckets[N_BUCKETS];
	void (*on_change)(void *arg, enum watch_event event, const char *path);
	bool (*skip)(void *arg, const char *name);
	void *arg;
};

/* Whether what is found while searching a folder is reported. */
enum scan { SCAN_SILENT, SCAN_REPORT };

static void io_watch_notify(struct watch *w, enum watch_event event, const char *path)
{
	if (!w->closed)
		w->on_change(w->arg, event, path);
}

static struct list *bucket(struct watch *w, int wd)
{
	return &w->buckets[(unsigned)wd % N_BUCKETS];
}

static struct io_watch_folder *folder_find(struct watch *w, int wd)
{
	list_for_each (at, following, bucket(w, wd)) {
		struct io_watch_folder *f = list_entry(at, struct io_watch_folder, by_wd);

		if (f->wd == wd)
			return f;
	}
	return NULL;
}

static void folder_drop(struct watch *w, struct io_watch_folder *f)
{
	list_remove(&f->by_wd);
	list_remove(&f->unseen);
	w->n_folders--;
	free(f);
}

/* Removes the watch, which may be gone already. */
static void folder_unwatch(struct watch *w, struct io_watch_folder *f)
{
	inotify_rm_watch(w->fd, f->wd);
	folder_drop(w, f);
}

static int folder_add(struct watch *w, int wd, const char *path, struct list *unseen)
{
	struct io_watch_folder *f = folder_find(w, wd);

	/* The kernel knows folders, not names: one that was moved comes back with its old number
	 * before we have read that it left. */
	if (f && strcmp(f->path, path) != 0)
		folder_drop(w, TAKE(f));
	if (!f) {
		f = malloc(sizeof(*f) + strlen(path) + 1);
		if (!f)
			return -ENOMEM;
		f->wd = wd;
		strcpy(f->path, path);
		list_init(&f->unseen);
		list_append(bucket(w, wd), &f->by_wd);
		w->n_folders++;
	}
	f->round = w->round;
	list_remove(&f->unseen);
	list_append(unseen, &f->unseen);
	return 0;
}

/* After the start nothing can be refused any more, but it can be logged, once. */
static int cope(struct watch *w, int r)
{
	if (!w->started || r == 0)
		return r;
	if (!w->full)
		log_warn("could not watch folders", "root=%s watched=%u error=\"%s\"", w->root,
			 w->n_folders, r < 0 ? strerror(-r) : "too many folders");
	w->full = true;
	return 0;
}

/* Watches one folder and puts it on the list to be searched. A folder that is gone again, or
 * closed to us, is skipped. */
static int io_watch_enter(struct watch *w, const char *path, struct list *unseen)
{
	int wd = inotify_add_watch(w->fd, path, FOLDER_EVENTS | IN_DONT_FOLLOW);

	if (wd < 0)
		return errno == ENOSPC || errno == ENOMEM ? cope(w, -errno) : 0;
	/* The root counts as one of n_folders, but not against the limit. */
	if (w->n_folders > w->max_folders && !folder_find(w, wd)) {
		inotify_rm_watch(w->fd, wd);
		return cope(w, REFUSE_LIMIT);
	}
	return cope(w, folder_add(w, wd, path, unseen));
}

static bool is_folder(int dir_fd, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static bool skipped(const struct watch *w, const char *name)
{
	return w->skip && w->skip(w->arg, name);
}

static bool io_watch_join(char out[PATH_MAX], const char *folder, const char *name)
{
	const char *slash = strcmp(folder, "/") == 0 ? "" : "/";

	return snprintf(out, PATH_MAX, "%s%s%s", folder, slash, name) < PATH_MAX;
}

/* Only the root may be a link. */
static DIR *open_folder(const struct watch *w, const char *path)
{
	int follow = strcmp(path, w->root) == 0 ? 0 : O_NOFOLLOW;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follow);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (fd >= 0 && !d)
		close(fd);
	return d;
}

static int scan_folder(struct watch *w, const char *folder, enum scan scan, struct list *unseen)
{
	CLEANUP(closedirp) DIR *d = open_folder(w, folder);
	char path[PATH_MAX];
	struct dirent *e;
	int r = 0;

	while (d && r == 0 && !w->closed && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (!io_watch_join(path, folder, e->d_name))
			continue;
		if (scan == SCAN_REPORT)
			io_watch_notify(w, WATCH_CREATE, path);
		if (!w->closed && is_folder(dirfd(d), e) && !skipped(w, e->d_name))
			r = io_watch_enter(w, path, unseen);
	}
	return r;
}

/* Searches everything on the list and what is found below. Not recursive: depth costs no stack. */
static int scan_all(struct watch *w, struct list *unseen, enum scan scan)
{
	char path[PATH_MAX];
	int r = 0;

	while (!list_empty(unseen)) {
		struct io_watch_folder *f =
			list_entry(list_first(unseen), struct io_watch_folder, unseen);

		list_remove(&f->unseen);
		if (r != 0 || w->closed)
			continue;
		/* A copy: what is found may drop the folder we are in. */
		strcpy(path, f->path);
		r = scan_folder(w, path, scan, unseen);
	}
	return r;
}

static void folder_arrived(struct watch *w, const char *path)
{
	struct list unseen;

	list_init(&unseen);
	io_watch_enter(w, path, &unseen);
	scan_all(w, &unseen, SCAN_REPORT);
}

static bool is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Those at `path` and below it; NULL: those that the last rescan did not see.
 * FIXME: linear in folders for each one that is moved. Fine for people and their
 * editors; index by path before something moves thousands. */
static void unwatch_folders(struct watch *w, const char *path)
{
	for (unsigned i = 0; i < N_BUCKETS; i++) {
		list_for_each (at, following, &w->buckets[i]) {
			struct io_watch_folder *f = list_entry(at, struct io_watch_folder, by_wd);

			if (path ? is_below(f->path, path) : f->round != w->round)
				folder_unwatch(w, f);
		}
	}
}

static int scan_root(struct watch *w)
{
	struct list unseen;
	int wd;

	list_init(&unseen);
	wd = inotify_add_watch(w->fd, w->root, FOLDER_EVENTS | IN_DELETE_SELF | IN_MOVE_SELF);
	if (wd < 0)
		return -errno;
	w->root_wd = wd;
	return folder_add(w, wd, w->root, &unseen) ?: scan_all(w, &unseen, SCAN_SILENT);
}

/* Events were lost: folders may have come and gone unseen. */
static void rescan(struct watch *w)
{
	w->round++;
	w->full = false;
	cope(w, scan_root(w));
	unwatch_folders(w, NULL);
	io_watch_notify(w, WATCH_OVERFLOW, w->root);
}

/* The root itself is gone or elsewhere; what its watches see is no longer below it. */
static void root_left(struct watch *w)
{
	unwatch_folders(w, w->root);
	io_watch_notify(w, WATCH_DELETE, w->root);
}

static void entry_changed(struct watch *w, const struct inotify_event *e, const char *path)
{
	bool folder = e->mask & IN_ISDIR;

	if (e->mask & IN_MODIFY)
		io_watch_notify(w, WATCH_MODIFY, path);
	if (e->mask & (IN_DELETE | IN_MOVED_FROM)) {
		if (folder && e->mask & IN_MOVED_FROM)
			unwatch_folders(w, path);
		io_watch_notify(w, WATCH_DELETE, path);
	}
	if (e->mask & (IN_CREATE | IN_MOVED_TO)) {
		io_watch_notify(w, WATCH_CREATE, path);
		if (folder && !w->closed && !skipped(w, e->name))
			folder_arrived(w, path);
	}
}

static void handle(struct watch *w, const struct inotify_event *e)
{
	struct io_watch_folder *f;
	char path[PATH_MAX];

	if (e->mask & IN_Q_OVERFLOW) {
		rescan(w);
		return;
	}
	f = folder_find(w, e->wd);
	if (!f)
		return;
	if (e->wd == w->root_wd && e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))
		root_left(w);
	else if (e->mask & IN_IGNORED)
		folder_drop(w, f);
	else if (e->len > 0 && io_watch_join(path, f->path, e->name))
		entry_changed(w, e, path);
}

/* One buffer full each turn, so that a storm of changes leaves room for others. */
static void io_watch_on_readable(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;
	_Alignas(struct inotify_event) char buffer[EVENTS_SIZE];
	ssize_t n;

	n = status < 0 ? 0 : read(w->fd, buffer, sizeof(buffer));
	for (ssize_t at = 0; at < n && !w->closed;) {
		const struct inotify_event *e = (const struct inotify_event *)(buffer + at);

		handle(w, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

static void watch_free(struct watch *w)
{
	for (unsigned i = 0; i < N_BUCKETS; i++) {
		list_for_each (at, following, &w->buckets[i])
			folder_drop(w, list_entry(at, struct io_watch_folder, by_wd));
	}
	if (w->fd >= 0)
		close(w->fd);
	free(w->root);
	free(w);
}

CLEANUP_POINTER(watch, watch_free)

static int io_watch_explain(const struct watch *w, int r, struct error *error)
{
	if (r == -ENOENT)
		return refuse(error, REFUSE_NOT_FOUND, "no such folder: %s", w->root);
	if (r == -ENOTDIR)
		return refuse(error, REFUSE_NOT_FOUND, "not a folder: %s", w->root);
	if (r == -EACCES)
		return refuse(error, REFUSE_FORBIDDEN, "no permission to read %s", w->root);
	if (r == REFUSE_LIMIT)
		return refuse(error, REFUSE_LIMIT, "too many folders in %s (limit %u)", w->root,
			      w->max_folders);
	if (r == -ENOSPC || r == -EMFILE)
		return refuse(error, REFUSE_LIMIT,
			      "no inotify watches left for %s: raise fs.inotify.max_user_watches",
			      w->root);
	return r;
}

static int watch_new(const char *root, const struct watch_opts *opts, struct watch **ret_watch)
{
	CLEANUP(watch_freep) struct watch *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->fd = -1;
	for (unsigned i = 0; i < N_BUCKETS; i++)
		list_init(&w->buckets[i]);
	w->on_change = opts->on_change;
	w->skip = opts->skip;
	w->arg = opts->arg;
	w->max_folders = opts->max_folders ? opts->max_folders : MAX_FOLDERS;
	w->root = strdup(root);
	if (!w->root)
		return -ENOMEM;
	/* "dir/" and "dir" are one; paths are joined with a single slash. */
	for (size_t n = strlen(root); n > 1 && w->root[n - 1] == '/'; n--)
		w->root[n - 1] = '\0';
	*ret_watch = TAKE(w);
	return 0;
}

int watch_open(struct loop *l, const char *root, const struct watch_opts *opts,
	       struct watch **ret_watch, struct error *error)
{
	CLEANUP(watch_freep) struct watch *w = NULL;
	int r;

	if (strlen(root) >= PATH_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "path is longer than %d bytes: %s", PATH_MAX,
			      root);
	r = watch_new(root, opts, &w);
	if (r != 0)
		return r;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	r = w->fd < 0 ? -errno : scan_root(w);
	if (r != 0)
		return io_watch_explain(w, r, error);
	r = uv_poll_init(loop_uv(l), &w->poll, w->fd);
	if (r != 0)
		return r;
	w->poll.data = w;
	w->started = true;
	uv_poll_start(&w->poll, UV_READABLE, io_watch_on_readable);
	*ret_watch = TAKE(w);
	return 0;
}

static void io_watch_on_closed(uv_handle_t *handle)
{
	watch_free(handle->data);
}

void watch_close(struct watch *w)
{
	if (!w || w->closed)
		return;
	w->closed = true;
	uv_close((uv_handle_t *)&w->poll, io_watch_on_closed);
}
