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

struct engine {
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

struct engine_opts {
	const char *store;  /* "sqlite:PATH" */
	unsigned n_readers; /* as many as there are reader threads */
};

int engine_open(const struct engine_opts *opts, struct engine **ret_engine, struct why *why);
void engine_close(struct engine *s); /* accepts NULL */

/* For the writer's thread: around a batch of calls, and around each of them.
 * What a call changed is seen by searches once the batch is committed. */
int engine_begin(void *engine);
int engine_commit(void *engine);
int engine_enter(void *engine);
int engine_leave(void *engine, bool keep);

/*
 * What is to be told of a batch that was just committed, as work whose `finished` shall come on
 * the loop behind those of the batch's calls; `run` does not come. For the writer's thread, after
 * engine_commit. Whoever finds it ready may leave it: it goes with the next.
 */
struct work;
bool engine_trails(const struct engine *s);
struct work *engine_trailer(struct engine *s);

/* Copies the store into a new file, while it is in use. For a reader's thread. */
int engine_backup(struct engine *s, const char *path, struct why *why);

/* Why nothing can be written now, as -errno; 0: it can, as far as is known. Any thread. */
int engine_failing(const struct engine *s);

const char *engine_store_path(const struct engine *s);

/* From any thread: long work under way on readers' threads (backup, check) ends early. */
void engine_stop(struct engine *s);

/* After a crash the store wants to be looked through; on a reader's thread. */
bool engine_need_check(const struct engine *s);
void engine_check(struct engine *s, int lane, struct store_health *ret_health);

/* The loop's thread only. */
void engine_set_health(struct engine *s, const struct store_health *health);
const struct store_health *engine_health(const struct engine *s);
