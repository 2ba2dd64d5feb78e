/*
 * Processes by their marks. Nothing is remembered between two searches: the truth is in /proc.
 *
 * The second mark is the soft limit RLIMIT_RTTIME, which matters only for realtime threads.
 * Ours is above 2^62 microseconds, so it limits nobody, and its lower bits name the mark: 31
 * bits for the owner, 31 for the rest. It is read with one system call, from any process of
 * ours, while the environment may be unreadable, huge, or on a page that cannot be loaded.
 */
#include "io/process/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/process/spawn.h"

enum {
	LIFE_LEN = 16,
	TAIL_LEN = 1 + LIFE_LEN + 16, /* "-", this life of ours, a number */
	STAT_MAX = 1024,
	ENVIRON_CHUNK = 32 * 1024,
	N_FREEZE_ROUNDS = 8,
	N_CHASED = 1000,
	N_PROCESSES_MAX = 1 << 22, /* the kernel's own limit */
	REAP_AGAIN_MS = 1,
};

struct tree_keeper {
	struct signal_watch *watch;
	struct timer *again;
};

static atomic_bool keeping;

struct process {
	pid_t pid;
	pid_t parent;
	long long started;
	bool dead;  /* a zombie, and none of its threads runs */
	bool below; /* us */
	bool belongs;
};

struct processes {
	struct process *list; /* by pid */
	size_t n;
	size_t cap;
	/* The highest pid of a process that carried the mark and ended, but is not reaped yet;
	 * 0: none. */
	pid_t last_ended;
};

/* What is searched for. */
struct wanted {
	bool all_below;
	bool below_only; /* of this run of the daemon, which the keeper holds together */
	bool prefix;
	uint64_t limit;
	uint64_t limit_mask;
	char needle[sizeof(TREE_VARIABLE) + TREE_MARK_MAX + 2]; /* "\0NAME=mark", exact: "\0" */
	size_t needle_len;
};

/* ---- the keeper ---- */

static void reap_strangers(void *arg)
{
	struct tree_keeper *k = arg;

	if (spawn_reap_all())
		timer_start(k->again, REAP_AGAIN_MS);
}

int tree_keeper_new(struct loop *l, struct tree_keeper **ret_keeper)
{
	struct tree_keeper *k;
	int r;

	if (atomic_exchange(&keeping, true))
		return -EBUSY;
	k = calloc(1, sizeof(*k));
	r = k ? timer_new(l, reap_strangers, k, &k->again) : -ENOMEM;
	if (r == 0)
		r = signal_watch_new(l, SIGCHLD, reap_strangers, k, &k->watch);
	if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		r = -errno;
	if (r != 0) {
		tree_keeper_free(k);
		atomic_store(&keeping, false);
		return r;
	}
	/* Some may have come before we listened. */
	reap_strangers(k);
	*ret_keeper = k;
	return 0;
}

void tree_keeper_free(struct tree_keeper *k)
{
	if (!k)
		return;
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	signal_watch_free(k->watch);
	timer_free(k->again);
	free(k);
	atomic_store(&keeping, false);
}

/* ---- marks ---- */

static char life[LIFE_LEN + 1]; /* "": no randomness */

static void make_life(void)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) == (ssize_t)sizeof(random))
		snprintf(life, sizeof(life), "%016llx", (unsigned long long)random);
}

static const char *this_life(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_life);
	return life;
}

int tree_mark(const char *owner, char out[TREE_MARK_MAX])
{
	static atomic_ullong n_marks;
	size_t len = strlen(owner);

	if (len == 0 || len > TREE_OWNER_MAX)
		return -EINVAL;
	if (!*this_life())
		return -EIO;
	snprintf(out, TREE_MARK_MAX, "%s-%s%016llx", owner, life, atomic_fetch_add(&n_marks, 1));
	return 0;
}

static bool is_of_this_life(const char *mark)
{
	size_t len = strlen(mark);

	return len > TAIL_LEN && *this_life() &&
	       memcmp(mark + len - TAIL_LEN + 1, life, LIFE_LEN) == 0;
}

/* FNV-1a, folded to 31 bits. */
static uint64_t hash31(const char *data, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)data[i]) * 0x100000001b3u;
	return (h ^ h >> 33) & 0x7fffffff;
}

#define LIMIT_BASE  (1ULL << 62)
#define OWNER_SHIFT 31
#define OWNER_MASK  (LIMIT_BASE | 0x7fffffffULL << OWNER_SHIFT)

static uint64_t owner_limit(const char *owner, size_t len)
{
	return LIMIT_BASE | hash31(owner, len) << OWNER_SHIFT;
}

static uint64_t mark_limit(const char *mark)
{
	size_t len = strlen(mark);
	size_t n_owner = len > TAIL_LEN ? len - TAIL_LEN : len;

	return owner_limit(mark, n_owner) | hash31(mark, len);
}

