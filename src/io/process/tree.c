/*
 * Processes by their marks. Nothing is remembered between two searches: the truth is in /proc.
 *
 * The second mark is the soft limit RLIMIT_RTTIME, which matters only for realtime threads.
 * Ours is above 2^62 microseconds, so it limits nobody, and its lower bits name the mark: 31
 * bits for the owner, 31 for the rest. It is read with one system call, from any process of
 * ours, while the environment may be unreadable, huge, or on a page that cannot be loaded.
 */
#include "io/process/tree.h"

#include <errno.h>
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
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/process/inner.h"
#include "io/process/spawn.h"

enum {
	LIFE_LEN = 16,
	TAIL_LEN = 1 + LIFE_LEN + 16, /* "-", this life of ours, a number */
	N_FREEZE_ROUNDS = 8,
	N_CHASED = 1000,
	REAP_AGAIN_MS = 1,
};

struct tree_keeper {
	struct signal_watch *watch;
	struct timer *again;
};

static atomic_bool keeping;

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

/* Folded to 31 bits. */
static uint64_t hash31(const char *data, size_t len)
{
	uint64_t h = text_hash(TEXT_HASH, (struct text) {.data = data, .len = len});

	return (h ^ h >> 33) & 0x7fffffff;
}

#define LIMIT_BASE  (1ULL << 62)
#define OWNER_SHIFT 31
#define OWNER_MASK  (LIMIT_BASE | 0x7fffffffULL << OWNER_SHIFT)

static uint64_t limit_of_owner(const char *owner, size_t len)
{
	return LIMIT_BASE | hash31(owner, len) << OWNER_SHIFT;
}

uint64_t owner_part(uint64_t limit)
{
	return limit & OWNER_MASK;
}

