/*
 * A session: a run of an agent over a conversation; and what it said, as events in order. Their
 * portraits say how their members are kept and shown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/portrait.h"

/* From SESSION_COMPLETED on it is at its end. The store keeps the numbers of all these enums. */
enum session_status {
	SESSION_STARTING,
	SESSION_RUNNING,
	SESSION_WAITING,    /* for a human's decision */
	SESSION_COMPLETING, /* it was told to end */
	SESSION_COMPLETED,
	SESSION_FAILED,
	SESSION_INTERRUPTED,
	N_SESSION_STATUSES,
};

struct session {
	int64_t seq; /* orders all of them; given by the store */
	struct text id;
	struct text run; /* its run id; unique */
	struct text parent;
	struct text agent_session; /* the agent's own id; none: not known yet */
	struct text query;
	struct text summary;
	struct text title; /* given by people */
	struct text model; /* none: the agent's own */
	struct text working_dir;
	struct text runner; /* "claude", or an agent of the settings */
	struct packed config;
	struct text mark; /* what its processes carry */
	enum session_status status;
	bool archived;
	int64_t created_ms;
	int64_t active_ms; /* when anything last happened */
	int64_t ended_ms;  /* 0: not yet */
	struct text result;
	struct text error;
	double cost_usd;      /* < 0: not known */
	int64_t input_tokens; /* -1: not known; so are these */
	int64_t output_tokens;
	int64_t duration_ms;
	int64_t turns;
};

enum {
	SESSION_BESIDE = MEMBER_OWN,    /* in a table of its own */
	SESSION_LONG = MEMBER_OWN << 1, /* lists have its beginning */
};

extern const struct portrait session_portrait;

/* "starting", "running", "waiting_input", "completing", "completed", "failed", "interrupted" */
const char *session_status_name(enum session_status status);
bool session_status_parse(struct text t, enum session_status *ret_status);

/* Which are listed. */
enum session_archived { ARCHIVED_ANY, ARCHIVED_NO, ARCHIVED_ONLY };

/* A folder that sessions ran in. */
struct session_path {
	struct text path;
	int64_t used_ms;
	int64_t n;
};

/* ---- what it said ---- */

enum session_event_type {
	SESSION_MESSAGE,
	SESSION_TOOL_CALL,
	SESSION_TOOL_RESULT,
	SESSION_SYSTEM,
	SESSION_RAW, /* a line that nobody understood */
	N_SESSION_EVENT_TYPES,
};

/* How a tool call stands with the humans. */
enum session_approval {
	SESSION_APPROVAL_NONE,
	SESSION_APPROVAL_PENDING,
	SESSION_APPROVAL_APPROVED,
	SESSION_APPROVAL_DENIED,
	SESSION_APPROVAL_RESOLVED, /* nobody decided in time, or it was withdrawn */
	N_SESSION_APPROVALS,
};

struct session_event {
	int64_t id; /* grows over all sessions; given by the store */
	struct text session;
	struct text agent_session;
	int64_t sequence; /* from 1 within an agent's session; given */
	enum session_event_type type;
	int64_t created_ms;
	struct text role;    /* none; so are those that follow */
	struct text content; /* of a message, a system event, a tool's result, a raw line */
	struct text tool_id; /* of a call, or the call that this is the result of */
	struct text tool_name;
	struct packed tool_input;
	struct text parent_tool; /* the call that an agent below spoke for */
	bool completed;          /* a call whose result has come */
	enum session_approval approval;
	struct text approval_id;
};

enum {
	SESSION_EVENT_HEAD = MEMBER_OWN,         /* shown before what was said */
	SESSION_EVENT_TAIL = MEMBER_OWN << 1,    /* ... and behind it */
	SESSION_EVENT_SESSION = MEMBER_OWN << 2, /* the store has its number */
	SESSION_EVENT_OF_CALL = MEMBER_OWN << 3, /* of a tool call alone */
};

extern const struct portrait session_event_portrait;

const char *session_event_type_name(enum session_event_type type);
/* NULL for none. */
const char *session_approval_name(enum session_approval approval);
