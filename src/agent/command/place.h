/*
 * Where a command runs for one turn: the folder of its conversation, or its own; and where it
 * may write, if it is confined. A confined one has a private folder, which is its TMPDIR, and
 * the agent's state folder, which stays.
 */
#pragma once

#include <limits.h>

#include "agent/agent.h"
#include "io/process/confine.h"

enum { COMMAND_PATHS_MAX = 64, COMMAND_VARIABLES = 5 };

struct command_place {
	const char *cwd;                         /* NULL: ours */
	int confine;                             /* 0: it may write anywhere */
	const char *env[COMMAND_VARIABLES + 1];  /* added to its environment, NULL-ended */
	char private_folder[PRIVATE_FOLDER_LEN]; /* "": none; the caller removes it */
	char cwd_text[PATH_MAX];
	char env_text[COMMAND_VARIABLES][PATH_MAX + 16];
};

/* own: the agent's folder; state: the folder of its state; "" for none. On a refusal nothing is
 * left behind. */
int command_place_open(const struct agent_ask *ask, const char *own, const char *state,
		       struct command_place *ret, struct why *why);

/* Frees what was only needed to start it. */
void command_place_close(struct command_place *p);
