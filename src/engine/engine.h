/*
 * What handlers work with. The daemon has one; it is made before the first call and closed
 * after the last.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct approvals;
struct automation;
struct chat;
struct events;
struct extracts;
struct jobs;
struct memories;
struct bridges;
struct node;
struct notify;
struct processes;
struct sessions;
struct store;
struct tasks;
struct tools;
struct trust;
struct page_sessions;

/* The condition of the store after a crash. */
struct store_health {
	bool checked;
	bool failed;
	char text[ERROR_TEXT_MAX];
};

struct engine {
	struct store *store;
	const char *owner; /* prefix of the marks of all programs that belong to the store */
	struct node *node; /* NULL: only one koined can use the store; see node.h */
	struct memories *memories;           /* see memory.h */
	struct chat *chat;                   /* NULL: not started; see chat.h */
	struct events *events;               /* see event.h */
	struct tasks *tasks;                 /* see task.h */
	struct automation *automation;       /* see automation.h */
	struct sessions *sessions;           /* see session.h */
	struct approvals *approvals;         /* see approval.h */
	struct bridges *bridges;             /* NULL: not started; see bridge.h */
	struct tools *tools;                 /* see tool.h */
	struct notify *notify;               /* see notify.h */
	struct jobs *jobs;                   /* see job.h */
	struct trust *trust;                 /* see trust.h */
	struct extracts *extracts;           /* NULL: off; see extract.h */
	struct processes *processes;         /* NULL: not allowed; see process.h */
	struct page_sessions *page_sessions; /* see page session.h */
	struct store_health health;
	unsigned n_invalid_rules; /* rules of the settings that are skipped */
};

struct engine_opts {
	const char *store;    /* its URL */
	const char *host;     /* this one's name, if others may share the store */
	unsigned n_readers;   /* the number of reader threads */
	const char *accepted; /* as in struct store_opts */
};

int engine_open(const struct engine_opts *opts, struct engine **ret_engine, struct error *error);
void engine_close(struct engine *s); /* accepts NULL */

/* Runs on the writer's thread: around a batch of calls, and around each of them. Searches see
 * what a call changed once the batch is committed. */
int engine_begin(void *engine);
int engine_commit(void *engine);
int engine_enter(void *engine);
int engine_leave(void *engine, bool keep);

/*
 * The events of a batch that was just committed, as work whose `finished` must be called on
 * the loop after those of the batch's calls; `run` is not called. Runs on the writer's thread,
 * after engine_commit. A caller that finds it ready may leave it: it goes with the next one.
 */
struct work;
bool engine_trails(const struct engine *s);
struct work *engine_trailer(struct engine *s);

/* Copies the store into a new file, while it is in use. Runs on a reader's thread. */
int engine_backup(struct engine *s, const char *path, struct error *error);

/* Why nothing can be written now; NULL if writing works, as far as is known. Any thread may call it. */
const char *engine_failing(const struct engine *s);

/* Why this daemon is not healthy: nothing can be written, the hosts' database does not answer, or this host has
 * no lease. NULL if it is. */
const char *engine_ailing(const struct engine *s);

/* Programs that were started and have not ended, whoever wanted them. Any thread may call it. */
unsigned engine_children(void);

const char *engine_store_path(const struct engine *s);

/* Runs on the writer's thread. Returns a little of what was deleted to the file system. */
int engine_shrink(struct engine *s, bool *ret_more);
/* Whether it can. Any thread may call it. */
bool engine_shrinks(const struct engine *s);

/* Any thread may call it: long work on readers' threads (backup, check) ends early. */
void engine_stop(struct engine *s);

/* After a crash the store needs a check, which runs on a reader's thread. */
bool engine_need_check(const struct engine *s);
void engine_check(struct engine *s, int lane, struct store_health *ret_health);

/* Only for the loop's thread. */
void engine_set_health(struct engine *s, const struct store_health *health);
const struct store_health *engine_health(const struct engine *s);
