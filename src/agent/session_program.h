/*
 * How the program of an agent session is started: claude, or one that takes the same flags.
 *
 *	PROGRAM… [--resume ID] [--model M] --output-format stream-json --verbose
 *		[--mcp-config FILE] [--permission-prompt-tool T] [--max-turns N]
 *		[--system-prompt S] [--append-system-prompt S]
 *		[--allowedTools a,b] [--disallowedTools a,b] [--add-dir DIR]... --print -- QUERY
 *
 * The query comes last, behind "--", so that it may begin with a dash; any other value that does
 * stands in one word with its flag (--model=-m). A query that no argument can hold is read from
 * standard input: then the last is --print.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "base/error.h"

/* Empty values are left out, except the query. */
struct session_program_opts {
	const char *program; /* words, quoted as for a shell */
	struct text resume;  /* the agent's own id of the session to go on with */
	struct text model;
	struct text mcp_file;
	struct text permission_prompt_tool;
	struct text system_prompt;
	struct text append_system_prompt;
	int64_t max_turns; /* <= 0: not said */
	const struct text *allowed;
	const struct text *disallowed;
	unsigned n_allowed;
	unsigned n_disallowed;
	const struct text *folders; /* that it may use besides its own; absolute */
	unsigned n_folders;
	struct text query;
};

struct session_program {
	char **argv;       /* NULL-ended; one piece, for free() */
	struct text input; /* the query, to be written to stdin; {NULL, 0}: it is an argument */
};

/*
 * Refuses with REFUSE_PARAMS, naming the field, what contains a NUL or is longer than an
 * argument can be, and a program without words.
 */
int session_program_make(const struct session_program_opts *o, struct session_program *ret,
			 struct error *error);

/* Whether its program can be found: in PATH now, or by path. */
bool session_program_is_there(const char *program);
