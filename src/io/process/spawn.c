/*
 * How a program is started: by a child that shares our memory, while the thread that made it
 * waits (as vfork does). A plain fork copies our page tables, which takes longer the more
 * memory we hold (47 ms at 500 MB, against less than one), and every other thread pays again
 * for the pages it touches afterwards.
 *
 * Sharing has its price: until the program runs, the child must not change our memory. So
 * everything is prepared before, no signal handler of ours can run in it, and it does nothing
 * but system calls. It leaves its errors in our memory.
 */
#include "io/process/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/process/inner.h"
#include "io/process/tree.h"

enum {
	STACK_SIZE = 64 * 1024,
	/* Only for kernels without close_range; what we open ourselves is closed by exec. */
	CLOSE_MAX = 65536,
	REAP_MAX = 4096,
	PWD_SIZE = PATH_MAX + 4, /* longer than any directory one can change to */
};

/* Everything the child needs, prepared in advance. */
struct spawn_start {
	const struct spawn_opts *opts;
	char **argv;
	char **env;
	char **files;         /* where the program may be, NULL-ended */
	char **script_argv;   /* for a script without "#!": the shell's arguments */
	struct rlimit *limit; /* the mark, or NULL */
	pid_t parent;
	bool enters; /* the cgroup, by itself */
	enum spawn_step step;
	int error; /* -errno */
};

/* clone() by the name that no sanitizer intercepts: the thread sanitizer takes it for a fork and
 * gets lost while the memory is still shared. */
int __clone(int (*fn)(void *arg), void *stack, int flags, void *arg, ...);

/* Those that are not reaped yet. */
static struct list known = {&known, &known};
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- before ---- */

int spawn_lift(int fd)
{
	int above;

	if (fd < 0 || fd > 2)
		return fd < 0 ? -errno : fd;
	above = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (above < 0)
		above = -errno;
	close(fd);
	return above;
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && (b[n] == '=' || b[n] == '\0');
}

static bool has_name(const char *const *list, const char *entry)
{
	for (; list && *list; list++) {
		if (same_name(*list, entry))
			return true;
	}
	return false;
}

static const char *const *base_env(const struct spawn_opts *opts)
{
	return opts->env ? opts->env : (const char *const *)environ;
}

/* The last of several with one name counts: some programs would see one and some the other, and
 * ours (the mark) must be the same for all. */
static size_t add_last(const char **env, size_t n, const char *const *list,
		       const char *const *behind)
{
	for (; list && *list; list++) {
		if (!has_name(list + 1, *list) && !has_name(behind, *list))
			env[n++] = *list;
	}
	return n;
}

static size_t add_or_replace(const char **env, size_t n, const char *entry)
{
	size_t i = 0;

	while (i < n && !same_name(env[i], entry))
		i++;
	env[i] = entry;
	return i < n ? n : n + 1;
}

/* Our own PWD would name another folder, and some programs believe it. */
static const char **make_env(const struct spawn_opts *opts, char pwd[PWD_SIZE])
{
	const char *const *base = base_env(opts), *const *more = opts->more_env;
	const char **env = calloc(count_strings(base) + count_strings(more) + 2, sizeof(*env));
	size_t n;

	if (!env)
		return NULL;
	n = add_last(env, 0, base, more);
	if (opts->cwd && opts->cwd[0] == '/') {
		snprintf(pwd, PWD_SIZE, "PWD=%s", opts->cwd);
		if (!has_name(more, pwd))
			n = add_or_replace(env, n, pwd);
	}
	add_last(env, n, more, NULL);
	return env;
}

static const char *env_value(const char *const *env, const char *name)
{
	size_t n = strlen(name);
	const char *value = NULL;

	for (; env && *env; env++) {
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			value = *env + n + 1;
	}
	return value;
}

const char *spawn_path(const struct spawn_opts *opts)
{
	const char *path = env_value(opts->more_env, "PATH");

	return path ? path : env_value(base_env(opts), "PATH");
}

