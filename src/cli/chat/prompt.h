/*
 * The prompt of `koine chat` on a terminal. One of two files implements it: with libedit,
 * lines can be edited and recalled from the history; without it, they are read as the terminal
 * delivers them.
 */
#pragma once

#include "base/buf.h"

struct chat_prompt;

enum prompt_event {
	PROMPT_LINE,
	PROMPT_INTERRUPTED, /* Ctrl-C: what was typed is discarded */
	PROMPT_END,         /* Ctrl-D, or the terminal is gone */
};

/* NULL when memory ran out, or the terminal is unusable. */
struct chat_prompt *prompt_new(void);
void prompt_free(struct chat_prompt *p); /* accepts NULL */

/* Shows `mark` and waits for a line, which is NUL-terminated and valid until the next call. */
enum prompt_event prompt_read(struct chat_prompt *p, const char *mark, const char **ret_line);
