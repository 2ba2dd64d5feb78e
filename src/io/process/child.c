/*
 * A child process, the leader of a session and group of its own, so that what
 * it starts can be reached with it.
 *
 * Its outputs are real pipes and its input is a file in memory: libuv's own
 * "pipes" are sockets, which a shell cannot reopen as /dev/stderr, and a pipe
 * to a child that does not read would need SIGPIPE kept away from us.
 *
 * Its end is seen on a pidfd, which touches no signal of the process; only where
 * there is none, by SIGCHLD.
 *
 * Three libuv handles live in a struct child; it is freed when the last of
 * them is closed, and not while it is being started on another thread. The one that waits for the end stays open until the child was
 * reaped, even after child_free: closed earlier, nobody would ever wait for it.
 */
#include "io/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "io/process/inner.h"
#include "io/inner.h"
#include "io/process/spawn.h"
#include "io/process/tree.h"

enum {
	READ_SIZE = 32 * 1024,
	/* A program that makes its end non-blocking (Node does) and exits loses what the pipe
	 * had no room for. This is more than the sockets it is used to hold, and leaves room for
	 * a hundred children before the kernel shrinks all of the user's pipes. */
	PIPE_SIZE = 256 * 1024,
};

static atomic_uint n_running;
static atomic_uint n_cancels;
static _Atomic uint64_t begin_until_ms;

struct output {
	uv_pipe_t pipe;
	struct child *child;
	bool is_stderr;
	bool ended;
};

struct child {
	union {
		uv_handle_t any;
		uv_poll_t pidfd;
		uv_signal_t signal;
	} end;
	struct output outputs[2];
	unsigned n_handles; /* of the three above, those not closed yet; and its start */
	struct loop *loop;
	struct spawned process;
	struct aside start;
	struct spawn_opts *how; /* while it is started on another thread */
	enum spawn_step step;   /* that failed */
	int start_result;
	unsigned asked;    /* n_cancels when it was asked to start */
	int early_signal;  /* to be sent once it has started; 0: none */
	uint64_t early_ms; /* and then the next, after this time */
	bool marked;       /* io/process/guard would end it */
	bool waits;        /* `end` is open */
	bool running;      /* its end was not seen yet */
	bool reading;
	bool wants_reading;
	bool told; /* on_exit was called */
	bool stopping;
	bool freed;
	struct timer *grace;
	unsigned grace_ms;
	struct timer *escalation;
	int next_signal;
	unsigned terminate_ms;
	const struct cgroup *(*cgroup)(void *arg);
	void (*on_started)(void *arg, int result, const struct error *error);
	void (*on_output)(void *arg, bool is_stderr, const char *data, size_t len);
	void (*on_exit)(void *arg, int status, int signal);
	void *arg;
	char buffer[READ_SIZE]; /* filled and handed on within one callback */
};

/* The child's ends of its standard streams, and our ends of its outputs. */
struct child_streams {
	int in;
	int out[2];
	int err[2];
};

static void streams_done(struct child_streams *s)
{
	closep(&s->in);
	closep(&s->out[0]);
	closep(&s->out[1]);
	closep(&s->err[0]);
	closep(&s->err[1]);
}