/* One block: the pointers, then the names they point at. */
static char **make_files(const char *name, const char *path)
{
	size_t n = 1, len = strlen(name), n_pointers;
	char **files, *at;

	for (const char *p = path; *p; p++)
		n += *p == ':';
	n_pointers = n + 1;
	files = calloc(1, n_pointers * sizeof(*files) + strlen(path) + n * (len + 3));
	if (!files)
		return NULL;
	at = (char *)(files + n_pointers);
	for (size_t i = 0; i < n; i++) {
		size_t k = strcspn(path, ":");

		files[i] = at;
		/* An empty entry in PATH is the working directory. */
		if (k > 0) {
			at = mempcpy(at, path, k);
			*at++ = '/';
		}
		at = mempcpy(at, name, len + 1);
		path += path[k] ? k + 1 : k;
	}
	return files;
}

static char **find_files(const struct spawn_opts *opts)
{
	const char *path = spawn_path(opts);

	if (strchr(opts->argv[0], '/'))
		return make_files(opts->argv[0], "");
	return make_files(opts->argv[0], path ? path : "/bin:/usr/bin");
}

static char **make_script_argv(char **argv)
{
	static char shell[] = "/bin/sh";
	size_t n = count_strings((const char *const *)argv);
	char **list = calloc(n + 2, sizeof(*list));

	if (!list)
		return NULL;
	list[0] = shell;
	/* list[1] is the script, once it is found. */
	memcpy(list + 2, argv + 1, (n - 1) * sizeof(*list));
	return list;
}

/* ---- the child, in our memory ---- */

static int spawn_fail(struct spawn_start *s, enum spawn_step step)
{
	s->step = step;
	return -errno;
}

/* By the bare system call, here and below: in some builds (sanitizers) there are wrappers, which
 * would record the child's signals and descriptors as ours. All zero is the default in every
 * layout. */
static void reset_signals(void)
{
	static const unsigned long zero[8];

	for (int number = 1; number < _NSIG; number++) {
		if (number != SIGKILL && number != SIGSTOP)
			syscall(SYS_rt_sigaction, number, zero, NULL, _NSIG / 8);
	}
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, zero, NULL, _NSIG / 8);
}

static void close_others(void)
{
	if (close_range(3, ~0U, 0) == 0)
		return;
	for (int fd = 3; fd < CLOSE_MAX; fd++)
		syscall(SYS_close, fd);
}

static int try_file(struct spawn_start *s, char *file)
{
	execve(file, s->argv, s->env);
	if (errno != ENOEXEC)
		return errno;
	s->script_argv[1] = file;
	execve(s->script_argv[0], s->script_argv, s->env);
	return errno;
}

/* Like execvp: goes on past entries where the program is missing or forbidden. */
static int run_program(struct spawn_start *s)
{
	bool forbidden = false;
	int error = ENOENT;

	for (char **file = s->files; *file; file++) {
		error = try_file(s, *file);
		if (error == EACCES)
			forbidden = true;
		else if (error != ENOENT && error != ENOTDIR && error != ENODEV &&
			 error != ESTALE && error != ETIMEDOUT)
			break;
	}
	if (forbidden && (error == ENOENT || error == ENOTDIR))
		error = EACCES;
	errno = error;
	return spawn_fail(s, SPAWN_PROGRAM);
}

