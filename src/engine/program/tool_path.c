/* Paths below the tools' folder. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/program/tool_inner.h"

enum { OPEN_FOLDER = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

void tool_path_done(struct tool_path *p)
{
	if (p->at >= 0)
		close(p->at);
}

/* The path below the tools' folder. */
static int relative(const struct tools *t, struct text path, struct text *ret, struct error *error)
{
	size_t n = strlen(t->folder);

	if (path.len > PATH_MAX || text_find(path, '\0'))
		return refuse_field(error, "path", "path is longer than %d bytes or has a NUL byte",
				    PATH_MAX);
	if (path.data[0] == '/') {
		bool below = path.len >= n && memcmp(path.data, t->folder, n) == 0 &&
			     (path.len == n || path.data[n] == '/' || n == 1);

		if (!below)
			return refuse(error, REFUSE_FORBIDDEN,
				      "path is outside the working directory: %.*s",
				      TEXT_ARGS(path));
		path = (struct text) {.data = path.data + n, .len = path.len - n};
	}
	*ret = path;
	return 0;
}

/* The next name of a path; false: there is none. */
static bool next_name(struct text *path, struct text *ret)
{
	const char *slash;

	do {
		while (path->len > 0 && path->data[0] == '/')
			*path = (struct text) {.data = path->data + 1, .len = path->len - 1};
		slash = text_find(*path, '/');
		ret->data = path->data;
		ret->len = slash ? (size_t)(slash - path->data) : path->len;
		*path = (struct text) {.data = path->data + ret->len, .len = path->len - ret->len};
	} while (text_is(*ret, "."));
	return ret->len > 0;
}

int tool_path_cannot(int fault, const char *path, struct error *error)
{
	switch (fault) {
	case ENOENT:
		return refuse(error, REFUSE_NOT_FOUND, "file does not exist: %s", path);
	case ELOOP:
		return refuse(error, REFUSE_FORBIDDEN, "symbolic links are not followed: %s", path);
	case ENOTDIR:
		return refuse(error, REFUSE_FORBIDDEN, "not a folder, or a symbolic link: %s",
			      path);
	case EISDIR:
		return refuse(error, REFUSE_CONFLICT, "path is a directory: %s", path);
	case EACCES:
	case EPERM:
	case EROFS:
		return refuse(error, REFUSE_FORBIDDEN, "%s: %s", strerror(fault), path);
	default:
		return -fault;
	}
}

/* Descends into the folder of that name. */
static int step(struct tool_path *p, bool makes, struct error *error)
{
	int fd;

	if (makes && mkdirat(p->at, p->name, 0755) != 0 && errno != EEXIST)
		return tool_path_cannot(errno, p->path, error);
	fd = openat(p->at, p->name, OPEN_FOLDER);
	if (fd < 0)
		return tool_path_cannot(errno, p->path, error);
	close(p->at);
	p->at = fd;
	p->name[0] = '\0';
	return 0;
}

static int take_name(struct tool_path *p, struct text name, struct error *error)
{
	if (text_is(name, ".."))
		return refuse(error, REFUSE_FORBIDDEN, "path is outside the working directory: %s",
			      p->path);
	if (name.len > NAME_MAX)
		return refuse_field(error, "path", "a path component is longer than %d bytes",
				    NAME_MAX);
	memcpy(p->name, name.data, name.len);
	p->name[name.len] = '\0';
	return 0;
}

static int whole_path(struct tool_run *r, struct text below, const char **ret)
{
	struct text name;
	struct buf path;
	int e;

	buf_init(&path, 2 * PATH_MAX);
	buf_add_str(&path, r->tools->folder);
	while (next_name(&below, &name)) {
		if (path.len > 1)
			buf_add_char(&path, '/');
		buf_add(&path, name.data, name.len);
	}
	*ret = path.err == 0 ? arena_copy(&r->arena, path.data, path.len) : NULL;
	e = *ret ? 0 : -ENOMEM;
	buf_done(&path);
	return e;
}

int tool_path_find(struct tool_run *r, struct text path, bool makes, struct tool_path *ret,
		   struct error *error)
{
	struct text name;
	int e = relative(r->tools, path, &path, error) ?: whole_path(r, path, &ret->path);

	if (e == 0) {
		ret->at = fcntl(r->tools->folder_fd, F_DUPFD_CLOEXEC, 3);
		e = ret->at < 0 ? -errno : 0;
	}
	while (e == 0 && next_name(&path, &name)) {
		if (ret->name[0])
			e = step(ret, makes, error);
		if (e == 0)
			e = take_name(ret, name, error);
	}
	return e;
}

int tool_path_folder(struct tool_run *r, struct text path, const char **ret, struct error *error)
{
	CLEANUP(tool_path_done) struct tool_path p = {.at = -1};
	int e = tool_path_find(r, path, false, &p, error);

	if (e == 0 && p.name[0])
		e = step(&p, false, error);
	if (e == 0)
		*ret = p.path;
	return e;
}
