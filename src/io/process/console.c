/*
 * Two polled descriptors: one that the program's output comes from, one that its input goes
 * to. For a terminal both are its master side.
 *
 * A descriptor is closed after its handle, never before: libuv would remove the number from
 * its poll when it may already be somebody else's.
 */
#include "io/process/console.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "io/inner.h"
#include "io/process/spawn.h"

enum {
	READ_SIZE = 16 * 1024,
	DRAIN_MAX = 1 << 20, /* others may go on printing for ever */
	END_OF_FILE = 4,     /* ^D, the end of file of a terminal unless it was told otherwise */
};

struct console_side {
	uv_poll_t poll;
	struct console *console;
	int fd; /* -1: none */
	bool open;
};

struct console {
	struct console_side in;  /* the program's input: we write */
	struct console_side out; /* its output: we read */
	int streams[3];          /* the program's ends */
	unsigned n_handles;
	bool terminal;
	bool ends; /* close when the whole queue is written */
	char last; /* the last byte that was written */
	bool freed;
	struct buf queue;
	void (*on_output)(void *arg, const char *data, size_t len);
	void (*on_end)(void *arg);
	void *arg;
};

/* ---- the end of a side ---- */

static void console_on_closed(uv_handle_t *handle)
{
	struct console_side *side = handle->data;
	struct console *c = side->console;

	closep(&side->fd);
	side->fd = -1;
	if (--c->n_handles > 0 || !c->freed)
		return;
	buf_done(&c->queue);
	free(c);
}

static void side_close(struct console_side *side)
{
	if (!side->open)
		return;
	side->open = false;
	uv_close((uv_handle_t *)&side->poll, console_on_closed);
}

/* ---- what it prints ---- */

/* False: nothing more for now, or for ever. */
static bool read_some(struct console *c, size_t *ret_n)
{
	char data[READ_SIZE];
	ssize_t n;

	do {
		n = read(c->out.fd, data, sizeof(data));
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		*ret_n = (size_t)n;
		c->on_output(c->arg, data, (size_t)n);
		return true;
	}
	/* A terminal that nobody has open any more gives EIO. */
	if (n == 0 || errno != EAGAIN) {
		side_close(&c->out);
		c->on_end(c->arg);
	}
	return false;
}

static void console_on_readable(uv_poll_t *poll, int status, int events)
{
	struct console_side *side = poll->data;
	size_t n;

	read_some(side->console, &n);
}

bool console_drain(struct console *c)
{
	size_t total = 0;
	size_t n = 0;

	while (c->out.open && total < DRAIN_MAX && read_some(c, &n))
		total += n;
	return !c->out.open;
}

/* ---- what it reads ---- */

static void on_writable(uv_poll_t *poll, int status, int events);

/* The first ^D hands over a line that is not ended yet; the second is the end of file. */
static void add_end_of_file(struct console *c)
{
	const char end[] = {END_OF_FILE, END_OF_FILE};

	buf_add(&c->queue, end, c->last == '\n' || c->last == '\0' ? 1 : 2);
}

static void console_flush(struct console *c)
{
	while (c->in.open && c->queue.len > 0) {
		ssize_t n = write(c->in.fd, c->queue.data, c->queue.len);

		if (n > 0) {
			buf_consume(&c->queue, (size_t)n);
		} else if (n < 0 && errno == EAGAIN) {
			uv_poll_start(&c->in.poll, UV_WRITABLE, on_writable);
			return;
		} else if (n < 0 && errno != EINTR) {
			side_close(&c->in);
			buf_done(&c->queue);
			return;
		}
	}
	if (!c->in.open)
		return;
	uv_poll_stop(&c->in.poll);
	buf_trim(&c->queue, 0);
	/* A terminal stays open: its end of file is a byte. */
	if (c->ends && !c->terminal)
		side_close(&c->in);
}

static void on_writable(uv_poll_t *poll, int status, int events)
{
	struct console_side *side = poll->data;

	console_flush(side->console);
}

int console_write(struct console *c, const char *data, size_t len)
{
	if (!c->in.open || c->ends)
		return -EPIPE;
	if (len > CONSOLE_QUEUE_MAX - c->queue.len)
		return -ENOBUFS;
	if (len == 0)
		return 0;
	buf_add(&c->queue, data, len);
	if (c->queue.err != 0) {
		int r = c->queue.err;

		/* What was there before is still there. */
		c->queue.err = 0;
		return r;
	}
	c->last = data[len - 1];
	console_flush(c);
	return 0;
}