static int become(struct spawn_start *s)
{
	const struct spawn_opts *o = s->opts;

	if (o->die_with_us) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* We may have died before that. */
		if (getppid() != s->parent) {
			errno = ESRCH;
			return spawn_fail(s, SPAWN_PREPARE);
		}
	}
	if (setsid() < 0)
		return spawn_fail(s, SPAWN_PREPARE);
	/* These two only help to find it again: it also runs without them. */
	if (s->enters && syscall(SYS_write, o->cgroup, "0", 1) != 1)
		errno = 0;
	if (s->limit)
		setrlimit(RLIMIT_RTTIME, s->limit);
	for (int i = 0; i < 3; i++) {
		if (syscall(SYS_dup3, o->streams[i], i, 0) < 0)
			return spawn_fail(s, SPAWN_PREPARE);
	}
	if (o->terminal && syscall(SYS_ioctl, 0, TIOCSCTTY, 0) != 0)
		return spawn_fail(s, SPAWN_PREPARE);
	/* From here on it can gain no privileges by what it runs, which the kernel requires. */
	if (o->confine > 0 && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
			       syscall(SYS_landlock_restrict_self, o->confine, 0) != 0))
		return spawn_fail(s, SPAWN_CONFINE);
	close_others();
	if (o->cwd && chdir(o->cwd) != 0)
		return spawn_fail(s, SPAWN_DIRECTORY);
	reset_signals();
	if (o->may_begin && !o->may_begin(o->may_begin_arg)) {
		errno = ECANCELED;
		return spawn_fail(s, SPAWN_PREPARE);
	}
	return run_program(s);
}

static int child_main(void *arg)
{
	struct spawn_start *s = arg;

	s->error = become(s);
	return 127;
}

/* ---- and the parent ---- */

static int waitid_again(idtype_t type, pid_t pid, siginfo_t *info, int flags)
{
	int r;

	do {
		info->si_pid = 0;
		r = waitid(type, (id_t)pid, info, WEXITED | flags);
	} while (r != 0 && errno == EINTR);
	return r;
}

static pid_t clone_with_stack(struct spawn_start *s, char *stack, pid_t *ret_pid)
{
	const struct spawn_opts *o = s->opts;
	pid_t pid = -1;

	s->enters = false;
	if (o->cgroup_folder > 0)
		pid = clone_into(o->cgroup_folder, child_main, s, stack, STACK_SIZE, ret_pid);
	if (pid > 0)
		return pid;
	s->enters = o->cgroup > 0;
	return __clone(child_main, stack + STACK_SIZE,
		       CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, s, ret_pid);
}

/* The thread stands still until the program runs or the child has ended. The kernel writes its pid
 * to *ret_pid before it runs, so that it is known before it can end. */
