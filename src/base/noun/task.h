/* A task: a prompt that an agent works on. Its portrait says how its members are stored and
 * shown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/portrait.h"

/* From TASK_COMPLETED on it has ended. The store keeps the numbers. */
enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_COMPLETED, TASK_FAILED, TASK_CANCELLED };

enum { N_TASK_STATES = 5 };

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
	int64_t max_attempts;
	int64_t retry_ms;      /* before the second attempt; doubles each time */
	int64_t not_before_ms; /* 0: immediately */
	bool held;             /* somebody else brought it: it starts once it is released */
	bool stashed;          /* its user keeps it back: it starts once it is enqueued */
	bool paused;           /* not stored: it is queued, and all tasks or its group are paused */
	struct texts after;    /* ids in the same project that must be completed first */
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

extern const struct portrait task_portrait;

/* How many tasks of one project or group are in each state. */
struct task_tally {
	struct text name;
	int64_t n[N_TASK_STATES];
};

const char *task_state_name(enum task_state state);
bool task_state_parse(struct text t, enum task_state *ret_state);
