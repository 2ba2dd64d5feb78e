/*
 * A child process, the leader of a session and group of its own, so that what
 * it starts can be reached with it.
 *
 * Its outputs are real pipes and its input is a file in memory: libuv's own
 * "pipes" are sockets, which a shell cannot reopen as /dev/stderr, and a pipe
 * to a child that does not read would need SIGPIPE kept away from us.
 *
 * Three libuv handles live in a struct child; it is freed when the last of
 * them is closed. The process handle stays open until the child was reaped, even
 * after child_free: closed earlier, nobody would ever wait for it.
 */
#include "io/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "io/loop_uv.h"

enum { READ_SIZE = 32 * 1024 };

struct output {
	uv_pipe_t pipe;
	struct child *child;
	bool is_stderr;
	bool ended;
};

struct child {
	uv_process_t process;
	struct output outputs[2];
	unsigned n_handles; /* of the three above, those not closed yet */
	pid_t pid;
	bool running;    /* not reaped */
	bool group_gone; /* nobody is left in its group: the number may soon be another's */
	bool reading;
	bool told; /* on_exit was called */
	bool stopping;
	bool freed;
	int status;
	int signal;
	struct timer *grace;
	unsigned grace_ms;
	struct timer *escalation;
	int next_signal;
	unsigned terminate_ms;
	void (*on_output)(void *arg, bool is_stderr, const char *data, size_t len);
	void (*on_exit)(void *arg, int status, int signal);
	void *arg;
	char buffer[READ_SIZE]; /* filled and handed on within one callback */
};

/* The child's ends of its standard streams, and ours of its outputs. */
struct streams {
	int in; /* -1: /dev/null */
	int out[2];
	int err[2];
};

static void streams_done(struct streams *s)
{
	closep(&s->in);
	closep(&s->out[0]);
	closep(&s->out[1]);
	closep(&s->err[0]);
	closep(&s->err[1]);
}