static pid_t clone_child(struct spawn_start *s, pid_t *ret_pid)
{
	CLEANUP(freep) char *stack = malloc(STACK_SIZE);
	sigset_t all, before;
	pid_t pid;
	int error;

	if (!stack) {
		errno = ENOMEM;
		return -1;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = clone_with_stack(s, stack, ret_pid);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}

static void begin_known(struct spawned *s)
{
	*s = (struct spawned) {.pidfd = -1, .starting = true, .group_gone = true};
	pthread_mutex_lock(&known_lock);
	list_append(&known, &s->link);
	pthread_mutex_unlock(&known_lock);
}

/* What is asked of its number cannot be another's: nobody reaps it before. */
static void end_known(struct spawned *s, int result)
{
	if (result == 0) {
		s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
		s->started = tree_started(s->pid);
	}
	pthread_mutex_lock(&known_lock);
	s->starting = false;
	s->group_gone = result != 0;
	if (result != 0)
		list_remove(&s->link);
	pthread_mutex_unlock(&known_lock);
}

static int start_child(struct spawn_start *start, struct spawned *s)
{
	siginfo_t info;
	pid_t pid = clone_child(start, &s->pid);

	if (pid < 0)
		return -errno;
	if (start->error != 0)
		waitid_again(P_PID, pid, &info, 0);
	return start->error;
}

int spawn(const struct spawn_opts *opts, struct spawned *s, enum spawn_step *ret_step)
{
	char pwd[PWD_SIZE];
	CLEANUP(freep) const char **env = make_env(opts, pwd);
	CLEANUP(freep) char **files = find_files(opts);
	CLEANUP(freep) char **script_argv = make_script_argv((char **)(uintptr_t)opts->argv);
	struct rlimit limit;
	struct spawn_start start = {
		.opts = opts,
		.argv = (char **)(uintptr_t)opts->argv,
		.env = (char **)(uintptr_t)env,
		.files = files,
		.script_argv = script_argv,
		.parent = getpid(),
	};
	int r;

	*s = (struct spawned) {
		.link = {&s->link, &s->link}, .pidfd = -1, .reaped = true, .group_gone = true};
	*ret_step = SPAWN_PREPARE;
	if (!env || !files || !script_argv)
		return -ENOMEM;
	if (tree_limit(env_value(env, TREE_VARIABLE), &limit))
		start.limit = &limit;
	begin_known(s);
	r = start_child(&start, s);
	end_known(s, r);
	*ret_step = start.step;
	return r;
}

static void note_end(struct spawned *s, const siginfo_t *info)
{
	bool exited = info && info->si_code == CLD_EXITED;

	s->reaped = true;
	s->status = exited ? info->si_status : -1;
	s->signal = info && !exited ? info->si_status : 0;
	/* Asked at once, before the pid can be reused. */
	s->group_gone = kill(-s->pid, 0) != 0 && errno == ESRCH;
	list_remove(&s->link);
}

static bool reap(struct spawned *s, int flags)
{
	siginfo_t info = {0};

	if (s->reaped)
		return true;
	if (waitid_again(P_PID, s->pid, &info, flags) != 0)
		note_end(s, NULL);
	else if (info.si_pid == s->pid)
		note_end(s, &info);
	return s->reaped;
}

bool spawn_reap(struct spawned *s)
{
	bool reaped;

	pthread_mutex_lock(&known_lock);
	reaped = reap(s, WNOHANG);
	pthread_mutex_unlock(&known_lock);
	return reaped;
}

void spawn_signal(struct spawned *s, int number)
{
	pthread_mutex_lock(&known_lock);
	if (!s->group_gone && kill(-s->pid, number) != 0 && errno == ESRCH)
		s->group_gone = s->reaped;
	pthread_mutex_unlock(&known_lock);
}

bool spawn_group_gone(const struct spawned *s)
{
	bool gone;

	pthread_mutex_lock(&known_lock);
	gone = s->group_gone;
	pthread_mutex_unlock(&known_lock);
	return gone;
}

void spawn_kill(struct spawned *s)
{
	spawn_signal(s, SIGKILL);
	pthread_mutex_lock(&known_lock);
	reap(s, 0);
	pthread_mutex_unlock(&known_lock);
}

void spawn_forget(struct spawned *s)
{
	pthread_mutex_lock(&known_lock);
	list_remove(&s->link);
	pthread_mutex_unlock(&known_lock);
}

static struct spawned *find_known(pid_t pid)
{
	list_for_each (at, following, &known) {
		struct spawned *s = list_entry(at, struct spawned, link);

		if (s->pid == pid)
			return s;
	}
	return NULL;
}

/* A child that has ended is first looked at without being reaped, to see whose it is. False: there
 * is none, or *ret_later. */
static bool reap_next(bool *ret_later)
{
	siginfo_t info = {0};
	struct spawned *s;

	if (waitid_again(P_ALL, 0, &info, WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
		return false;
	s = find_known(info.si_pid);
	*ret_later = s && s->starting;
	if (*ret_later)
		return false;
	if (s)
		return reap(s, WNOHANG);
	return waitid_again(P_PID, info.si_pid, &info, WNOHANG) == 0;
}

bool spawn_reap_all(void)
{
	bool later = false;
	unsigned n = 0;

	pthread_mutex_lock(&known_lock);
	while (n < REAP_MAX && reap_next(&later))
		n++;
	pthread_mutex_unlock(&known_lock);
	return later || n == REAP_MAX;
}