bool tree_limit(const char *mark, struct rlimit *ret_limit)
{
	if (!mark || getrlimit(RLIMIT_RTTIME, ret_limit) != 0)
		return false;
	if (ret_limit->rlim_max < LIMIT_BASE << 1)
		return false;
	ret_limit->rlim_cur = (rlim_t)mark_limit(mark);
	return true;
}

static bool want(struct wanted *w, const char *mark, bool prefix)
{
	size_t len = strlen(mark);
	char *at = w->needle;

	if (len == 0 || len >= TREE_MARK_MAX)
		return false;
	at++;
	at = mempcpy(at, TREE_VARIABLE "=", sizeof(TREE_VARIABLE));
	at = mempcpy(at, mark, len);
	w->needle_len = (size_t)(at - w->needle) + !prefix;
	w->prefix = prefix;
	w->limit = prefix ? owner_limit(mark, len) : mark_limit(mark);
	w->limit_mask = prefix ? OWNER_MASK : ~0ULL;
	w->below_only = !prefix && atomic_load(&keeping) && is_of_this_life(mark);
	return true;
}

/* ---- looking ---- */

static int open_of(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * "PID (NAME) STATE PPID ...": the name may hold anything, so the last ")" counts. A process
 * whose first thread has ended looks like a zombie though others of it run.
 */
static bool parse_stat(const char *text, struct process *p)
{
	const char *at = strrchr(text, ')');
	long n_threads;
	char state;
	int parent;

	if (!at || sscanf(at + 1,
			  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld "
			  "%*d %lld",
			  &state, &parent, &n_threads, &p->started) != 4)
		return false;
	p->parent = parent;
	p->dead = (state == 'Z' && n_threads <= 1) || state == 'X' || state == 'x';
	return true;
}

static int read_process(pid_t pid, struct process *ret)
{
	CLEANUP(closep) int fd = open_of(pid, "stat");
	char text[STAT_MAX];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	*ret = (struct process) {.pid = pid};
	return parse_stat(text, ret) ? 0 : -ESRCH;
}

long long tree_started(pid_t pid)
{
	struct process p;

	return pid > 0 && read_process(pid, &p) == 0 ? p.started : 0;
}

/* Not "there is none", but "we could not look". */
static bool is_shortage(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

static bool environ_has(pid_t pid, const struct wanted *w)
{
	CLEANUP(closep) int fd = open_of(pid, "environ");
	/* The end of one piece stays before the next; at first, the NUL that precedes a name. */
	char data[ENVIRON_CHUNK + sizeof(w->needle)];
	size_t kept = 1;
	ssize_t n;

	data[0] = '\0';
	while (fd >= 0 && (n = read(fd, data + kept, ENVIRON_CHUNK)) > 0) {
		size_t len = kept + (size_t)n;

		if (memmem(data, len, w->needle, w->needle_len))
			return true;
		kept = len < w->needle_len ? len : w->needle_len - 1;
		memmove(data, data + len - kept, kept);
	}
	return false;
}

static uint64_t limit_of(pid_t pid)
{
	struct rlimit limit;

	if (prlimit(pid, RLIMIT_RTTIME, NULL, &limit) != 0 || limit.rlim_cur < LIMIT_BASE ||
	    limit.rlim_cur >= LIMIT_BASE << 1)
		return 0;
	return limit.rlim_cur;
}

static bool is_limited(pid_t pid, const struct wanted *w)
{
	return (limit_of(pid) & w->limit_mask) == w->limit;
}

static bool carries(pid_t pid, const struct wanted *w)
{
	uint64_t limit = limit_of(pid);

	if ((limit & w->limit_mask) == w->limit)
		return true;
	/* It is another mark's; only a prefix may be shorter than the owner. */
	if (limit != 0 && !w->prefix)
		return false;
	return environ_has(pid, w);
}

bool tree_is_marked(pid_t pid, const char *owner)
{
	struct wanted w = {0};

	return want(&w, owner, true) && carries(pid, &w);
}

static int add_process(struct processes *all, const struct process *p)
{
	if (all->n == all->cap) {
		size_t cap = all->cap ? 2 * all->cap : 512;
		struct process *list = NULL;

		if (cap <= N_PROCESSES_MAX)
			list = reallocarray(all->list, cap, sizeof(*list));
		if (!list)
			return -ENOMEM;
		all->list = list;
		all->cap = cap;
	}
	all->list[all->n++] = *p;
	return 0;
}

static int by_pid(const void *a, const void *b)
{
	const struct process *pa = a, *pb = b;

	return (pa->pid > pb->pid) - (pa->pid < pb->pid);
}

static struct process *find(const struct processes *all, pid_t pid)
{
	struct process key = {.pid = pid};

	return all->n ? bsearch(&key, all->list, all->n, sizeof(key), by_pid) : NULL;
}

static int read_all(struct processes *all)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (d = readdir(dir))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);
		struct process p;

		if (pid <= 0)
			continue;
		r = read_process(pid, &p);
		if (r == 0)
			r = add_process(all, &p);
		else if (!is_shortage(r))
			r = 0; /* gone, or hidden from us */
	}
	closedir(dir);
	if (all->n > 0)
		qsort(all->list, all->n, sizeof(*all->list), by_pid);
	return r;
}

