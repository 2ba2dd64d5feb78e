#include "dialect/aiwg/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

enum { NAME_LEN = 64, IMPORTS_MAX = 100 };

/* ---- folders ---- */

static bool is_trusted(const struct stat *st)
{
	return st->st_uid == geteuid() || st->st_uid == 0;
}

/* Opens a folder below `at`, which it closes. Links are never followed: a project may come from
 * anywhere. */
static int open_below(int at, const char *name)
{
	int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r = 0;

	if (fd < 0 || fstat(fd, &st) != 0)
		r = -errno;
	else if (!is_trusted(&st))
		r = -EPERM;
	close(at);
	if (r != 0 && fd >= 0)
		close(fd);
	return r != 0 ? r : fd;
}

/* Opens the folder of a file; *ret_name is the file's name there. */
static int open_place(const char *folder, const char *file, const char **ret_name)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	char part[NAME_LEN];
	size_t n;

	if (fd < 0)
		return -errno;
	while (fd >= 0 && file[n = strcspn(file, "/")]) {
		snprintf(part, sizeof(part), "%.*s", (int)n, file);
		fd = open_below(fd, part);
		file += n + 1;
	}
	*ret_name = file;
	return fd;
}

/* Refuses anything that must not be where a folder is or will be made. */
static int aiwg_files_check_folder(int at, const char *folder, const char *name,
				   struct error *error)
{
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0
				       : refuse(error, REFUSE_UNAVAILABLE, "project %s: %s: %s",
						folder, name, strerror(errno));
	if (S_ISLNK(st.st_mode))
		return refuse(error, REFUSE_FORBIDDEN,
			      "project %s: %s is a symbolic link; koined does not follow links",
			      folder, name);
	if (!S_ISDIR(st.st_mode))
		return refuse(error, REFUSE_CONFLICT, "project %s: %s is not a folder", folder,
			      name);
	if (!is_trusted(&st))
		return refuse(error, REFUSE_FORBIDDEN,
			      "project %s: %s belongs to another user (uid %u)", folder, name,
			      (unsigned)st.st_uid);
	return 0;
}

int project_check(const char *folder, struct error *error)
{
	CLEANUP(closep) int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	/* The folder will be created. */
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return refuse(error, REFUSE_UNAVAILABLE, "project %s: %s", folder, strerror(errno));
	r = aiwg_files_check_folder(fd, folder, ".aiwg", error);
	return r != 0 ? r : aiwg_files_check_folder(fd, folder, ".aiwg/daemon", error);
}

bool project_socket_broken(const char *path)
{
	char lock[4096];
	struct stat st;

	if (lstat(path, &st) == 0 && !S_ISSOCK(st.st_mode))
		return true;
	snprintf(lock, sizeof(lock), "%s.lock", path);
	return lstat(lock, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_size > 0);
}

/* ---- files ---- */

static int open_new(int at, const char *name)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(at, name, flags, 0600);

	/* A daemon that was killed has left the file behind. */
	if (fd < 0 && errno == EEXIST && unlinkat(at, name, 0) == 0)
		fd = openat(at, name, flags, 0600);
	return fd < 0 ? -errno : fd;
}

int project_file_write(const char *folder, const char *file, struct text text)
{
	const char *name;
	CLEANUP(closep) int at = open_place(folder, file, &name);
	char fresh[NAME_LEN];
	int fd, r;

	if (at < 0)
		return at;
	snprintf(fresh, sizeof(fresh), "%s.tmp", name);
	fd = open_new(at, fresh);
	if (fd < 0)
		return fd;
	r = file_write_all(fd, text.data, text.len);
	close(fd);
	if (r == 0 && renameat(at, fresh, at, name) != 0)
		r = -errno;
	if (r != 0)
		unlinkat(at, fresh, 0);
	return r;
}

/* Opens a log for appending. A log that the original made may be readable by everybody; that is
 * corrected. A file with a second name (a hard link) may not be what it seems, and is refused. */