uint64_t mark_limit(const char *mark)
{
	size_t len = strlen(mark);
	size_t n_owner = len > TAIL_LEN ? len - TAIL_LEN : len;

	return limit_of_owner(mark, n_owner) | hash31(mark, len);
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

uint64_t limit_of(pid_t pid)
{
	struct rlimit limit;

	if (prlimit(pid, RLIMIT_RTTIME, NULL, &limit) != 0 || limit.rlim_cur < LIMIT_BASE ||
	    limit.rlim_cur >= LIMIT_BASE << 1)
		return 0;
	return limit.rlim_cur;
}

static atomic_int spared;

void tree_spare(pid_t pid)
{
	atomic_store(&spared, pid);
}

bool is_spared(pid_t pid)
{
	return pid == getpid() || pid == atomic_load(&spared);
}

static bool is_mark(const char *mark)
{
	return *mark && strlen(mark) < TREE_MARK_MAX;
}

static struct wish prefix_wish(const char *owner)
{
	return (struct wish) {.mark = owner, .limit = limit_of_owner(owner, strlen(owner))};
}

bool tree_is_marked(pid_t pid, const char *owner)
{
	struct wish wish = prefix_wish(owner);
	const struct wanted w = {.wishes = &wish, .n = 1, .prefix = true};

	return is_mark(owner) && wish_carried(&w, pid) != NONE;
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

/* Whether it carries a mark of which somebody has just ended. */
static bool is_chased(const struct wanted *w, pid_t pid)
{
	uint64_t limit = limit_of(pid);
	size_t i = wish_find(w, w->prefix ? owner_part(limit) : limit);

	return i != NONE && w->wishes[i].last_ended > 0;
}

static bool is_limited(const struct wanted *w, pid_t pid)
{
	return wish_find(w, owner_part(limit_of(pid))) != NONE && !is_spared(pid);
}

static void signal_if(bool (*is)(const struct wanted *w, pid_t pid), const struct wanted *w,
		      pid_t pid, int number)
{
	CLEANUP(closep) int fd = -1;

	if (!is(w, pid))
		return;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0 && is(w, pid))
		syscall(SYS_pidfd_send_signal, fd, number, NULL, 0);
}

struct stopping {
	const struct wanted *w;
	bool any;
};

static int stop_limited(void *arg, pid_t pid)
{
	struct stopping *s = arg;

	if (is_limited(s->w, pid)) {
		s->any = true;
		signal_if(is_limited, s->w, pid, SIGSTOP);
	}
	return 0;
}

/* Whether any process carries a limit, and stops them. Also if we could not look at all of them. */
static bool stop_all_limited(const struct wanted *w)
{
	struct stopping s = {.w = w};

	return each_pid(stop_limited, &s) != 0 || s.any;
}

static int by_number(const void *a, const void *b)
{
	const pid_t *pa = a, *pb = b;

	return (*pa > *pb) - (*pa < *pb);
}

/* Pids go upwards, so it is just ahead; and asking for a limit takes less time than a fork. */
static void chase(const struct wanted *w)
{
	CLEANUP(freep) pid_t *ended = calloc(w->n, sizeof(*ended));
	pid_t next = 1;

	for (size_t i = 0; ended && i < w->n; i++)
		ended[i] = w->wishes[i].last_ended;
	if (ended)
		qsort(ended, w->n, sizeof(*ended), by_number);
	for (size_t i = 0; ended && i < w->n; i++) {
		if (ended[i] == 0)
			continue;
		if (next <= ended[i])
			next = ended[i] + 1;
		while (next <= ended[i] + N_CHASED)
			signal_if(is_chased, w, next++, SIGKILL);
	}
}

/* To those of `now` that `before` does not have; whether there were any. */
static bool send_to_new(const struct processes *now, const struct processes *before, int number)
{
	bool any = false;

	for (size_t i = 0; i < now->n; i++) {
		const struct process *p = &now->list[i], *seen = tree_find(before, p->pid);

		if (seen && seen->started == p->started)
			continue;
		if (!p->told)
			send_signal(p, number);
		any = true;
	}
	return any;
}

/* Leaves the numbers in the wishes. */
static void signal_wanted(const struct wanted *w, int number)
{
	struct processes now = {0}, before = {0};
	const struct processes none = {0};
	int r;

	if (atomic_load(&keeping))
		spawn_reap_all();
	/* Where hundreds compute, a look takes many turns of the processor, and this takes one. It is the only one at
	 * most starts and stops of koined. */
	if (number == SIGKILL && w->limits && !stop_all_limited(w))
		return;
	r = tree_look(w, &now);
	/* A child of a process that is killed first would become an orphan, and may carry no
	 * mark itself. */
	for (unsigned i = 0; r == 0 && number == SIGKILL && i < N_FREEZE_ROUNDS; i++) {
		if (!send_to_new(&now, &before, SIGSTOP))
			break;
		free(before.list);
		before = now;
		now = (struct processes) {0};
		r = tree_look(w, &now);
	}
	if (number != 0)
		send_to_new(&now, &none, number);
	if (number == SIGKILL && !w->all_below)
		chase(w);
	for (size_t i = 0; i < w->n; i++) {
		struct wish *wish = &w->wishes[i];

		/* We cannot say that there is none. */
		if (wish->n_alive == 0 && (is_shortage(r) || wish->last_ended))
			wish->n_alive = 1;
	}
	free(now.list);
	free(before.list);
}

static unsigned signal_prefix(const char *mark, bool limits, int signal)
{
	struct wish wish = prefix_wish(mark);
	const struct wanted w = {.wishes = &wish, .n = 1, .prefix = true, .limits = limits};

	if (!is_mark(mark))
		return 0;
	signal_wanted(&w, signal);
	return wish.n_alive;
}

unsigned tree_signal(const char *mark, bool prefix, int signal)
{
	struct tree_wish exact = {.mark = mark};

	if (prefix)
		return signal_prefix(mark, false, signal);
	tree_signal_many(&exact, 1, signal);
	return exact.n;
}

unsigned tree_signal_limited(const char *owner, int signal)
{
	return signal_prefix(owner, true, signal);
}

unsigned tree_signal_below(int signal)
{
	struct wish wish = {.limit = 0};
	const struct wanted w = {.wishes = &wish, .n = 1, .all_below = true};

	signal_wanted(&w, signal);
	return wish.n_alive;
}

static int by_limit(const void *a, const void *b)
{
	const struct wish *wa = a, *wb = b;

	return (wa->limit > wb->limit) - (wa->limit < wb->limit);
}

static size_t make_wishes(struct tree_wish *wishes, size_t n, struct wanted *w)
{
	size_t n_made = 0;

	w->below_only = atomic_load(&keeping);
	for (size_t i = 0; i < n; i++) {
		wishes[i].n = 0;
		if (!is_mark(wishes[i].mark))
			continue;
		w->below_only &= is_of_this_life(wishes[i].mark);
		w->wishes[n_made++] = (struct wish) {.mark = wishes[i].mark,
						     .limit = mark_limit(wishes[i].mark),
						     .told_group = wishes[i].told_group,
						     .whose = &wishes[i]};
	}
	qsort(w->wishes, n_made, sizeof(*w->wishes), by_limit);
	return n_made;
}

void tree_signal_many(struct tree_wish *wishes, size_t n, int signal)
{
	CLEANUP(freep) struct wish *list = calloc(n, sizeof(*list));
	struct wanted w = {.wishes = list};

	for (size_t i = 0; !list && i < n; i++)
		wishes[i].n = 1; /* we could not look */
	if (!list)
		return;
	w.n = make_wishes(wishes, n, &w);
	if (w.n > 0)
		signal_wanted(&w, signal);
	for (size_t i = 0; i < w.n; i++)
		list[i].whose->n = list[i].n_alive;
}

enum { ROUNDS_MAX = 200, PAUSE_MS = 5 };

unsigned sweep(const char *owner)
{
	unsigned n_limited = tree_signal_limited(owner, SIGKILL);
	unsigned n_groups = cgroup_sweep(owner);
	unsigned n = tree_signal(owner, true, SIGKILL);

	return n_groups + (n > n_limited ? n : n_limited);
}

unsigned sweep_all(const char *owner)
{
	const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
	unsigned n = 1;

	for (int i = 0; n > 0 && i < ROUNDS_MAX; i++) {
		n = sweep(owner);
		if (n > 0)
			nanosleep(&pause, NULL);
	}
	return n;
}
