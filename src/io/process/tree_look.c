/* One look at all processes of the machine: who belongs to whom. */
#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/process/inner.h"
#include "io/process/lineage.h"

enum {
	ENVIRON_CHUNK = 32 * 1024,
	N_PROCESSES_MAX = 1 << 22, /* the kernel's own limit */
};

static atomic_ulong n_looks;

unsigned long tree_n_looks(void)
{
	return atomic_load(&n_looks);
}

/* ---- one process ---- */

long long tree_started(pid_t pid)
{
	struct process_seen seen;

	return process_see(pid, &seen) ? seen.started : 0;
}

/* ---- whose mark it carries ---- */

size_t wish_find(const struct wanted *w, uint64_t limit)
{
	size_t from = 0, to = w->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (w->wishes[middle].limit < limit)
			from = middle + 1;
		else
			to = middle;
	}
	return from < w->n && w->wishes[from].limit == limit ? from : NONE;
}

/* A mark as it stands in an environment: `len` bytes, and whether it ends there. */
static size_t wish_named(const struct wanted *w, const char *mark, size_t len, bool ends)
{
	char name[TREE_MARK_MAX];
	size_t i;

	if (w->prefix) {
		size_t n = strlen(w->wishes[0].mark);

		return len >= n && memcmp(mark, w->wishes[0].mark, n) == 0 ? 0 : NONE;
	}
	if (!ends || len >= sizeof(name))
		return NONE;
	memcpy(name, mark, len);
	name[len] = '\0';
	i = wish_find(w, mark_limit(name));
	for (size_t k = i; k < w->n && w->wishes[k].limit == w->wishes[i].limit; k++) {
		if (strcmp(w->wishes[k].mark, name) == 0)
			return i;
	}
	return NONE;
}

static const char variable[] = "\0" TREE_VARIABLE "=";
enum { VARIABLE_LEN = sizeof(variable) - 1 };

/* In a piece of an environment. *ret_from: where the next look must begin, since a mark there may
 * not be whole yet. */
static size_t wish_in(const struct wanted *w, const char *data, size_t len, bool last,
		      size_t *ret_from)
{
	const char *at = data, *end = data + len, *hit;

	while ((hit = memmem(at, (size_t)(end - at), variable, VARIABLE_LEN))) {
		const char *mark = hit + VARIABLE_LEN;
		size_t n = strnlen(mark, (size_t)(end - mark));
		size_t wish;

		if (mark + n == end && n < TREE_MARK_MAX && !last) {
			*ret_from = (size_t)(hit - data);
			return NONE;
		}
		wish = wish_named(w, mark, n, mark + n < end);
		if (wish != NONE)
			return wish;
		at = mark;
	}
	*ret_from = len < VARIABLE_LEN ? 0 : len - (VARIABLE_LEN - 1);
	if (*ret_from < (size_t)(at - data))
		*ret_from = (size_t)(at - data);
	return NONE;
}

static size_t environ_carries(const struct wanted *w, pid_t pid)
{
	CLEANUP(closep) int fd = process_open(pid, "environ");
	/* The end of one piece stays before the next; at first, the NUL that precedes a name. */
	char data[ENVIRON_CHUNK + VARIABLE_LEN + TREE_MARK_MAX];
	size_t len = 1, from = 0, wish = NONE;
	ssize_t n = 1;

	data[0] = '\0';
	while (fd >= 0 && n > 0 && wish == NONE) {
		n = read(fd, data + len, ENVIRON_CHUNK);
		len += n > 0 ? (size_t)n : 0;
		wish = wish_in(w, data, len, n <= 0, &from);
		len -= from;
		memmove(data, data + from, len);
	}
	return wish;
}

size_t wish_carried(const struct wanted *w, pid_t pid)
{
	uint64_t limit = limit_of(pid);
	size_t wish = wish_find(w, w->prefix ? owner_part(limit) : limit);

	/* Another mark's; only a prefix may be shorter than the owner. */
	if (wish != NONE || w->limits || (limit != 0 && !w->prefix))
		return wish;
	return environ_carries(w, pid);
}

/* ---- all of them ---- */

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

struct process *tree_find(const struct processes *all, pid_t pid)
{
	struct process key = {.pid = pid};

	return all->n ? bsearch(&key, all->list, all->n, sizeof(key), by_pid) : NULL;
}

