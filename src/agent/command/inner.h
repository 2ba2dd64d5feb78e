/* A command's turn: where it runs, what it is asked, and its output as text. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/agent.h"
#include "base/buf.h"
#include "io/process/confine.h"

/*
 * Turns bytes as a program prints them into text: whole UTF-8 characters, however the bytes
 * were cut; invalid ones, and NUL, become U+FFFD. The final newline is left out.
 */
struct command_text {
	char held[4]; /* the beginning of a character */
	size_t n_held;
	bool newline; /* a newline came last; written if anything follows */
};

/* Both append what is known so far; failures stick to out->err. */
void command_text_feed(struct command_text *t, const char *data, size_t len, struct buf *out);
void command_text_finish(struct command_text *t, struct buf *out);

/*
 * Where a command runs for one turn: the folder of its conversation, or its own; and where it
 * may write, if it is confined. A confined one has a private folder, which is its TMPDIR, and
 * the agent's state directory, which stays.
 */

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
		       struct command_place *ret, struct error *error);

/* Frees what was only needed to start it. */
void command_place_close(struct command_place *p);

/* A conversation as one text, as command.h describes it. */

enum { COMMAND_PROMPT_MAX = 64 << 20 };

/*
 * Appends it; failures stick to out->err. For an argument (room > 0) it contains no NUL, which
 * becomes U+FFFD, and at most `room` bytes: the oldest messages are left out, never the last.
 */
void command_prompt(const struct agent_ask *ask, size_t room, struct buf *out);
