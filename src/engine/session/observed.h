/*
 * Sessions of agents that koined did not start. Each note of an agent's hook says that its session is
 * active; one ends by the note that says so, when its process is gone, or when it has been silent for
 * long. A later note opens it again.
 *
 * At most OBSERVED_MAX are kept, the ended ones going first. Sessions of what koined itself has
 * started are not observed.
 */
#pragma once

#include "engine/session/session.h"

struct hook_note;
struct peer;

enum {
	OBSERVED_MAX = 1000,
	OBSERVED_ID_MAX = 128, /* bytes; a longer id is not observed */
};

/* What a note says about a session; in its call's arena. */
struct session_seen {
	struct text id; /* {NULL, 0}: nothing */
	bool looked;    /* the rest is known */
	struct text project;
	int64_t pid; /* 0: unknown */
	int64_t started;
	bool ended;
};

/* On a reader's thread: finds the process and the project, where that is needed. s NULL: nothing. */
int session_look(struct sessions *s, int lane, struct arena *a, const struct hook_note *note,
		 const struct peer *peer, struct session_seen *ret_seen);
/* On the writer's thread, within the note's call. */
int session_observe(struct sessions *s, struct arena *a, const struct hook_note *note,
		    struct session_seen *seen);
/* On the loop, when that is kept: its process is watched from now on, or no longer. */
void session_observed(struct sessions *s, const struct session_seen *seen);

/* On a reader's thread, as session_get. */
int session_get_observed(struct sessions *s, int lane, struct arena *a, struct text id,
			 struct session *ret_row, bool *ret_found, struct error *error);

/* REFUSE_CONFLICT if it is observed only: what = "continued", "interrupted" or "changed". */
int session_must_be_ours(const struct session *row, const char *what, struct error *error);