static int open_input(const char *input, size_t len, int *ret_fd)
{
	CLEANUP(closep) int fd = memfd_create("stdin", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = file_write_all(fd, input, len);
	if (r != 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int open_streams(const struct child_opts *opts, struct streams *s)
{
	if (pipe2(s->out, O_CLOEXEC) != 0 || pipe2(s->err, O_CLOEXEC) != 0)
		return -errno;
	return opts->input ? open_input(opts->input, opts->input_len, &s->in) : 0;
}

static bool any_output_open(const struct child *c)
{
	return !c->outputs[0].ended || !c->outputs[1].ended;
}

static void tell_exit(struct child *c)
{
	c->told = true;
	timer_stop(c->grace);
	uv_read_stop((uv_stream_t *)&c->outputs[0].pipe);
	uv_read_stop((uv_stream_t *)&c->outputs[1].pipe);
	c->on_exit(c->arg, c->status, c->signal);
}

/* Tells of the end when there is nothing left to wait for. */
static void check_end(struct child *c)
{
	if (c->running || c->told || c->freed)
		return;
	if (!any_output_open(c))
		tell_exit(c);
	else if (c->reading)
		timer_start(c->grace, c->grace_ms);
	else
		timer_stop(c->grace);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct output *o = handle->data;

	(void)suggested;
	*buf = uv_buf_init(o->child->buffer, READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct output *o = stream->data;

	if (n > 0) {
		o->child->on_output(o->child->arg, o->is_stderr, buf->base, (size_t)n);
	} else if (n < 0) {
		uv_read_stop(stream);
		o->ended = true;
		check_end(o->child);
	}
}

/*
 * What the child wrote before it ended is still in the pipe, and at its front;
 * so one pipe's worth is enough, whoever else goes on writing behind it.
 */
static void drain(struct child *c, struct output *o)
{
	ssize_t n, left;
	int fd;

	if (o->ended || uv_fileno((uv_handle_t *)&o->pipe, &fd) != 0)
		return;
	left = fcntl(fd, F_GETPIPE_SZ);
	while (left > 0 && c->reading && !c->freed) {
		n = read(fd, c->buffer, left < READ_SIZE ? (size_t)left : READ_SIZE);
		if (n <= 0)
			return;
		left -= n;
		c->on_output(c->arg, o->is_stderr, c->buffer, (size_t)n);
	}
}

static void on_grace(void *arg)
{
	struct child *c = arg;

	for (unsigned i = 0; i < 2 && c->reading && !c->freed; i++)
		drain(c, &c->outputs[i]);
	if (c->reading && !c->freed)
		tell_exit(c);
}

static void on_closed(uv_handle_t *handle)
{
	struct child *c;

	if (handle->type == UV_NAMED_PIPE)
		c = ((struct output *)handle->data)->child;
	else
		c = handle->data;
	if (--c->n_handles == 0)
		free(c);
}

static void close_handle(void *handle)
{
	uv_close(handle, on_closed);
}

static void on_exited(uv_process_t *process, int64_t status, int signal)
{
	struct child *c = process->data;

	c->running = false;
	c->status = signal ? -1 : (int)status;
	c->signal = signal;
	if (c->freed) {
		close_handle(&c->process);
		return;
	}
	/* Asked at once, before the number can be anybody else's. */
	if (kill(-c->pid, 0) != 0 && errno == ESRCH) {
		c->group_gone = true;
		timer_stop(c->escalation);
	}
	check_end(c);
}

static void open_output(struct child *c, struct loop *l, unsigned i)
{
	struct output *o = &c->outputs[i];

	uv_pipe_init(loop_uv(l), &o->pipe, 0);
	o->pipe.data = o;
	o->child = c;
	o->is_stderr = i == 1;
	c->n_handles++;
}

/* Hands our end of a pipe to libuv; the descriptor is its own afterwards. */
static int adopt_output(struct output *o, int *fd)
{
	int r = uv_pipe_open(&o->pipe, *fd);

	if (r == 0)
		*fd = -1;
	return r;
}

static int spawn(struct child *c, struct loop *l, const struct child_opts *opts,
		 const struct streams *s)
{
	uv_stdio_container_t stdio[3] = {
		{.flags = s->in >= 0 ? UV_INHERIT_FD : UV_IGNORE, .data.fd = s->in},
		{.flags = UV_INHERIT_FD, .data.fd = s->out[1]},
		{.flags = UV_INHERIT_FD, .data.fd = s->err[1]},
	};
	uv_process_options_t options = {
		.exit_cb = on_exited,
		.file = opts->argv[0],
		.args = (char **)(uintptr_t)opts->argv,
		.env = (char **)(uintptr_t)opts->env,
		.cwd = opts->cwd,
		.flags = UV_PROCESS_DETACHED,
		.stdio = stdio,
		.stdio_count = 3,
	};
	int r;

	/* Even when it fails, the handle is the loop's until it is closed. */
	c->n_handles++;
	r = uv_spawn(loop_uv(l), &c->process, &options);
	c->process.data = c;
	return r;
}

/* The PATH that the child's program is looked up in. */
static const char *search_path(const struct child_opts *opts)
{
	if (!opts->env)
		return getenv("PATH");
	for (const char *const *e = opts->env; *e; e++) {
		if (strncmp(*e, "PATH=", 5) == 0)
			return *e + 5;
	}
	return NULL;
}

/* A folder of PATH that is closed to us makes every missing program look forbidden, so
 * what was forbidden must be there to be believed. */
static bool is_there(const struct child_opts *opts)
{
	const char *name = opts->argv[0], *at = search_path(opts);
	char file[PATH_MAX];

	if (strchr(name, '/') || !at)
		return true;
	while (*at) {
		size_t n = strcspn(at, ":");
		int len = snprintf(file, sizeof(file), "%.*s/%s", (int)n, at, name);

		if (len < PATH_MAX && access(file, F_OK) == 0)
			return true;
		at += at[n] ? n + 1 : n;
	}
	return false;
}

static int explain(const struct child_opts *opts, int r, struct why *why)
{
	struct stat st;

	if (opts->cwd && (stat(opts->cwd, &st) != 0 || !S_ISDIR(st.st_mode)))
		return refuse(why, REFUSE_NOT_FOUND, "no such directory: %s", opts->cwd);
	if (r == -ENOENT || r == -ENOTDIR || (r == -EACCES && !is_there(opts)))
		return refuse(why, REFUSE_NOT_FOUND, "no such program: %s", opts->argv[0]);
	if (r == -EACCES || r == -EPERM)
		return refuse(why, REFUSE_FORBIDDEN, "not allowed to run %s", opts->argv[0]);
	refuse(why, REFUSE_INTERNAL, "cannot run %s: %s", opts->argv[0], uv_strerror(r));
	return r;
}

static void escalate(void *arg)
{
	struct child *c = arg;

	child_signal(c, c->next_signal);
	if (c->next_signal == SIGKILL || c->group_gone)
		return;
	c->next_signal = SIGKILL;
	timer_start(c->escalation, c->terminate_ms);
}

static int child_new(struct loop *l, const struct child_opts *opts, struct child **ret_child)
{
	struct child *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	c->on_output = opts->on_output;
	c->on_exit = opts->on_exit;
	c->arg = opts->arg;
	c->grace_ms = opts->grace_ms;
	c->group_gone = true;
	r = timer_new(l, on_grace, c, &c->grace);
	if (r == 0)
		r = timer_new(l, escalate, c, &c->escalation);
	if (r != 0) {
		timer_free(c->grace);
		free(c);
		return r;
	}
	open_output(c, l, 0);
	open_output(c, l, 1);
	*ret_child = c;
	return 0;
}

static int start(struct child *c, struct loop *l, const struct child_opts *opts, struct why *why)
{
	CLEANUP(streams_done)
	struct streams s = {.in = -1, .out = {-1, -1}, .err = {-1, -1}};
	int r;

	r = open_streams(opts, &s);
	if (r == 0)
		r = adopt_output(&c->outputs[0], &s.out[0]);
	if (r == 0)
		r = adopt_output(&c->outputs[1], &s.err[0]);
	if (r != 0)
		return r;
	r = spawn(c, l, opts, &s);
	if (r != 0)
		return explain(opts, r, why);
	c->pid = c->process.pid;
	c->running = true;
	c->group_gone = false;
	return 0;
}

int child_start(struct loop *l, const struct child_opts *opts, struct child **ret_child,
		struct why *why)
{
	struct child *c;
	int r;

	if (!opts->argv || !opts->argv[0] || !*opts->argv[0])
		return refuse(why, REFUSE_NOT_FOUND, "no program was named");
	r = child_new(l, opts, &c);
	if (r != 0)
		return r;
	r = start(c, l, opts, why);
	if (r != 0) {
		child_free(c);
		return r;
	}
	child_read(c, true);
	*ret_child = c;
	return 0;
}

pid_t child_pid(const struct child *c)
{
	return c->pid;
}

void child_read(struct child *c, bool on)
{
	if (c->told || c->freed || c->reading == on)
		return;
	c->reading = on;
	for (unsigned i = 0; i < 2; i++) {
		uv_stream_t *stream = (uv_stream_t *)&c->outputs[i].pipe;

		if (!on)
			uv_read_stop(stream);
		else if (!c->outputs[i].ended)
			uv_read_start(stream, on_alloc, on_read);
	}
	check_end(c);
}

void child_signal(struct child *c, int number)
{
	if (c->group_gone)
		return;
	if (kill(-c->pid, number) != 0 && errno == ESRCH)
		c->group_gone = !c->running;
}

void child_stop(struct child *c, unsigned interrupt_ms, unsigned terminate_ms)
{
	if (c->stopping || c->group_gone)
		return;
	c->stopping = true;
	c->terminate_ms = terminate_ms;
	c->next_signal = SIGTERM;
	child_signal(c, SIGINT);
	timer_start(c->escalation, interrupt_ms);
}

void child_free(struct child *c)
{
	if (!c)
		return;
	child_signal(c, SIGKILL);
	c->freed = true;
	timer_free(c->grace);
	timer_free(c->escalation);
	close_handle(&c->outputs[0].pipe);
	close_handle(&c->outputs[1].pipe);
	/* The process handle, if uv_spawn was reached at all. */
	if (c->n_handles == 3 && !c->running)
		close_handle(&c->process);
}
