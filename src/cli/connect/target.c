#include "cli/connect/target.h"
#include "cli/kit/print.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/connect/edit.h"
#include "cli/kit/value.h"

/* The backup of a file that koine connect has made. A format, not only words: any other backup is the file's
 * content before. Do not reword it. */
static const struct text made =
	TEXT("koine connect made this file; koine connect --undo removes it.\n");

enum { OLDER_BACKUPS_MAX = 1000 };

static int refuse_errno(const char *doing, struct error *error)
{
	int fault = errno;

	return refuse(error, fault == ENOMEM ? REFUSE_INTERNAL : REFUSE_FORBIDDEN, "%s: %s", doing,
		      strerror(fault));
}

/* ---- where it is ---- */

static bool is_within(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (strcmp(folder, "/") == 0)
		return true;
	return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/* The deepest folder of the path that exists, links followed, and what of the path is below it. */
static int resolve_folder(const char *path, char real[PATH_MAX], char rest[PATH_MAX])
{
	char head[PATH_MAX];
	char *slash;

	snprintf(head, sizeof(head), "%s", path);
	while ((slash = strrchr(head, '/')) && slash != head) {
		*slash = '\0';
		if (realpath(head, real)) {
			snprintf(rest, PATH_MAX, "%s", path + strlen(head));
			return 0;
		}
		if (errno != ENOENT)
			return -errno;
	}
	return -ENOENT;
}

static int resolve(struct target *t, struct error *error)
{
	char folder[PATH_MAX];
	char rest[PATH_MAX];
	struct stat st;

	if (lstat(t->path, &st) == 0) {
		if (!realpath(t->path, t->real))
			return refuse_errno("broken symbolic link", error);
		return 0;
	}
	if (errno != ENOENT)
		return refuse_errno("cannot access the file", error);
	if (resolve_folder(t->path, folder, rest) != 0)
		return refuse_errno("cannot access the parent folder", error);
	if (strlen(folder) + strlen(rest) >= PATH_MAX)
		return refuse(error, REFUSE_PARAMS, "the path is longer than %d bytes",
			      PATH_MAX - 1);
	stpcpy(stpcpy(t->real, folder), rest);
	return 0;
}

static int check_base(const char *base, char real[PATH_MAX], struct error *error)
{
	struct stat st;

	if (!realpath(base, real) || stat(real, &st) != 0)
		return refuse(error, REFUSE_FORBIDDEN, "%s: %s", base, strerror(errno));
	if (st.st_uid != geteuid())
		return refuse(error, REFUSE_FORBIDDEN,
			      "%s belongs to user %lu: run koine as that user", base,
			      (unsigned long)st.st_uid);
	return 0;
}

/* ---- reading ---- */

static int check_file(const struct stat *st, struct error *error)
{
	if (!S_ISREG(st->st_mode))
		return refuse(error, REFUSE_FORBIDDEN, "not a regular file");
	if (st->st_uid != geteuid())
		return refuse(error, REFUSE_FORBIDDEN, "the file belongs to user %lu, not to you",
			      (unsigned long)st->st_uid);
	if (!(st->st_mode & S_IWUSR))
		return refuse(error, REFUSE_FORBIDDEN, "the file is read-only");
	return 0;
}

static int read_file(const char *path, struct buf *out, struct stat *ret_st, struct error *error)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	int r;

	if (fd < 0)
		return errno == ENOENT ? -ENOENT : refuse_errno("cannot read the file", error);
	if (fstat(fd, ret_st) != 0)
		return refuse_errno("cannot read the file", error);
	r = check_file(ret_st, error);
	if (r != 0)
		return r;
	r = file_read_all(fd, out);
	if (r == -EFBIG || r == -EMSGSIZE)
		return refuse(error, REFUSE_TOO_LARGE, "the file is larger than %d bytes",
			      EDIT_FILE_MAX);
	errno = -r;
	return r == 0 ? 0 : refuse_errno("cannot read the file", error);
}

static int read_both(struct target *t, struct error *error)
{
	struct stat st;
	int r = read_file(t->real, &t->text, &t->was, error);

	t->exists = r == 0;
	if (r != 0 && r != -ENOENT)
		return r;
	r = read_file(t->backup, &t->before, &st, error);
	t->has_backup = r == 0;
	t->was_made = r == 0 && text_equal(buf_text(&t->before), made);
	if (t->was_made)
		buf_clear(&t->before);
	if (r > 0)
		return refuse(error, REFUSE_FORBIDDEN, "cannot use the backup %s",
			      text_base_name(text_of(t->backup)).data);
	return r == -ENOENT ? 0 : r;
}

