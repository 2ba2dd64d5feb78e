/*
 * What handlers work with. One for the daemon; made before the first call and
 * ended after the last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/why.h"

struct approvals;
struct automation;
struct chat;
struct events;
struct jobs;
struct memories;
struct processes;
struct sessions;
struct store;
struct tasks;
struct tools;
struct trust;

/* How the store was found after a crash. */
struct store_health {
	bool checked;
	bool failed;
	char text[200];
};

struct services {
	struct store *store;
	struct memories *memories;     /* see memory.h */
	struct chat *chat;             /* NULL: not started; see chat.h */
	struct events *events;         /* see event.h */
	struct tasks *tasks;           /* see task.h */
	struct automation *automation; /* see automation.h */
	struct sessions *sessions;     /* see session.h */
	struct approvals *approvals;   /* see approval.h */
	struct tools *tools;           /* see tool.h */
	struct jobs *jobs;             /* see job.h */
	struct trust *trust;           /* see trust.h */
	struct processes *processes;   /* NULL: not allowed; see process.h */
	struct store_health health;
};

struct services_opts {
	const char *store;  /* "sqlite:PATH" */
	unsigned n_readers; /* as many as there are reader threads */
};

int services_open(const struct services_opts *opts, struct services **ret_services,
		  struct why *why);
void services_close(struct services *s); /* accepts NULL */

/* For the writer's thread: around a batch of calls, and around each of them.
 * What a call changed is seen by searches once the batch is committed. */
int services_begin(void *services);
int services_commit(void *services);
int services_enter(void *services);
int services_leave(void *services, bool keep);

/*
 * What is to be told of a batch that was just committed, as work whose `finished` shall come on
 * the loop behind those of the batch's calls; `run` does not come. For the writer's thread, after
 * services_commit. Whoever finds it ready may leave it: it goes with the next.
 */
struct work;
bool services_trails(const struct services *s);
struct work *services_trailer(struct services *s);

/* Copies the store into a new file, while it is in use. For a reader's thread. */
int services_backup(struct services *s, const char *path, struct why *why);

/* Why nothing can be written now, as -errno; 0: it can, as far as is known. Any thread. */
int services_failing(const struct services *s);

const char *services_store_path(const struct services *s);

/* From any thread: long work under way on readers' threads (backup, check) ends early. */
void services_stop(struct services *s);

/* After a crash the store wants to be looked through; on a reader's thread. */
bool services_need_check(const struct services *s);
void services_check(struct services *s, int lane, struct store_health *ret_health);

/* The loop's thread only. */
void services_set_health(struct services *s, const struct store_health *health);
const struct store_health *services_health(const struct services *s);