int console_end_input(struct console *c)
{
	if (!c->in.open || c->ends)
		return -EPIPE;
	c->ends = true;
	if (c->terminal)
		add_end_of_file(c);
	console_flush(c);
	return 0;
}

/* ---- the start ---- */

static int make_terminal(struct console *c)
{
	const struct winsize size = {.ws_row = CONSOLE_ROWS, .ws_col = CONSOLE_COLUMNS};
	char name[64];

	c->out.fd = spawn_lift(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
	if (c->out.fd < 0)
		return c->out.fd;
	if (grantpt(c->out.fd) != 0 || unlockpt(c->out.fd) != 0 ||
	    ptsname_r(c->out.fd, name, sizeof(name)) != 0 ||
	    ioctl(c->out.fd, TIOCSWINSZ, &size) != 0)
		return -errno;
	c->in.fd = fcntl(c->out.fd, F_DUPFD_CLOEXEC, 3);
	if (c->in.fd < 0)
		return -errno;
	for (int i = 0; i < 3; i++) {
		c->streams[i] = spawn_lift(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
		if (c->streams[i] < 0)
			return c->streams[i];
	}
	return 0;
}

static int make_pipe(int *ret_read, int *ret_write)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	*ret_read = spawn_lift(fds[0]);
	*ret_write = spawn_lift(fds[1]);
	return *ret_read < 0 ? *ret_read : *ret_write < 0 ? *ret_write : 0;
}

static int make_pipes(struct console *c)
{
	int r = make_pipe(&c->streams[0], &c->in.fd) ?: make_pipe(&c->out.fd, &c->streams[1]);

	if (r != 0)
		return r;
	c->streams[2] = fcntl(c->streams[1], F_DUPFD_CLOEXEC, 3);
	/* Each end of a pipe has flags of its own: the program's end stays as programs expect
	 * it. */
	if (c->streams[2] < 0 || fcntl(c->in.fd, F_SETFL, O_NONBLOCK) != 0 ||
	    fcntl(c->out.fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	return 0;
}

static int side_open(struct console *c, struct loop *l, struct console_side *side)
{
	int r = uv_poll_init(loop_uv(l), &side->poll, side->fd);

	if (r != 0)
		return r;
	side->poll.data = side;
	side->open = true;
	c->n_handles++;
	return 0;
}

int console_new(struct loop *l, const struct console_opts *opts, struct console **ret_console)
{
	struct console *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->in = (struct console_side) {.console = c, .fd = -1};
	c->out = (struct console_side) {.console = c, .fd = -1};
	memset(c->streams, 0xff, sizeof(c->streams));
	c->terminal = opts->terminal;
	c->on_output = opts->on_output;
	c->on_end = opts->on_end;
	c->arg = opts->arg;
	/* Two more, for a terminal's end of file. */
	buf_init(&c->queue, CONSOLE_QUEUE_MAX + 2);
	r = (c->terminal ? make_terminal(c) : make_pipes(c))
		?: side_open(c, l, &c->in)
		?: side_open(c, l, &c->out);
	if (r != 0) {
		console_free(c);
		return r;
	}
	*ret_console = c;
	return 0;
}

const int *console_streams(const struct console *c)
{
	return c->streams;
}

static void close_streams(struct console *c)
{
	for (int i = 0; i < 3; i++) {
		closep(&c->streams[i]);
		c->streams[i] = -1;
	}
}

void console_started(struct console *c)
{
	close_streams(c);
	uv_poll_start(&c->out.poll, UV_READABLE, console_on_readable);
}

void console_free(struct console *c)
{
	if (!c)
		return;
	close_streams(c);
	c->freed = true;
	/* Without a handle nobody would close it later. */
	if (!c->in.open && c->in.fd >= 0 && !uv_is_closing((uv_handle_t *)&c->in.poll))
		closep(&c->in.fd);
	if (!c->out.open && c->out.fd >= 0 && !uv_is_closing((uv_handle_t *)&c->out.poll))
		closep(&c->out.fd);
	if (c->n_handles == 0) {
		buf_done(&c->queue);
		free(c);
		return;
	}
	side_close(&c->in);
	side_close(&c->out);
}