int target_open(struct target *t, const char *path, const char *base, struct error *error)
{
	char real_base[PATH_MAX];
	int r;

	*t = (struct target) {.exists = false};
	buf_init(&t->text, EDIT_FILE_MAX);
	buf_init(&t->before, EDIT_FILE_MAX);
	snprintf(t->path, sizeof(t->path), "%s", path);
	r = check_base(base, real_base, error) ?: resolve(t, error);
	if (r != 0)
		return r;
	if (!is_within(t->real, real_base))
		return refuse(error, REFUSE_FORBIDDEN, "symbolic link to a path outside %s", base);
	if (strlen(t->real) + sizeof(".koine-backup") > sizeof(t->backup))
		return refuse(error, REFUSE_PARAMS, "the path is longer than %d bytes",
			      PATH_MAX - 1);
	stpcpy(stpcpy(t->backup, t->real), ".koine-backup");
	return read_both(t, error);
}

void target_close(struct target *t)
{
	buf_done(&t->text);
	buf_done(&t->before);
}

/* ---- writing ---- */

static int make_folders(const struct target *t, struct error *error)
{
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s", t->real);
	r = file_make_parents(path, t->is_shared ? 0777 : 0700);
	if (r == 0)
		return 0;
	errno = -r;
	return refuse_errno("cannot create the parent folder", error);
}

static mode_t mode_of(const struct target *t)
{
	mode_t mode = t->exists ? t->was.st_mode & 07777 : t->is_shared ? 0644 : 0600;

	return t->is_secret ? mode & 0700 : mode;
}

static int connect_target_fill(int fd, const struct target *t, struct text text)
{
	int r = file_write_all(fd, text.data, text.len);

	if (r == 0 && t->exists && fchown(fd, (uid_t)-1, t->was.st_gid) != 0)
		r = -errno;
	if (r == 0 && fchmod(fd, mode_of(t)) != 0)
		r = -errno;
	return r == 0 && fsync(fd) != 0 ? -errno : r;
}

static void sync_folder(const char *path)
{
	char folder[PATH_MAX];
	int fd;

	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	fd = open(folder[0] ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

static int check_unchanged(const struct target *t, struct error *error)
{
	CLEANUP(buf_donep) struct buf now;
	struct stat st;
	int r;

	buf_init(&now, EDIT_FILE_MAX);
	r = read_file(t->real, &now, &st, error);
	if (r > 0)
		return r;
	if ((r == 0) != t->exists ||
	    (t->exists && (st.st_ino != t->was.st_ino || st.st_dev != t->was.st_dev ||
			   !text_equal(buf_text(&now), buf_text(&t->text)))))
		return refuse(error, REFUSE_CONFLICT,
			      "another program changed the file; try again");
	return 0;
}

static int replace(const struct target *t, const char *path, struct text text, struct error *error)
{
	char temp[PATH_MAX];
	int n = snprintf(temp, sizeof(temp), "%s.XXXXXX", path);
	int fd;
	int r;

	if (n < 0 || (size_t)n >= sizeof(temp))
		return refuse(error, REFUSE_PARAMS, "the path is longer than %d bytes",
			      PATH_MAX - 1);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return refuse_errno("cannot write to the parent folder", error);
	r = connect_target_fill(fd, t, text);
	close(fd);
	errno = -r;
	r = r == 0 ? check_unchanged(t, error) : refuse_errno("cannot write the file", error);
	if (r == 0 && rename(temp, path) != 0)
		r = refuse_errno("cannot replace the file", error);
	if (r != 0)
		unlink(temp);
	else
		sync_folder(path);
	return r;
}

int target_write(const struct target *t, struct text text, struct error *error)
{
	int r = t->exists ? 0 : make_folders(t, error);

	return r != 0 ? r : replace(t, t->real, text, error);
}

int target_keep_backup(const struct target *t, struct error *error)
{
	char path[PATH_MAX + 8];
	int r = 0;

	for (int i = 1; i <= OLDER_BACKUPS_MAX; i++) {
		snprintf(path, sizeof(path), "%s.%d", t->backup, i);
		r = file_rename_new(AT_FDCWD, t->backup, path);
		if (r == 0)
			return 0;
		if (r != -EEXIST)
			break;
	}
	errno = -r;
	return refuse_errno("cannot rename the older backup", error);
}

int target_back_up(const struct target *t, struct error *error)
{
	int r = make_folders(t, error);

	if (r == 0 && t->has_backup && !t->was_made)
		r = target_keep_backup(t, error);
	return r != 0 ? r : replace(t, t->backup, t->exists ? buf_text(&t->text) : made, error);
}

int target_remove(const struct target *t, struct error *error)
{
	int r = check_unchanged(t, error);

	if (r == 0 && unlink(t->real) != 0)
		r = refuse_errno("cannot remove the file", error);
	return r;
}

int target_complain(const struct target *t, int r, const struct error *error)
{
	if (r < 0)
		return out_of_memory();
	complain("%s: %s. The file is unchanged", t->path, error->text);
	return r == REFUSE_FORBIDDEN ? EX_NOPERM : EX_DATAERR;
}
