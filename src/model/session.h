/*
 * A session: a run of an agent over a conversation, and what it said, as events in order.
 * Their schemas say how their members are stored and shown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/schema.h"

/* From SESSION_COMPLETED on it has ended. The store keeps the numbers of all these enums. */
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

enum session_kind {
	SESSION_RUN,      /* koined started it */
	SESSION_OBSERVED, /* its agent's hooks report it; see struct observed */
	N_SESSION_KINDS,
};

struct session {
	int64_t seq; /* orders all sessions; assigned by the store */
	struct text id;
	struct text run; /* its run id; unique */
	struct text parent;
	struct text agent_session; /* the agent's own id; none: not yet known */
	struct text query;
	struct text summary;
	struct text title; /* given by users */
	struct text model; /* none: the agent's own */
	struct text working_dir;
	struct text runner; /* a program, or an agent of the settings */
	struct packed config;
	struct text mark; /* marks its processes */
	struct text host; /* where it runs, or ran; none: no other host has this store */
	int64_t epoch;    /* of the host's life that runs it; 0: none */
	enum session_status status;
	bool archived;
	int64_t created_ms;
	int64_t active_ms; /* last activity */
	int64_t ended_ms;  /* 0: not yet */
	struct text result;
	struct text error;
	double cost_usd;      /* < 0: unknown */
	int64_t input_tokens; /* -1: unknown; the same goes for the following */
	int64_t output_tokens;
	int64_t duration_ms;
	int64_t turns;
	/* Not stored: of an observed one. */
	enum session_kind kind;
	struct text project;
	int64_t waiting; /* its approvals that wait */
};

enum {
	SESSION_BESIDE = MEMBER_OWN,    /* in a table of its own */
	SESSION_LONG = MEMBER_OWN << 1, /* lists have only its beginning */
};

extern const struct schema session_schema;

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
	SESSION_RAW, /* a line that we could not parse */
	SESSION_THINKING,
	N_SESSION_EVENT_TYPES,
};

/* Where a tool call is in its approval. */
enum session_approval {
	SESSION_APPROVAL_NONE,
	SESSION_APPROVAL_PENDING,
	SESSION_APPROVAL_APPROVED,
	SESSION_APPROVAL_DENIED,
	SESSION_APPROVAL_RESOLVED, /* nobody decided in time, or it was withdrawn */
	N_SESSION_APPROVALS,
};

struct session_event {
	int64_t id; /* grows over all sessions; assigned by the store */
	struct text session;
	struct text agent_session;
	int64_t sequence; /* from 1 within an agent's session; assigned */
	enum session_event_type type;
	int64_t created_ms;
	struct text role;    /* may be none, like the following */
	struct text content; /* of all but a call */
	struct text tool_id; /* of a call, or the call that this is the result of */
	struct text tool_name;
	struct packed tool_input;
	struct text parent_tool; /* the call that a subagent spoke for */
	bool completed;          /* a call whose result has arrived */
	enum session_approval approval;
	struct text approval_id;
};

enum {
	SESSION_EVENT_HEAD = MEMBER_OWN,         /* shown before what was said */
	SESSION_EVENT_TAIL = MEMBER_OWN << 1,    /* ... and after it */
	SESSION_EVENT_SESSION = MEMBER_OWN << 2, /* the store has its number instead */
	SESSION_EVENT_OF_CALL = MEMBER_OWN << 3, /* only for tool calls */
};

extern const struct schema session_event_schema;

extern const char *const session_event_type_names[N_SESSION_EVENT_TYPES];
const char *session_event_type_name(enum session_event_type type);

/*
 * A session of an agent that koined did not start, as the agent's hooks report it. Clients see it as a
 * session of kind "observed".
 */

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

extern const struct schema observed_schema;
