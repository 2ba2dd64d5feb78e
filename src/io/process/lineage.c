#include "io/process/lineage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/inner.h"
#include "io/process/inner.h"

enum { STAT_MAX = 1024, WORDS_MAX = 4096 };

int process_open(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static ssize_t read_of(pid_t pid, const char *name, char *out, size_t size)
{
	CLEANUP(closep) int fd = process_open(pid, name);

	return fd < 0 ? -1 : read(fd, out, size);
}

static bool link_of(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	n = readlink(path, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* "PID (NAME) STATE PPID GROUP SESSION TTY ...": the name may contain anything, so the last
 * ")" counts. */
static bool parse_stat(const char *text, struct process_seen *ret)
{
	const char *begin = strchr(text, '('), *end = strrchr(text, ')');
	char state;

	if (!begin || !end ||
	    sscanf(end + 1,
		   " %c %d %d %*d %d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %lld",
		   &state, &ret->parent, &ret->group, &ret->terminal, &ret->n_threads,
		   &ret->started) != 6)
		return false;
	ret->ended = state == 'Z' || state == 'X' || state == 'x';
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(end - begin - 1), begin + 1);
	return true;
}

int process_read(pid_t pid, struct process_seen *ret)
{
	char text[STAT_MAX];
	ssize_t n = read_of(pid, "stat", text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	text[n] = '\0';
	*ret = (struct process_seen) {.pid = pid};
	return parse_stat(text, ret) ? 0 : -ESRCH;
}

bool process_see(pid_t pid, struct process_seen *ret)
{
	return pid > 0 && process_read(pid, ret) == 0;
}

/* A parent that began later is another process that got its pid. */
static bool see_parent(const struct process_seen *child, struct process_seen *ret)
{
	return process_see(child->parent, ret) && ret->started <= child->started;
}

/* A process of our own user that /proc hides (hidepid) is undumpable: it may be an agent that
 * does not want to be seen. Those of other users are always hidden then. */
static bool is_hidden_from_us(pid_t pid)
{
	struct process_seen seen;

	return pid > 1 && pid != getpid() && kill(pid, 0) == 0 && !process_see(pid, &seen);
}

bool lineage_read(pid_t pid, struct process_seen ret[LINEAGE_MAX], unsigned *ret_n)
{
	enum { TRIES = 3 };
	unsigned n = 0;

	/* If a process dies during the walk, its children get another parent. */
	for (int i = 0; i < TRIES; i++) {
		n = process_see(pid, &ret[0]);
		while (n > 0 && n < LINEAGE_MAX && see_parent(&ret[n - 1], &ret[n]))
			n++;
		if (n == 0 || n == LINEAGE_MAX || ret[n - 1].parent <= 1)
			break;
	}
	*ret_n = n;
	return n > 0 && n < LINEAGE_MAX && !is_hidden_from_us(ret[n - 1].parent);
}

/* ---- who is speaking ---- */

static bool is_pipe(const char *link)
{
	return strncmp(link, "pipe:", 5) == 0 || strncmp(link, "socket:", 7) == 0;
}

static bool is_terminal(const char *link)
{
	return strncmp(link, "/dev/pts/", 9) == 0 || strncmp(link, "/dev/tty", 8) == 0 ||
	       strcmp(link, "/dev/console") == 0;
}

/* A process names itself with one system call; its executable it cannot choose afterwards. */
static const char *executable_name(const struct process_seen *p, char path[PROGRAM_MAX])
{
	const char *slash;

	if (!link_of(p->pid, "exe", path, PROGRAM_MAX))
		return "";
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool is_listed(const char *name, const char *const *names)
{
	while (*names && strcmp(name, *names) != 0)
		names++;
	return *names;
}

/* The real, effective, saved and file system user; they differ while a setuid program runs. */
static bool runs_as(pid_t pid, uid_t uid)
{
	char text[WORDS_MAX];
	unsigned ids[4];
	ssize_t n = read_of(pid, "status", text, sizeof(text) - 1);
	const char *at;

	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "\nUid:");
	if (!at || sscanf(at, "\nUid: %u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4)
		return false;
	return ids[0] == uid && ids[1] == uid && ids[2] == uid && ids[3] == uid;
}

/* Whether it runs a program of these names that was installed by an administrator. The path is
 * looked up again, since a mount namespace can give a file any path. */
static bool runs_installed(const struct process_seen *p, const char *const *names)
{
	char path[PROGRAM_MAX], link[64];
	struct stat there, run;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)p->pid);
	return is_listed(executable_name(p, path), names) && stat(link, &run) == 0 &&
	       stat(path, &there) == 0 && run.st_dev == there.st_dev &&
	       run.st_ino == there.st_ino && (geteuid() == 0 || run.st_uid != geteuid());
}

static const char *const shells[] = {"sh",   "bash", "dash", "zsh",     "ksh", "ash",
				     "fish", "tcsh", "mksh", "busybox", NULL};

/* A shell at a terminal, without a script or a command to run. */
static bool is_typed_into(const struct process_seen *p)
{
	char words[WORDS_MAX], input[64];
	ssize_t n = read_of(p->pid, "cmdline", words, sizeof(words) - 1);
	const char *word;

	if (n <= 0 || !runs_installed(p, shells) ||
	    !link_of(p->pid, "fd/0", input, sizeof(input)) || !is_terminal(input))
		return false;
	words[n] = '\0';
	for (word = words + strlen(words) + 1; word < words + n; word += strlen(word) + 1) {
		if (word[0] != '-' || (word[1] != '-' && strchr(word, 'c')))
			return false;
	}
	return true;
}

static bool is_script(const struct process_seen *p)
{
	return runs_installed(p, shells) && !is_typed_into(p);
}

/* The user manager, which the kernel gives orphans of its user. */
static bool is_user_manager(const struct process_seen *p)
{
	static const char *const names[] = {"systemd", NULL};

	return p->parent == 1 && runs_as(p->pid, geteuid()) && runs_installed(p, names);
}

/* Only root's sshd can have this child: it becomes the user without running another program,
 * and therefore cannot be read. All sessions of a shared connection (ControlMaster) descend
 * from it. `above` is its parent; NULL if that cannot be seen. */
static bool is_ssh_connection(const struct process_seen *p, const struct process_seen *above)
{
	static const char *const names[] = {"sshd", "sshd-session", NULL};

	if (geteuid() == 0)
		return runs_installed(p, names);
	return above && above->pid != 1 && is_listed(above->name, names) &&
	       runs_as(above->pid, 0) && is_listed(p->name, names);
}

/* Processes whose children belong to different users of the terminal: init and its kin, what a
 * person types into, and servers of terminals. */
static bool is_nobody(const struct process_seen *p, const struct process_seen *above)
{
	static const char *const terminals[] = {"tmux", NULL};

	return p->pid == 1 || p->pid == getpid() || is_user_manager(p) || is_typed_into(p) ||
	       is_ssh_connection(p, above) || runs_installed(p, terminals);
}

enum role { ROLE_PASSES, ROLE_SPEAKS, ROLE_NOBODY };

/* `pipe` is the standard input of what it started; "" for none. */
static enum role role_of(const struct process_seen *p, const struct process_seen *above,
			 char pipe[64])
{
	char input[64];

	if (is_nobody(p, above))
		return ROLE_NOBODY;
	if (!link_of(p->pid, "fd/0", input, sizeof(input)))
		/* sudo and its like pass on what they are given. */
		return runs_as(p->pid, geteuid()) ? ROLE_SPEAKS : ROLE_PASSES;
	if (is_pipe(pipe) && strcmp(pipe, input) == 0)
		return ROLE_PASSES;
	if (!is_script(p))
		return ROLE_SPEAKS;
	strcpy(pipe, input);
	return ROLE_PASSES;
}

bool lineage_speaker(pid_t pid, struct process_seen *ret)
{
	struct process_seen lineage[LINEAGE_MAX];
	enum role role = ROLE_PASSES;
	char pipe[64];
	unsigned n;

	(void)lineage_read(pid, lineage, &n);
	if (n == 0)
		return false;
	*ret = lineage[0];
	if (link_of(pid, "fd/0", pipe, sizeof(pipe)) && !is_pipe(pipe))
		return true;
	for (unsigned i = 1; i < n && role == ROLE_PASSES; i++) {
		role = role_of(&lineage[i], i + 1 < n ? &lineage[i + 1] : NULL, pipe);
		if (role == ROLE_SPEAKS)
			*ret = lineage[i];
	}
	return true;
}

/* ---- its names ---- */

void process_program(const struct process_seen *p, char out[PROGRAM_MAX])
{
	if (!link_of(p->pid, "exe", out, PROGRAM_MAX))
		snprintf(out, PROGRAM_MAX, "%s", p->name);
}

bool process_folder(pid_t pid, char out[PATH_MAX])
{
	return link_of(pid, "cwd", out, PATH_MAX);
}

void process_terminal(const struct process_seen *p, char out[TERMINAL_MAX])
{
	enum { CONSOLE = 4, PTS_FIRST = 136, PTS_LAST = 143, CONSOLES = 64 };
	unsigned major = major((dev_t)p->terminal);
	unsigned minor = minor((dev_t)p->terminal);

	out[0] = '\0';
	if (major >= PTS_FIRST && major <= PTS_LAST)
		snprintf(out, TERMINAL_MAX, "pts/%u", (major - PTS_FIRST) * 256 + minor);
	else if (major == CONSOLE && minor < CONSOLES)
		snprintf(out, TERMINAL_MAX, "tty%u", minor);
	else if (p->terminal != 0)
		snprintf(out, TERMINAL_MAX, "%u:%u", major, minor);
}

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { LOOK_MS = 2000 };

struct process_watch {
	uv_poll_t poll;
	struct timer *timer; /* tells that it is gone, or looks */
	loop_cb cb;
	void *arg;
	long long started;
	pid_t pid;
	int fd; /* -1 if there is none */
	bool told;
};

bool process_is_gone(pid_t pid, long long started)
{
	struct process_seen seen;

	if (kill(pid, 0) != 0 && errno == ESRCH)
		return true;
	return process_see(pid, &seen) && (seen.started != started || seen.ended);
}

static void lineage_notify(struct process_watch *w)
{
	if (w->told)
		return;
	w->told = true;
	timer_stop(w->timer);
	if (w->fd >= 0)
		uv_poll_stop(&w->poll);
	w->cb(w->arg);
}

static void lineage_on_timer(void *watch)
{
	struct process_watch *w = watch;

	if (process_is_gone(w->pid, w->started))
		lineage_notify(w);
}

static void lineage_on_readable(uv_poll_t *poll, int status, int events)
{
	lineage_notify(poll->data);
}

static void lineage_on_closed(uv_handle_t *handle)
{
	struct process_watch *w = handle->data;

	closep(&w->fd);
	free(w);
}

void process_watch_free(struct process_watch *w)
{
	if (!w)
		return;
	timer_free(w->timer);
	if (w->fd >= 0)
		uv_close((uv_handle_t *)&w->poll, lineage_on_closed);
	else
		free(w);
}

/* False: the process must be looked for now and then. */
static bool wait_by_pidfd(struct process_watch *w, struct loop *l)
{
	w->fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	if (w->fd < 0)
		return false;
	if (uv_poll_init(loop_uv(l), &w->poll, w->fd) != 0) {
		closep(&w->fd);
		w->fd = -1;
		return false;
	}
	w->poll.data = w;
	uv_unref((uv_handle_t *)&w->poll);
	return uv_poll_start(&w->poll, UV_READABLE, lineage_on_readable) == 0;
}

int process_watch_new(struct loop *l, pid_t pid, long long started, loop_cb gone, void *arg,
		      struct process_watch **ret_watch)
{
	struct process_watch *w = calloc(1, sizeof(*w));
	bool is_polled;
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct process_watch) {
		.cb = gone, .arg = arg, .pid = pid, .started = started, .fd = -1};
	r = timer_new(l, lineage_on_timer, w, &w->timer);
	if (r != 0) {
		free(w);
		return r;
	}
	is_polled = wait_by_pidfd(w, l);
	/* The pid may have been reused before the descriptor was opened. */
	if (process_is_gone(pid, started))
		timer_start(w->timer, 0);
	else if (!is_polled)
		timer_repeat(w->timer, LOOK_MS);
	*ret_watch = w;
	return 0;
}

/* ---- a socket's peer ---- */

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

bool process_of_peer(int fd, const struct peer *peer, pid_t *ret_pid, long long *ret_started)
{
	CLEANUP(closep) int pidfd = -1;
	struct process_seen seen;
	socklen_t len = sizeof(pidfd);

	if (!peer->known || !peer->local || peer->pid <= 0)
		return false;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) != 0)
		pidfd = -1;
	if (!process_see(peer->pid, &seen) || seen.ended)
		return false;
	/* It has not ended until now, so what was seen is that process. */
	if (pidfd >= 0 ? has_ended(pidfd) : seen.started > peer->since)
		return false;
	*ret_pid = seen.pid;
	*ret_started = seen.started;
	return true;
}
