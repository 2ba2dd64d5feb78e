/*
 * Approvals in the store, and the grants that answer some of them beforehand.
 *
 * What changes something takes the writer's connection, inside a batch. Rows that are found are
 * copied into the arena.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

struct connection;

enum approval_kind {
	APPROVAL_FUNCTION, /* may this tool be called? */
	APPROVAL_CONTACT,  /* a question for a human */
};

enum approval_status {
	APPROVAL_PENDING,
	APPROVAL_APPROVED,
	APPROVAL_DENIED,
	APPROVAL_RESPONDED,
	APPROVAL_EXPIRED,    /* nobody answered in time */
	APPROVAL_SUPERSEDED, /* withdrawn, or of no use any more */
	N_APPROVAL_STATUSES,
};

struct approval_row {
	int64_t seq; /* given */
	struct text id;
	struct text
		session; /* ours, or the asker's own; {NULL, 0}: none; so with those that follow */
	struct text run;
	struct text agent;  /* who asks: "claude", "codex", a rule … */
	struct text origin; /* the asker's own name for where it is (its session id, a folder) */
	struct text tool_use_id;
	enum approval_kind kind;
	struct text tool; /* or the subject of a question */
	struct text
		input; /* packed: the tool's input, or of a question {"msg", …}; not looked into */
	int64_t event_id; /* the session's event that it is tied to; 0: none */
	enum approval_status status;
	struct text comment;    /* the human's: a reason, an answer */
	struct text decided_by; /* "human", "policy:NAME", "grant:ID", a client's name */
	int64_t created_ms;
	int64_t deadline_ms; /* 0: none */
	int64_t decided_ms;  /* 0: not yet */
	/* The process that speaks for whoever asks: its number, and when it began. */
	int64_t asker_pid; /* 0: not known */
	int64_t asker_started;
	/* The process that decided. */
	bool decider_known; /* its uid is */
	int64_t decider_uid;
	int64_t decider_pid;          /* 0: not known */
	struct text decider_program;  /* its file */
	struct text decider_terminal; /* "pts/3"; {NULL, 0}: none */
};

/* All of row but seq. -EEXIST when the id is taken. */
int store_approval_add(struct connection *c, const struct approval_row *row, int64_t *ret_seq);

/* Takes row->id from pending to how row says: status, comment, decided_*, decider_*. *ret_done
 * false: somebody was quicker, or there is none. */
int store_approval_decide(struct connection *c, const struct approval_row *row, bool *ret_done);

/* A session of {NULL, 0} leaves the one that is there. An approval that is gone stays so. */
int store_approval_tie(struct connection *c, int64_t seq, struct text session, int64_t event_id);

int store_approval_find(struct connection *c, struct text id, struct arena *arena,
			struct approval_row *ret_row, bool *ret_found);

/* The ids that begin so, for people who type the first characters, of all or of those that wait.
 * *ret_n: how many, 2 for more; "" begins none. */
int store_approval_find_short(struct connection *c, struct text prefix, bool waiting,
			      struct arena *arena, struct text ret_ids[2], unsigned *ret_n);

struct store_approval_query {
	int status;          /* enum approval_status, or -1: any */
	struct text session; /* data NULL: any */
	struct text run;     /* data NULL: any */
	int64_t after_seq;   /* newest first: those before it; 0: from the end */
	bool oldest_first;   /* then: those behind it; 0: from the first */
	unsigned limit;      /* 0: any number */
	size_t max_bytes;    /* of text in all rows, but never none of them; 0: any */
};

int store_approval_list(struct connection *c, const struct store_approval_query *q,
			struct arena *arena, struct approval_row **ret_rows, unsigned *ret_n);

/* The newest, decided or not, of the run (or session) and tool that is tied to no event and was made at
 * `since_ms` or later; with a tool_use_id on both sides, they must be equal, and such a one
 * comes first. */
int store_approval_untied(struct connection *c, struct text run, struct text tool,
			  struct text tool_use_id, int64_t since_ms, struct arena *arena,
			  struct approval_row *ret_row, bool *ret_found);

/* Whether this process has ever asked for one that is still kept. */
int store_approval_has_asked(struct connection *c, int64_t pid, int64_t started, bool *ret_has);

/* Deletes up to `limit` that were decided before then. */
int store_approval_sweep(struct connection *c, int64_t before_ms, unsigned limit, unsigned *ret_n);

/* ---- grants ---- */

struct grant_row {
	struct text id;
	struct text session; /* {NULL, 0}: any */
	struct text agent;   /* {NULL, 0}: any */
	struct text tool;    /* a pattern; {NULL, 0}: any */
	struct text pattern; /* over the input; {NULL, 0}: any */
	bool denies;
	struct text comment;
	int64_t created_ms;
	int64_t expires_ms; /* 0: never */
	int64_t uses;       /* that are left; -1: any number */
};

/* -EEXIST when the id is taken. */
int store_grant_add(struct connection *c, const struct grant_row *row);
/* One use less; the last deletes it. *ret_found false: it is gone. */
int store_grant_use(struct connection *c, struct text id, bool *ret_found);
int store_grant_remove(struct connection *c, struct text id, bool *ret_found);
/* Oldest first; what expired before now is deleted by the sweep alone, and not in the list. */
int store_grant_list(struct connection *c, int64_t now_ms, struct arena *arena,
		     struct grant_row **ret_rows, unsigned *ret_n);
int store_grant_sweep(struct connection *c, int64_t now_ms);
