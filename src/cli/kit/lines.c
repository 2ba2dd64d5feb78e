#include "cli/kit/lines.h"

#include <errno.h>
#include <unistd.h>

enum { READ_SIZE = 65536 };

int lines_read_all(int fd, struct buf *all)
{
	ssize_t n = 1;

	while (n != 0 && buf_reserve(all, READ_SIZE) == 0) {
		n = read(fd, all->data + all->len, READ_SIZE);
		if (n < 0 && errno != EINTR)
			return -errno;
		all->len += n > 0 ? (size_t)n : 0;
	}
	return all->err;
}

void lines_init(struct lines *l, int fd, size_t max)
{
	*l = (struct lines) {.fd = fd};
	buf_init(&l->in, max);
}

void lines_done(struct lines *l)
{
	buf_done(&l->in);
}

static int read_more(struct lines *l)
{
	ssize_t n;

	if (buf_reserve(&l->in, READ_SIZE) != 0)
		return l->in.err;
	n = read(l->fd, l->in.data + l->in.len, READ_SIZE);
	if (n < 0)
		return -errno;
	l->in.len += (size_t)n;
	l->eof = n == 0;
	return 0;
}

static struct text give(struct lines *l, size_t len, size_t used)
{
	struct text line = {.data = l->in.data + l->used, .len = len};

	l->used += used;
	return line;
}

int lines_next(struct lines *l, struct text *ret_line)
{
	size_t looked = l->used;

	for (;;) {
		size_t left = l->in.len - looked;
		const char *newline = left > 0 ? memchr(l->in.data + looked, '\n', left) : NULL;
		int r;

		if (newline) {
			size_t len = (size_t)(newline - l->in.data) - l->used;

			*ret_line = give(l, len, len + 1);
			return 0;
		}
		/* Only what has not been returned yet stays while more is read. */
		buf_consume(&l->in, l->used);
		l->used = 0;
		looked = l->in.len;
		if (l->eof) {
			*ret_line = looked > 0 ? give(l, looked, looked) : (struct text) {0};
			return 0;
		}
		r = read_more(l);
		if (r != 0)
			return r;
	}
}