static int open_log(int at, const char *name, struct stat *ret_st)
{
	/* O_NONBLOCK: a FIFO must not block us. */
	int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = openat(at, name, flags, 0600);
	int r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, ret_st) != 0)
		r = -errno;
	else if (!S_ISREG(ret_st->st_mode) || ret_st->st_nlink > 1)
		r = -EPERM;
	else if ((ret_st->st_mode & 0077) != 0 && fchmod(fd, 0600) != 0)
		r = -errno;
	if (r != 0)
		close(fd);
	return r != 0 ? r : fd;
}

int project_file_append(const char *folder, const char *file, struct text text, size_t max)
{
	const char *name;
	CLEANUP(closep) int at = open_place(folder, file, &name);
	CLEANUP(closep) int fd = -1;
	char older[NAME_LEN];
	struct stat st;

	if (at < 0)
		return at;
	fd = open_log(at, name, &st);
	if (fd >= 0 && st.st_size > 0 && (size_t)st.st_size + text.len > max) {
		close(fd);
		snprintf(older, sizeof(older), "%s.1", name);
		fd = renameat(at, name, at, older) != 0 ? -errno : open_log(at, name, &st);
	}
	return fd < 0 ? fd : file_write_all(fd, text.data, text.len);
}

int project_file_read(const char *folder, const char *file, struct buf *out)
{
	const char *name;
	CLEANUP(closep) int at = open_place(folder, file, &name);
	CLEANUP(closep) int fd = -1;

	if (at < 0)
		return at;
	/* O_NONBLOCK: a FIFO must not block us. */
	fd = openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return fd < 0 ? -errno : file_read_all(fd, out);
}

bool project_file_exists(const char *folder, const char *file)
{
	const char *name;
	CLEANUP(closep) int at = open_place(folder, file, &name);
	struct stat st;

	return at >= 0 && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int project_file_put_aside(const char *folder, const char *file, const char *suffix)
{
	const char *name;
	CLEANUP(closep) int at = open_place(folder, file, &name);
	char to[NAME_LEN];
	int r;

	if (at < 0)
		return at;
	snprintf(to, sizeof(to), "%s%s", name, suffix);
	r = file_rename_new(at, name, to);
	for (unsigned i = 2; r == -EEXIST && i <= IMPORTS_MAX; i++) {
		snprintf(to, sizeof(to), "%s%s.%u", name, suffix, i);
		r = file_rename_new(at, name, to);
	}
	return r;
}

/* ---- the pid file ---- */

int project_pid_write(const char *folder)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%d", (int)getpid());

	return project_file_write(folder, PROJECT_PID,
				  (struct text) {.data = text, .len = (size_t)n});
}

void project_pid_remove(const char *folder)
{
	const char *name;
	CLEANUP(closep) int at = open_place(folder, PROJECT_PID, &name);
	CLEANUP(buf_donep) struct buf text;

	buf_init(&text, 64);
	if (at < 0 || project_file_read(folder, PROJECT_PID, &text) != 0)
		return;
	buf_add_char(&text, '\0');
	if (text.err == 0 && atoi(text.data) == (int)getpid())
		unlinkat(at, name, 0);
}

/* ---- JSON ---- */

static void new_line(struct buf *out, unsigned depth)
{
	buf_add_char(out, '\n');
	for (unsigned i = 0; i < depth; i++)
		buf_add(out, "  ", 2);
}

/* The length of a whole string, with its quotes. */
static size_t string_len(struct text json, size_t at)
{
	size_t n = 1;

	while (at + n < json.len && json.data[at + n] != '"')
		n += json.data[at + n] == '\\' ? 2 : 1;
	return at + n < json.len ? n + 1 : json.len - at;
}

/* `json` must have no white space. */
void project_indent(struct text json, struct buf *out)
{
	unsigned depth = 0;
	size_t n;

	for (size_t i = 0; i < json.len; i += n) {
		char c = json.data[i];
		bool begins = c == '{' || c == '[';
		bool ends = c == '}' || c == ']';

		n = c == '"' ? string_len(json, i) : 1;
		/* An empty object or array stays on one line. */
		if (begins && i + 1 < json.len && strchr("]}", json.data[i + 1])) {
			n = 2;
			begins = false;
		}
		if (ends)
			new_line(out, --depth);
		buf_add(out, json.data + i, n);
		if (c == ':')
			buf_add_char(out, ' ');
		if (begins)
			new_line(out, ++depth);
		else if (c == ',')
			new_line(out, depth);
	}
}