/* From parents to children. Mostly one round, since children have higher pids. */
static void spread(struct processes *all, pid_t self, bool belongs)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < all->n; i++) {
			struct process *p = &all->list[i], *parent = find(all, p->parent);
			bool *flag = belongs ? &p->belongs : &p->below;
			bool from;

			if (*flag || !parent || p->pid == self)
				continue;
			if (belongs)
				from = parent->belongs && parent->pid != self;
			else
				from = parent->below || parent->pid == self;
			*flag = from;
			changed |= from;
		}
	}
}

/*
 * A process that forks and exits, again and again, has another pid whenever we look, and is
 * never there. But its former selves came to us, and are not reaped while we look.
 */
static void note_ended(struct processes *all, const struct process *p, const struct wanted *w)
{
	if (p->parent == getpid() && (w->all_below || is_limited(p->pid, w)))
		all->last_ended = p->pid;
}

/* Keeps only those that belong; after a failure, none. */
static int look(const struct wanted *w, struct processes *ret)
{
	pid_t self = getpid();
	size_t n = 0;
	int r = read_all(ret);

	if (r != 0) {
		ret->n = 0;
		return r;
	}
	spread(ret, self, false);
	for (size_t i = 0; i < ret->n; i++) {
		struct process *p = &ret->list[i];

		if (p->dead)
			note_ended(ret, p, w);
		else if (w->all_below)
			p->belongs = p->below;
		else if (p->below || !w->below_only)
			p->belongs = carries(p->pid, w);
	}
	spread(ret, self, true);
	for (size_t i = 0; i < ret->n; i++) {
		const struct process *p = &ret->list[i];

		if (p->belongs && !p->dead && p->pid != self)
			ret->list[n++] = *p;
	}
	ret->n = n;
	return 0;
}

/* ---- signals ---- */

/* A pidfd holds whoever has the pid now; if that is still the process we saw, the signal can
 * reach nobody else. */
static void send_signal(const struct process *p, int number)
{
	CLEANUP(closep) int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);

	if (tree_started(p->pid) != p->started)
		return;
	if (fd >= 0)
		syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
	else if (errno != ESRCH)
		kill(p->pid, number);
}

/* Pids go upwards, so it is just ahead; and asking for a limit takes less time than a fork. */
static void chase(const struct wanted *w, pid_t last)
{
	for (pid_t pid = last + 1; pid <= last + N_CHASED; pid++) {
		CLEANUP(closep) int fd = -1;

		if (!is_limited(pid, w))
			continue;
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd >= 0 && is_limited(pid, w))
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
	}
}

/* To those of `now` that `before` does not have; whether there were any. */
static bool send_to_new(const struct processes *now, const struct processes *before, int number)
{
	bool any = false;

	for (size_t i = 0; i < now->n; i++) {
		const struct process *p = &now->list[i], *seen = find(before, p->pid);

		if (seen && seen->started == p->started)
			continue;
		send_signal(p, number);
		any = true;
	}
	return any;
}

static unsigned signal_wanted(const struct wanted *w, int number)
{
	struct processes now = {0}, before = {0};
	const struct processes none = {0};
	unsigned n;
	int r;

	if (atomic_load(&keeping))
		spawn_reap_all();
	r = look(w, &now);
	/* A child of a process that is killed first would become an orphan, and may carry no
	 * mark itself. */
	for (unsigned i = 0; r == 0 && number == SIGKILL && i < N_FREEZE_ROUNDS; i++) {
		if (!send_to_new(&now, &before, SIGSTOP))
			break;
		free(before.list);
		before = now;
		now = (struct processes) {0};
		r = look(w, &now);
	}
	if (number != 0)
		send_to_new(&now, &none, number);
	if (number == SIGKILL && now.last_ended && !w->all_below)
		chase(w, now.last_ended);
	n = (unsigned)now.n;
	if (n == 0 && (is_shortage(r) || now.last_ended))
		n = 1; /* we cannot say that there is none */
	free(now.list);
	free(before.list);
	return n;
}

unsigned tree_signal(const char *mark, bool prefix, int signal)
{
	struct wanted w = {0};

	return want(&w, mark, prefix) ? signal_wanted(&w, signal) : 0;
}

unsigned tree_signal_below(int signal)
{
	const struct wanted w = {.all_below = true};

	return signal_wanted(&w, signal);
}
