/*
 * The file tools, limited to one folder. A path is walked folder by folder from a descriptor
 * of that folder (tool_path.c). They run on readers' threads, since a disk may be slow.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "engine/program/tool_inner.h"

/* ---- contents ---- */

static int open_file(const struct tool_path *p, int flags, mode_t mode, struct stat *ret_st,
		     int *ret_fd, struct error *error)
{
	int fd = p->name[0] ? openat(p->at, p->name,
				     flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode)
			    : -1;

	if (fd < 0)
		return tool_path_cannot(p->name[0] ? errno : EISDIR, p->path, error);
	if (fstat(fd, ret_st) != 0 || !S_ISREG(ret_st->st_mode)) {
		bool folder = S_ISDIR(ret_st->st_mode);

		close(fd);
		return folder ? tool_path_cannot(EISDIR, p->path, error)
			      : refuse(error, REFUSE_FORBIDDEN, "not a file: %s", p->path);
	}
	*ret_fd = fd;
	return 0;
}

static int read_all(struct tool_run *r, int fd, size_t max, struct text *ret, struct error *error)
{
	char *data = arena_alloc(&r->arena, max + 1);
	size_t n = 0;

	if (!data)
		return -ENOMEM;
	while (n <= max) {
		ssize_t got = read(fd, data + n, max + 1 - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		n += (size_t)got;
	}
	if (n > max)
		return refuse(error, REFUSE_TOO_LARGE, "File too large (>%zuKB)", max >> 10);
	*ret = (struct text) {.data = data, .len = n};
	return 0;
}

static int read_file(struct tool_run *r, const struct tool_path *p, size_t max, struct text *ret,
		     mode_t *ret_mode, struct error *error)
{
	struct stat st = {0};
	int fd;
	int e = open_file(p, O_RDONLY, 0, &st, &fd, error);

	if (e != 0)
		return e;
	e = read_all(r, fd, max, ret, error);
	close(fd);
	*ret_mode = st.st_mode;
	return e;
}

static int write_new(int fd, mode_t mode, struct text t)
{
	int e = file_write_all(fd, t.data, t.len);

	/* A new file gets the mode that the umask allows. */
	if (e == 0 && mode != 0 && fchmod(fd, mode & 0777) != 0)
		e = -errno;
	if (close(fd) != 0 && e == 0)
		e = -errno;
	return e;
}

/* All of it or nothing: the new file is written beside the old one, then replaces it. mode 0: it
 * is new. */
static int replace(const struct tool_path *p, mode_t mode, struct text t, struct error *error)
{
	char id[UUID_LEN + 1];
	char fresh[64];
	int fd, e = uuid4(id);

	if (e != 0)
		return e;
	snprintf(fresh, sizeof(fresh), ".koine-%s", id);
	/* Nobody else may read it until it has the mode of the old one. */
	fd = openat(p->at, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    mode != 0 ? 0600 : 0644);
	if (fd < 0)
		return tool_path_cannot(errno, p->path, error);
	e = write_new(fd, mode, t);
	if (e == 0 && renameat(p->at, fresh, p->at, p->name) != 0)
		e = tool_path_cannot(errno, p->path, error);
	if (e != 0)
		unlinkat(p->at, fresh, 0);
	return e;
}

/* ---- read ---- */

static bool is_text(struct text t)
{
	const char *end = t.data + t.len;

	for (const char *at = t.data; at < end;) {
		unsigned char c = (unsigned char)*at;
		size_t n = c < 0x80 ? c != 0 : utf8_sequence(at, end);

		if (n == 0)
			return false;
		at += n;
	}
	return true;
}

/* The lines starting at the offset, which counts from 1; limit 0: all of them. */
static struct text cut_lines(struct text t, int64_t offset, int64_t limit)
{
	const char *end = t.data + t.len;
	const char *from = t.data;
	const char *at;

	for (int64_t i = 1; i < offset; i++) {
		const char *newline = memchr(from, '\n', (size_t)(end - from));

		if (!newline)
			return (struct text) {.data = end, .len = 0};
		from = newline + 1;
	}
	at = from;
	for (int64_t i = 0; i < limit && at != end; i++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));

		at = newline ? newline + 1 : end;
	}
	if (limit > 0)
		end = at > from && at[-1] == '\n' && at < end ? at - 1 : at;
	return (struct text) {.data = from, .len = (size_t)(end - from)};
}

/* No more lines than a readable file can have. */
static int64_t lines(double n)
{
	return n > TOOL_READ_MAX ? TOOL_READ_MAX + 1 : n > 0 ? (int64_t)n : 0;
}

static void put_content(struct object_builder *w, struct text t, int64_t offset, int64_t limit)
{
	bool binary = !is_text(t);
	char words[60];

	if (binary)
		snprintf(words, sizeof(words), "[binary file %zu B]", t.len);
	object_text(w, "content", binary ? text_of(words) : cut_lines(t, offset, limit));
	object_bool(w, "is_binary", binary);
}

