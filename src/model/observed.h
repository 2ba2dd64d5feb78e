/*
 * A session of an agent that koined did not start, as the agent's hooks report it. Clients see it as a
 * session of kind "observed".
 */
#pragma once

#include <stdint.h>

#include "base/portrait.h"

struct observed {
	int64_t seq;       /* assigned by the store */
	struct text id;    /* the agent's own */
	struct text agent; /* "claude", "codex" … */
	struct text folder;
	struct text project; /* none: it has no folder */
	struct text query;   /* the beginning of what was asked first; may be empty */
	struct text host;    /* where it runs; none: no other host has this store */
	int64_t pid;         /* the agent's process there; 0: unknown */
	int64_t started;
	int64_t created_ms;
	int64_t active_ms; /* its last event */
	int64_t ended_ms;  /* 0: not yet */
	struct text reason;
	int64_t waiting; /* its approvals that wait, counted when it is read */
};

extern const struct portrait observed_portrait;