static int open_input(const char *input, size_t len, int *ret_fd)
{
	CLEANUP(closep) int fd = spawn_lift(memfd_create("stdin", MFD_CLOEXEC));
	int r;

	if (fd < 0)
		return fd;
	r = file_write_all(fd, input, len);
	if (r != 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int open_null(int *ret_fd)
{
	*ret_fd = spawn_lift(open("/dev/null", O_RDONLY | O_CLOEXEC));
	return *ret_fd < 0 ? *ret_fd : 0;
}

/* Blocking: only our own end is made non-blocking. */
static int open_pipe(int ends[2])
{
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	ends[1] = spawn_lift(ends[1]);
	if (ends[1] < 0)
		return ends[1];
	/* Where that size is not allowed, the pipe stays as it is. */
	(void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE);
	return 0;
}

static int open_streams(const struct child_opts *opts, struct child_streams *s)
{
	int r = open_pipe(s->out) ?: open_pipe(s->err);

	if (r != 0)
		return r;
	return opts->input ? open_input(opts->input, opts->input_len, &s->in) : open_null(&s->in);
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
	c->on_exit(c->arg, c->process.status, c->process.signal);
}

/* Reports the end when there is nothing left to wait for. */
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
 * What the child wrote before it ended is still in the pipe, at its front; so one pipe's worth
 * is enough, however much others go on writing behind it.
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

static void check_process(struct child *c);

static void on_grace(void *arg)
{
	struct child *c = arg;

	if (c->running) {
		check_process(c);
		return;
	}
	for (unsigned i = 0; i < 2 && c->reading && !c->freed; i++)
		drain(c, &c->outputs[i]);
	if (c->reading && !c->freed)
		tell_exit(c);
}

static void child_release(struct child *c)
{
	if (--c->n_handles > 0)
		return;
	closep(&c->process.pidfd);
	spawn_forget(&c->process);
	free(c);
}

static void child_on_closed(uv_handle_t *handle)
{
	struct child *c;

	if (handle->type == UV_NAMED_PIPE)
		c = ((struct output *)handle->data)->child;
	else
		c = handle->data;
	child_release(c);
}

static void close_handle(void *handle)
{
	uv_close(handle, child_on_closed);
}

static void check_process(struct child *c)
{
	if (!c->running || !spawn_reap(&c->process))
		return;
	c->running = false;
	atomic_fetch_sub_explicit(&n_running, 1, memory_order_relaxed);
	if (c->freed) {
		close_handle(&c->end);
		return;
	}
	/* A descriptor of a dead process is ready for ever. */
	if (c->process.pidfd >= 0)
		uv_poll_stop(&c->end.pidfd);
	else
		uv_signal_stop(&c->end.signal);
	if (c->process.group_gone)
		timer_stop(c->escalation);
	check_end(c);
}

static void on_pidfd(uv_poll_t *poll, int status, int events)
{
	check_process(poll->data);
}

static void on_sigchld(uv_signal_t *signal, int number)
{
	check_process(signal->data);
}

static int wait_by_signal(struct child *c, struct loop *l)
{
	int r = uv_signal_init(loop_uv(l), &c->end.signal);

	if (r != 0)
		return r;
	c->end.any.data = c;
	c->n_handles++;
	c->waits = true;
	return uv_signal_start(&c->end.signal, on_sigchld, SIGCHLD);
}

static int wait_by_pidfd(struct child *c, struct loop *l)
{
	int r = uv_poll_init(loop_uv(l), &c->end.pidfd, c->process.pidfd);

	if (r != 0) {
		closep(&c->process.pidfd);
		c->process.pidfd = -1;
		return r;
	}
	c->end.any.data = c;
	c->n_handles++;
	c->waits = true;
	return uv_poll_start(&c->end.pidfd, UV_READABLE, on_pidfd);
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

static struct spawn_opts spawn_opts(const struct child_opts *opts, const struct child_streams *s)
{
	struct spawn_opts how = {
		.argv = opts->argv,
		.env = opts->env,
		.more_env = opts->more_env,
		.cwd = opts->cwd,
		.streams = {s->in, s->out[1], s->err[1]},
		.confine = opts->confine,
		.die_with_us = opts->die_with_us,
		.terminal = opts->terminal,
	};

	if (opts->streams)
		memcpy(how.streams, opts->streams, sizeof(how.streams));
	return how;
}

/* A folder of PATH that is closed to us makes every missing program look forbidden, so
 * "forbidden" counts only if the program is really there. */
static bool is_there(const struct spawn_opts *opts)
{
	const char *name = opts->argv[0], *at = spawn_path(opts);
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

static int explain_directory(const char *cwd, int r, struct error *error)
{
	if (r == -EACCES)
		return refuse(error, REFUSE_FORBIDDEN, "no permission to access the directory %s",
			      cwd);
	return refuse(error, REFUSE_NOT_FOUND, "no such directory: %s", cwd);
}

static int child_explain(const struct spawn_opts *opts, int r, enum spawn_step step,
			 struct error *error)
{
	const char *program = opts->argv[0];

	if (r == -ECANCELED)
		return refuse(error, REFUSE_UNAVAILABLE, "could not start %s: cancelled", program);
	if (step == SPAWN_DIRECTORY)
		return explain_directory(opts->cwd, r, error);
	if (step == SPAWN_CONFINE)
		return refuse(error, REFUSE_FORBIDDEN, "cannot restrict write access of %s: %s",
			      program, uv_strerror(r));
	if (r == -ENOENT || r == -ENOTDIR || (r == -EACCES && !is_there(opts)))
		return refuse(error, REFUSE_NOT_FOUND, "no such program: %s", program);
	if (step == SPAWN_PROGRAM && (r == -EACCES || r == -EPERM))
		return refuse(error, REFUSE_FORBIDDEN, "no permission to run %s", program);
	refuse(error, REFUSE_INTERNAL, "cannot run %s: %s", program, uv_strerror(r));
	return r;
}

static void escalate(void *arg)
{
	struct child *c = arg;

	child_signal(c, c->next_signal);
	if (c->next_signal == SIGKILL || spawn_group_gone(&c->process))
		return;
	c->next_signal = SIGKILL;
	timer_start(c->escalation, c->terminate_ms);
}

static bool is_marked(const struct child_opts *opts)
{
	static const char start[] = TREE_VARIABLE "=";

	for (const char *const *at = opts->more_env; at && *at; at++) {
		if (strncmp(*at, start, sizeof(start) - 1) == 0)
			return true;
	}
	return false;
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
	c->cgroup = opts->cgroup;
	c->on_started = opts->on_started;
	c->loop = l;
	c->asked = atomic_load(&n_cancels);
	c->marked = is_marked(opts);
	c->process.group_gone = true;
	c->process.pidfd = -1;
	list_init(&c->process.link);
	c->wants_reading = true;
	r = timer_new(l, on_grace, c, &c->grace) ?: timer_new(l, escalate, c, &c->escalation);
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

/* It runs; its end must be seen. */
static int attend(struct child *c)
{
	int r = c->process.pidfd < 0 ? -ENOSYS : wait_by_pidfd(c, c->loop);

	if (r != 0 && c->process.pidfd < 0)
		r = wait_by_signal(c, c->loop);
	if (r != 0) {
		/* Nobody would see its end. */
		spawn_kill(&c->process);
		return r;
	}
	c->running = true;
	atomic_fetch_add_explicit(&n_running, 1, memory_order_relaxed);
	/* Where there is no pidfd, it may have ended before we listened. */
	if (c->process.pidfd < 0 && !c->freed)
		timer_start(c->grace, 0);
	return 0;
}

static int spawn_in_cgroup(struct child *c, struct spawn_opts *how)
{
	const struct cgroup *g = c->cgroup ? c->cgroup(c->arg) : NULL;

	how->cgroup_folder = g ? cgroup_folder(g) : 0;
	how->cgroup = g ? cgroup_fd(g) : 0;
	return spawn(how, &c->process, &c->step);
}

static bool is_cancelled(const struct child *c)
{
	return c->asked != atomic_load(&n_cancels);
}

/* In this order: whoever moves the time on has cancelled before. */
static bool may_begin(const void *child)
{
	const struct child *c = child;
	uint64_t until_ms = atomic_load(&begin_until_ms);
	bool is_over = c->marked && until_ms > 0 && clock_boot_ms() >= until_ms;

	return !is_over && !is_cancelled(c);
}

/* We may stand still at any point of this, so it is asked just before the program runs, and again when
 * it is there: from then on whoever searches for it finds it. */
static int spawn_unless_cancelled(struct child *c, struct spawn_opts *how)
{
	int r;

	how->may_begin = may_begin;
	how->may_begin_arg = c;
	r = is_cancelled(c) ? -ECANCELED : spawn_in_cgroup(c, how);
	if (r == 0 && is_cancelled(c)) {
		spawn_kill(&c->process);
		r = -ECANCELED;
	}
	return r;
}

void child_cancel_starts(void)
{
	atomic_fetch_add(&n_cancels, 1);
}

void child_begin_until(uint64_t boot_ms)
{
	atomic_store(&begin_until_ms, boot_ms);
}

/* ---- beside the loop ---- */

static void start_all(struct list *asides)
{
	struct list *first;

	while ((first = list_first(asides))) {
		struct child *c = list_entry(first, struct child, start.link);

		list_remove(first);
		c->start_result = spawn_unless_cancelled(c, c->how);
		aside_end(&c->start);
	}
}

static struct helper starter = HELPER(starter, start_all);

static void catch_up(struct child *c)
{
	int number = c->early_signal;

	c->early_signal = 0;
	if (number != 0)
		child_signal(c, number);
	if (c->stopping)
		timer_start(c->escalation, c->early_ms);
	child_read(c, c->wants_reading);
}

static void on_start(struct aside *a)
{
	struct child *c = list_entry(a, struct child, start);
	struct error error = {0};
	int r = c->start_result;

	r = r != 0 ? child_explain(c->how, r, c->step, &error) : attend(c);
	spawn_opts_free(c->how);
	c->how = NULL;
	if (c->freed) {
		child_signal(c, SIGKILL);
		check_process(c);
		if (c->waits && r != 0)
			close_handle(&c->end);
	} else {
		c->on_started(c->arg, r, &error);
		/* Which may have freed it. */
		if (r == 0 && !c->freed)
			catch_up(c);
	}
	child_release(c);
}

static int start_aside(struct child *c, const struct spawn_opts *how)
{
	int r = helper_start(&starter, c->loop) ?: spawn_opts_copy(how, &c->how);

	if (r != 0)
		return r;
	c->n_handles++;
	c->start.finished = on_start;
	helper_give(&starter, c->loop, &c->start);
	return 0;
}

void child_pause_starts(bool pause)
{
	helper_pause(&starter, pause);
}

static bool is_starting(const struct child *c)
{
	return c->how != NULL;
}

static int child_run(struct child *c, const struct child_opts *opts, const struct child_streams *s,
		     struct error *error)
{
	struct spawn_opts how = spawn_opts(opts, s);
	int r;

	if (opts->on_started)
		return start_aside(c, &how);
	r = spawn_unless_cancelled(c, &how);
	return r != 0 ? child_explain(&how, r, c->step, error) : attend(c);
}

static int start(struct child *c, const struct child_opts *opts, struct error *error)
{
	CLEANUP(streams_done)
	struct child_streams s = {.in = -1, .out = {-1, -1}, .err = {-1, -1}};

	if (opts->streams) {
		c->outputs[0].ended = true;
		c->outputs[1].ended = true;
		return child_run(c, opts, &s, error);
	}
	return open_streams(opts, &s)
		?: adopt_output(&c->outputs[0], &s.out[0])
		?: adopt_output(&c->outputs[1], &s.err[0])
		?: child_run(c, opts, &s, error);
}

/* Of the process, not of a loop: whoever starts a program comes by here. */
static atomic_bool forbidden;

void child_forbid(bool forbid)
{
	atomic_store(&forbidden, forbid);
}

int child_check_allowed(struct error *error)
{
	if (!atomic_load(&forbidden))
		return 0;
	return refuse(error, REFUSE_FORBIDDEN,
		      "starting programs is disabled (to enable it, set [daemon] programs = yes)");
}

int child_start(struct loop *l, const struct child_opts *opts, struct child **ret_child,
		struct error *error)
{
	struct child *c;
	int r = child_check_allowed(error);

	if (r != 0)
		return r;
	if (!opts->argv || !opts->argv[0] || !*opts->argv[0])
		return refuse(error, REFUSE_NOT_FOUND, "the command does not contain a program");
	r = child_new(l, opts, &c);
	if (r != 0)
		return r;
	r = start(c, opts, error);
	if (r != 0) {
		child_free(c);
		return r;
	}
	if (!is_starting(c))
		child_read(c, true);
	*ret_child = c;
	return 0;
}

pid_t child_pid(const struct child *c)
{
	return is_starting(c) ? 0 : c->process.pid;
}

long long child_started(const struct child *c)
{
	return is_starting(c) ? 0 : c->process.started;
}

void child_read(struct child *c, bool on)
{
	c->wants_reading = on;
	if (c->told || c->freed || c->reading == on || is_starting(c))
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
	if (!is_starting(c))
		spawn_signal(&c->process, number);
	else if (c->early_signal != SIGKILL)
		c->early_signal = number;
}

static void stop_by(struct child *c, int number, unsigned ms)
{
	if (c->stopping || (!is_starting(c) && spawn_group_gone(&c->process)))
		return;
	c->stopping = true;
	child_signal(c, number);
	c->early_ms = ms;
	if (!is_starting(c))
		timer_start(c->escalation, ms);
}

void child_stop(struct child *c, unsigned interrupt_ms, unsigned terminate_ms)
{
	if (c->stopping)
		return;
	c->terminate_ms = terminate_ms;
	c->next_signal = SIGTERM;
	stop_by(c, SIGINT, interrupt_ms);
}

void child_terminate(struct child *c, unsigned kill_after_ms)
{
	if (c->stopping)
		return;
	c->next_signal = SIGKILL;
	stop_by(c, SIGTERM, kill_after_ms);
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
	/* The handle that waits for the end, if it was started at all. */
	if (c->waits && !c->running)
		close_handle(&c->end);
}

unsigned children_running(void)
{
	return atomic_load_explicit(&n_running, memory_order_relaxed);
}
