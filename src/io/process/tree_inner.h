/* Inside io/process/tree: what is searched for in /proc, and what was seen there. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/process/tree.h"

/* One mark, and who was seen to belong to it. */
struct wish {
	const char *mark;
	uint64_t limit;   /* that carries the mark */
	pid_t told_group; /* its members need no signal; 0: none */
	unsigned n_alive;
	/* The highest pid of a process that carried the mark and ended, but is not reaped yet;
	 * 0: none. */
	pid_t last_ended;
	struct tree_wish *whose;
};

/* What one search is for. */
struct wanted {
	struct wish *wishes; /* by limit */
	size_t n;
	bool prefix;     /* there is one wish, for all marks that begin so */
	bool limits;     /* no environment is read */
	bool all_below;  /* there is one wish, for all that are below us */
	bool below_only; /* of this run of the daemon, which the keeper holds together */
};

struct process {
	pid_t pid;
	pid_t parent;
	pid_t group;
	long long started;
	bool dead;  /* a zombie, and none of its threads runs */
	bool below; /* us */
	bool told;  /* it has got the signal with its group */
	/* While they are looked at. Numbers of other processes, or NONE. */
	bool settled;
	size_t wish;  /* that it carries */
	size_t chain; /* the nearest above it, or itself, that carries a wish */
	size_t above; /* and from there, the nearest with another wish */
};

struct processes {
	struct process *list; /* by pid */
	size_t n;
	size_t cap;
};

#define NONE SIZE_MAX

/* The limit that carries a mark; the part of one that names the owner. */
uint64_t mark_limit(const char *mark);
uint64_t owner_limit(const char *owner);
uint64_t owner_part(uint64_t limit);

/* Of this process; 0: none of ours. */
uint64_t limit_of(pid_t pid);

/* The first of the wishes that has this limit; NONE. */
size_t wish_find(const struct wanted *w, uint64_t limit);

/* The wish that the process carries. */
size_t wish_carried(const struct wanted *w, pid_t pid);

/* Not "there is none", but "we could not look". */
static inline bool is_shortage(int r)
{
	return r == -ENOMEM || r == -EMFILE || r == -ENFILE;
}

/* Ourselves, or who is spared. */
bool is_spared(pid_t pid);

struct process *tree_find(const struct processes *all, pid_t pid);

/* All that there are, until fn returns something else than 0. */
int each_pid(int (*fn)(void *arg, pid_t pid), void *arg);

/* Reads all of /proc. Keeps only those that belong to a wish, and counts them there; after a
 * failure, none. */
int tree_look(const struct wanted *w, struct processes *ret);