int each_pid(int (*fn)(void *arg, pid_t pid), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (d = readdir(dir))) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid > 0)
			r = fn(arg, pid);
	}
	closedir(dir);
	return r;
}

/* A process whose first thread has ended looks like a zombie though others of it run. */
static int read_one(void *all, pid_t pid)
{
	struct process_seen seen;
	int r = process_read(pid, &seen);

	if (r != 0)
		return is_shortage(r) ? r : 0; /* gone, or hidden from us */
	return add_process(all, &(struct process) {
					.pid = pid,
					.parent = seen.parent,
					.group = seen.group,
					.started = seen.started,
					.dead = seen.ended && seen.n_threads <= 1,
					.wish = NONE,
					.chain = NONE,
					.above = NONE,
				});
}

static int tree_look_read_all(struct processes *all)
{
	int r = each_pid(read_one, all);

	atomic_fetch_add(&n_looks, 1);
	if (all->n > 0)
		qsort(all->list, all->n, sizeof(*all->list), by_pid);
	return r;
}

/*
 * A process that forks and exits, again and again, has another pid whenever we look, and is
 * never there. But its former selves came to us, and are not reaped while we look.
 */
static void note_ended(const struct wanted *w, const struct process *p)
{
	uint64_t limit;
	size_t i;

	if (p->parent != getpid())
		return;
	limit = limit_of(p->pid);
	i = w->all_below ? 0 : wish_find(w, w->prefix ? owner_part(limit) : limit);
	if (i != NONE && p->pid > w->wishes[i].last_ended)
		w->wishes[i].last_ended = p->pid;
}

/* Its parent `up` is settled, if it was seen. */
static void tree_look_settle(const struct wanted *w, struct processes *all, size_t i)
{
	struct process *p = &all->list[i];
	const struct process *up = tree_find(all, p->parent);

	if (is_spared(p->pid))
		return;
	p->below = up && (up->below || up->pid == getpid());
	p->chain = up ? up->chain : NONE;
	if (p->dead) {
		note_ended(w, p);
		return;
	}
	if (w->all_below || (w->below_only && !p->below))
		return;
	p->wish = wish_carried(w, p->pid);
	if (p->wish == NONE || (p->chain != NONE && all->list[p->chain].wish == p->wish))
		return;
	p->above = p->chain;
	p->chain = i;
}

/* Those above it first, and none twice: pids that were reused while we read could make a circle. */
static void settle_from_above(const struct wanted *w, struct processes *all, size_t i, size_t *path)
{
	struct process *p = &all->list[i];
	size_t n = 0;

	while (p && !p->settled) {
		p->settled = true;
		path[n++] = (size_t)(p - all->list);
		p = tree_find(all, p->parent);
	}
	while (n > 0)
		tree_look_settle(w, all, path[--n]);
}

/* It belongs to the wishes of all in its chain, and to others with the same limit. */
static void tree_look_count(const struct wanted *w, const struct processes *all, struct process *p)
{
	if (w->all_below)
		w->wishes[0].n_alive++;
	for (size_t c = p->chain; c != NONE; c = all->list[c].above) {
		size_t first = all->list[c].wish;

		for (size_t i = first; i < w->n && w->wishes[i].limit == w->wishes[first].limit;
		     i++) {
			w->wishes[i].n_alive++;
			p->told |= w->wishes[i].told_group == p->group;
		}
	}
}

static void keep_those_wanted(const struct wanted *w, struct processes *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct process *p = &all->list[i];

		p->settled = !p->dead && !is_spared(p->pid) &&
			     (w->all_below ? p->below : p->chain != NONE);
		if (p->settled)
			tree_look_count(w, all, p);
	}
	for (size_t i = 0; i < all->n; i++) {
		if (all->list[i].settled)
			all->list[n++] = all->list[i];
	}
	all->n = n;
}

int tree_look(const struct wanted *w, struct processes *ret)
{
	CLEANUP(freep) size_t *path = NULL;
	int r = tree_look_read_all(ret);

	for (size_t i = 0; i < w->n; i++)
		w->wishes[i].n_alive = 0, w->wishes[i].last_ended = 0;
	if (r == 0 && ret->n > 0) {
		path = calloc(ret->n, sizeof(*path));
		r = path ? 0 : -ENOMEM;
	}
	if (r != 0) {
		ret->n = 0;
		return r;
	}
	for (size_t i = 0; i < ret->n; i++)
		settle_from_above(w, ret, i, path);
	keep_those_wanted(w, ret);
	return 0;
}