int tool_file_read(struct tool_run *r, int lane, struct tool_result *ret, struct error *error)
{
	CLEANUP(tool_path_done) struct tool_path p = {.at = -1};
	double offset = 1, limit = 0;
	struct text path, content;
	struct object_builder w;
	mode_t mode;
	int e = tool_text(r, "path", true, &path, error) ?:
		tool_number(r, "offset", 1, &offset, error) ?:
		tool_number(r, "limit", 0, &limit, error) ?:
		tool_path_find(r, path, false, &p, error) ?:
		read_file(r, &p, TOOL_READ_MAX, &content, &mode, error);

	if (e != 0)
		return e;
	object_begin(&w, &r->arena);
	object_text(&w, "path", text_of(p.path));
	object_int(&w, "size", (int64_t)content.len);
	put_content(&w, content, lines(offset), lines(limit));
	ret->value = w.root;
	return w.err;
}

/* ---- write ---- */

static int append(const struct tool_path *p, struct text t, struct error *error)
{
	struct stat st = {0};
	int fd = -1;
	int e = open_file(p, O_WRONLY | O_APPEND | O_CREAT, 0644, &st, &fd, error);

	return e ?: write_new(fd, 0, t);
}

/* The mode of the existing file; *ret_mode 0: there is none. */
static int program_tool_file_look(const struct tool_path *p, mode_t *ret_mode, struct error *error)
{
	struct stat st;

	*ret_mode = 0;
	if (!p->name[0])
		return tool_path_cannot(EISDIR, p->path, error);
	if (fstatat(p->at, p->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : tool_path_cannot(errno, p->path, error);
	if (S_ISLNK(st.st_mode))
		return tool_path_cannot(ELOOP, p->path, error);
	if (S_ISDIR(st.st_mode))
		return tool_path_cannot(EISDIR, p->path, error);
	if (!S_ISREG(st.st_mode))
		return refuse(error, REFUSE_FORBIDDEN, "not a file: %s", p->path);
	*ret_mode = st.st_mode;
	return 0;
}

int tool_file_write(struct tool_run *r, int lane, struct tool_result *ret, struct error *error)
{
	CLEANUP(tool_path_done) struct tool_path p = {.at = -1};
	const struct value *appends = value_find(r->input, "append");
	bool at_end = appends && appends->kind == VALUE_TRUE;
	struct text path, content;
	struct object_builder w;
	mode_t mode = 0;
	int e = tool_text(r, "path", true, &path, error)
			?: tool_text(r, "content", false, &content, error);

	if (e == 0 && !content.data)
		e = refuse_field(error, "content", "content is required");
	e = e ?: tool_path_find(r, path, true, &p, error) ?: program_tool_file_look(&p, &mode, error);
	if (e == 0)
		e = at_end ? append(&p, content, error) : replace(&p, mode, content, error);
	if (e != 0)
		return e;
	object_begin(&w, &r->arena);
	object_text(&w, "path", text_of(p.path));
	object_int(&w, "bytes", (int64_t)content.len);
	object_bool(&w, "append", at_end);
	if (mode == 0)
		object_bool(&w, "created", true);
	ret->value = w.root;
	return w.err;
}

/* ---- edit ---- */

static unsigned count(struct text in, struct text what, const char **ret_first)
{
	const char *end = in.data + in.len;
	const char *at = in.data;
	unsigned n = 0;

	while ((at = memmem(at, (size_t)(end - at), what.data, what.len))) {
		if (n++ == 0)
			*ret_first = at;
		at += what.len;
	}
	return n;
}

static int change(struct tool_run *r, struct text in, struct text from, struct text to,
		  struct text *ret, struct error *error)
{
	const char *at = NULL;
	unsigned n = count(in, from, &at);
	char *out;
	size_t head;

	if (n == 0)
		return refuse(error, REFUSE_CONFLICT, "oldText not found");
	if (n > 1)
		return refuse(error, REFUSE_CONFLICT,
			      "oldText appears %u times; include more context", n);
	head = (size_t)(at - in.data);
	out = arena_alloc(&r->arena, in.len - from.len + to.len + 1);
	if (!out)
		return -ENOMEM;
	memcpy(out, in.data, head);
	if (to.len > 0)
		memcpy(out + head, to.data, to.len);
	memcpy(out + head + to.len, at + from.len, in.len - head - from.len);
	*ret = (struct text) {.data = out, .len = in.len - from.len + to.len};
	return 0;
}

int tool_file_edit(struct tool_run *r, int lane, struct tool_result *ret, struct error *error)
{
	CLEANUP(tool_path_done) struct tool_path p = {.at = -1};
	struct text path, from, to, content;
	struct object_builder w;
	mode_t mode;
	int e = tool_text(r, "path", true, &path, error) ?:
		tool_text(r, "oldText", true, &from, error) ?:
		tool_text(r, "newText", false, &to, error) ?:
		tool_path_find(r, path, false, &p, error) ?:
		read_file(r, &p, TOOL_EDIT_MAX, &content, &mode, error) ?:
		change(r, content, from, to, &content, error) ?:
		replace(&p, mode, content, error);

	if (e != 0)
		return e;
	object_begin(&w, &r->arena);
	object_text(&w, "path", text_of(p.path));
	object_bool(&w, "changed", true);
	object_text(&w, "match_info", TEXT("replaced 1 occurrence"));
	ret->value = w.root;
	return w.err;
}
