/* A task: a prompt that an agent works on. Its schema says how its members are stored and
 * shown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/schema.h"

/* From TASK_COMPLETED on it has ended. The store keeps the numbers. */
enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };

enum { N_TASK_STATES = 5 };

/* Why a queued task does not run yet, as the loop of this host decides it. */
enum task_wait {
	WAIT_NONE,  /* it is not queued, or starts at once */
	WAIT_AFTER, /* for the dependency `on`, and `more` others */
	WAIT_UNTIL, /* for a time */
	WAIT_GROUP, /* the group `on` runs as many as it may */
	WAIT_PROJECT,
	WAIT_PARALLEL,
	WAIT_HOST,        /* for the host `on`, which is alive */
	WAIT_NO_HOST,     /* the host `on` is not alive */
	WAIT_LABEL,       /* for a host with the label `on` */
	WAIT_NO_LABEL,    /* no host that is alive has the label `on` */
	WAIT_RELEASE,     /* it is held */
	WAIT_ENQUEUE,     /* it is stashed */
	WAIT_PAUSE,       /* all tasks are paused */
	WAIT_GROUP_PAUSE, /* the group `on` is paused */
	WAIT_DRAIN,       /* koined starts nothing more before its stop */
	WAIT_STORE,       /* nothing can be stored, or another host may have taken over */
	WAIT_UNSERVED,    /* koined does not serve its project */
	N_TASK_WAITS,
};

struct task_waits {
	enum task_wait reason;
	struct text on;
	unsigned more;
	int64_t until_ms;
};

struct task {
	int64_t seq;         /* orders all tasks; assigned by the store */
	struct text project; /* a folder; "": no project */
	struct text id;      /* unique within its project */
	struct text prompt;
	struct packed command; /* an array of words: a program runs it, no agent; {NULL, 0}: none */
	struct text agent;     /* as the client named it */
	double priority;
	enum task_state state;
	int64_t created_ms;
	int64_t started_ms;
	int64_t completed_ms;
	int64_t pid;
	int64_t pid_started; /* when it started: tells it from another with that pid */
	struct text mark;    /* marks its processes, in their environment */
	struct text result;
	struct text error;
	/* The dependency that did not complete, if the task failed without a run because of it. */
	struct text skipped;
	int64_t exit_status;
	int64_t signal;
	int64_t output_bytes; /* in its file */
	struct packed metadata;
	struct text group;
	struct text label;  /* a short name that its user gave it */
	struct text runner; /* the configured agent that runs it; none: the default */
	struct text cwd;    /* none: the project's folder */
	struct text env;    /* "NAME=VALUE", each NUL-terminated */
	int64_t timeout_ms; /* for one attempt */
	int64_t attempts;   /* attempts started */
	int64_t stops;      /* those of them that our own stop ended: they do not count */
	int64_t max_attempts;
	int64_t retry_ms;      /* before the second attempt; doubles each time */
	int64_t not_before_ms; /* 0: immediately */
	bool held;             /* somebody else brought it: it starts once it is released */
	bool stashed;          /* its user keeps it back: it starts once it is enqueued */
	bool paused;           /* not stored: it is queued, and all tasks or its group are paused */
	struct task_waits waits; /* not stored */
	struct texts after;      /* ids in the same project that must be completed first */
	/* Where hosts share a store: */
	int64_t version; /* grows with every change of the row */
	int64_t epoch;   /* the life of a host that runs it; 0: none does */
	bool cancel;     /* somebody wants it cancelled; whoever runs it has to do that */
	struct text
		host; /* the one that runs it, or did so last; none: it waits, or is no other's */
	struct text on_host;  /* only this one may run it; none: any */
	struct text on_label; /* only one that has this label; none: any */
};

/* Flags of its members, in addition to those that all nouns share. */
enum {
	TASK_LONG = MEMBER_OWN,          /* may be long; only light tasks keep it in memory */
	TASK_ENDS = MEMBER_OWN << 1,     /* its state or result */
	TASK_UNLISTED = MEMBER_OWN << 2, /* not read for lists */
	TASK_BULKY = MEMBER_OWN << 3,    /* not read for brief lists */
	TASK_EDITED = MEMBER_OWN << 4,   /* its user may change it until it begins */
};

extern const struct schema task_schema;

/* How many tasks of one project or group are in each state. */
struct task_tally {
	struct text name;
	int64_t n[N_TASK_STATES];
};

/* How many attempts count. */
static inline int64_t task_tries(const struct task *task)
{
	return task->attempts - task->stops;
}

const char *task_state_name(enum task_state state);
bool task_state_parse(struct text t, enum task_state *ret_state);

/* "task-0007", whether there is such a task or not. */
bool task_is_id(struct text text);

/* Which failed tasks a list has. A skipped task is a failed one with `skipped` set. */
enum task_skips { SKIPS_TOO, SKIPS_ONLY, SKIPS_NOT };

/* The state as koine's own methods show it: "skipped" in place of "failed" for a skipped task. */
const char *task_word(const struct task *task);
/* The same word as a filter. */
bool task_word_parse(struct text t, enum task_state *ret_state, enum task_skips *ret_skips);
