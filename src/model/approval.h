/*
 * An approval: what an agent asks a human, and what was decided. A grant: what was decided
 * beforehand. Their schemas say how their members are stored and shown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/schema.h"

/* The store keeps these numbers. */
enum approval_kind {
	APPROVAL_FUNCTION, /* may this tool be called? */
	APPROVAL_CONTACT,  /* a question for a human */
	N_APPROVAL_KINDS,
};

enum approval_status {
	APPROVAL_PENDING,
	APPROVAL_APPROVED,
	APPROVAL_DENIED,
	APPROVAL_RESPONDED,
	APPROVAL_EXPIRED,    /* nobody answered in time */
	APPROVAL_SUPERSEDED, /* withdrawn, or no longer needed */
	N_APPROVAL_STATUSES,
};

/* What a pending approval ends with. The store keeps these numbers. */
enum approval_bond {
	BOND_NONE,
	/* The connection that asked. A restart ends it, too. */
	BOND_CONNECTION,
	/* The process that asked. After a restart it asks again with the same id. */
	BOND_PROCESS,
};

struct approval {
	int64_t seq; /* assigned by the store */
	struct text id;
	/* Ours, or the asker's own; none: unspecified. The same goes for the following. */
	struct text session;
	struct text run;
	struct text agent;  /* who asks: "claude", "codex", a rule … */
	struct text origin; /* the asker's own name for where it is (its session id, a folder) */
	struct text tool_use_id;
	enum approval_kind kind;
	struct text tool;    /* or the subject of a question */
	struct packed input; /* the tool's input, or for a question {"msg", …} */
	int64_t event_id;    /* the session event that it is tied to; 0: none */
	enum approval_status status;
	struct text comment;    /* from the human: a reason, an answer */
	struct text decided_by; /* "human", "policy:NAME", "grant:ID", a client's name */
	int64_t created_ms;
	int64_t deadline_ms; /* 0: none */
	int64_t decided_ms;  /* 0: not yet */
	/* Where it was asked, and the process that speaks for the asker there: its pid, and when it
	 * started. */
	struct text host;  /* none: no other host has this store */
	int64_t asker_pid; /* 0: unknown */
	int64_t asker_started;
	int64_t bond; /* enum approval_bond */
	/* The process that asked on the asker's behalf and waits, such as koine hook. */
	int64_t waiter_pid;     /* 0: unknown */
	int64_t waiter_started; /* of an unknown process: a negative number that no other has */
	/* The process that decided. */
	bool decider_known; /* its uid is known */
	int64_t decider_uid;
	int64_t decider_pid;          /* 0: unknown */
	struct text decider_program;  /* its file */
	struct text decider_terminal; /* "pts/3" */
};

enum {
	APPROVAL_HEAD = MEMBER_OWN,         /* shown before its input */
	APPROVAL_INPUT = MEMBER_OWN << 1,   /* which may be large */
	APPROVAL_ENDS = MEMBER_OWN << 2,    /* reported to those who wait for the decision */
	APPROVAL_DECIDER = MEMBER_OWN << 3, /* absent until it is decided */
};

extern const struct schema approval_schema;

/* "function_call", "human_contact" */
extern const char *const approval_kind_names[N_APPROVAL_KINDS];
const char *approval_kind_name(enum approval_kind kind);
bool approval_kind_parse(struct text t, enum approval_kind *ret_kind);
/* "pending", "approved", "denied", "responded", "expired", "superseded" */
extern const char *const approval_status_names[N_APPROVAL_STATUSES];
const char *approval_status_name(enum approval_status status);
bool approval_status_parse(struct text t, enum approval_status *ret_status);

enum grant_verdict { GRANT_ALLOWS, GRANT_DENIES };

struct grant {
	struct text id;
	enum grant_verdict verdict;
	struct text session; /* none: any; the same goes for the following */
	struct text agent;
	struct text tool;    /* a pattern */
	struct text pattern; /* matched against the input */
	struct text comment;
	int64_t created_ms;
	int64_t expires_ms; /* 0: never */
	int64_t uses;       /* uses left; -1: unlimited */
};

extern const struct schema grant_schema;
