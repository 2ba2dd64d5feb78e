#include "cli/chat/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/kit/lines.h"
#include "cli/kit/place.h"

enum { FILE_MAX = 2 * HISTORY_LINES * HISTORY_LINE_MAX };

bool history_path(char path[PATH_MAX])
{
	return place_path("{XDG_STATE_HOME|~/.local/state}/koine/history", path, NULL);
}

static int read_all(const char *path, struct buf *all)
{
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	/* Read only a regular file; others may have no end. */
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	/* If a file is too long, keep its end. */
	if (st.st_size > FILE_MAX)
		(void)lseek(fd, -(off_t)FILE_MAX, SEEK_END);
	return lines_read_all(fd, all);
}

/* Where the newest HISTORY_LINES begin, and how many lines there are. */
static size_t find_newest(const struct buf *all, unsigned *ret_n)
{
	size_t at = all->len;
	size_t newest = 0;

	*ret_n = 0;
	while (at > 0) {
		const char *before = at > 1 ? memrchr(all->data, '\n', at - 1) : NULL;

		at = before ? (size_t)(before - all->data) + 1 : 0;
		if (++*ret_n <= HISTORY_LINES)
			newest = at;
	}
	return newest;
}

static void chat_history_notify(char *line, char *end, void (*fn)(void *arg, const char *line),
				void *arg)
{
	while (line < end) {
		char *newline = memchr(line, '\n', (size_t)(end - line));

		if (!newline)
			return;
		*newline = '\0';
		if (line[0] != '\0')
			fn(arg, line);
		line = newline + 1;
	}
}

int history_load(const char *path, void (*fn)(void *arg, const char *line), void *arg)
{
	CLEANUP(buf_donep) struct buf all;
	unsigned n;
	size_t from;
	int r;

	buf_init(&all, FILE_MAX + (1 << 20));
	r = read_all(path, &all);
	if (r != 0 || all.len == 0)
		return r;
	if (all.data[all.len - 1] != '\n')
		buf_add_char(&all, '\n');
	if (all.err != 0)
		return all.err;
	from = find_newest(&all, &n);
	if (n >= 2 * HISTORY_LINES)
		/* A line that another prompt adds at this very moment is lost; it is only a
		 * history. */
		r = file_replace(path, 0600, all.data + from, all.len - from);
	chat_history_notify(all.data + from, all.data + all.len, fn, arg);
	return r;
}

int history_add(const char *path, const char *line)
{
	CLEANUP(closep) int fd = -1;
	char whole[HISTORY_LINE_MAX], above[PATH_MAX];
	size_t len = strlen(line);

	if (len + 1 > sizeof(whole) || memchr(line, '\n', len))
		return 0;
	memcpy(whole, line, len);
	whole[len] = '\n';
	snprintf(above, sizeof(above), "%s", path);
	(void)file_make_parents(above, 0700);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	return file_write_all(fd, whole, len + 1);
}
