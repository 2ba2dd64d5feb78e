/*
 * Any program as an agent: one child a turn, in its own process group. What it
 * prints is the answer, as plain text or as the stream-json lines that coding agents
 * print.
 *
 * The prompt of a conversation's first message is that message; of a longer one a transcript,
 * which ends with the question:
 *
 *	User: My name is Alice
 *
 *	Assistant: Nice to meet you.
 *
 *	User: What is my name?
 *
 * A tool's result is "Tool: …"; a system prompt stands before either, with a blank line
 * between. As an argument, a prompt that begins with a dash gets a blank before it: whoever may ask
 * may not give options.
 *
 * A word with "{disabled_tools}" is used only in conversations without some tools, with their
 * names, separated by commas, in its place.
 *
 * The child gets the environment it was given, and KOINE_CONVERSATION; a confined one (struct command_place)
 * also TMPDIR and KOINE_STATE. Its turn ends when it ends: what it leaves behind in its group is
 * killed; what holds its output open elsewhere is not waited for.
 */
#pragma once

#include "agent/agent.h"
#include "io/loop.h"

struct environment;

enum command_input {
	/* The prompt in place of each "{prompt}", also within a word, or as the last argument. It
	 * has at most 128 KiB: the oldest messages are left out. NUL is U+FFFD there. */
	COMMAND_ARGUMENT,
	COMMAND_STDIN,
};

enum command_output {
	COMMAND_TEXT,        /* without the final newline; invalid UTF-8 becomes U+FFFD */
	COMMAND_STREAM_JSON, /* see agent/json_lines.h */
};

struct command_opts {
	const char *name;
	const char *command; /* words, quoted as for a shell, but there is no shell */
	enum command_input input;
	enum command_output output;
	const char *cwd; /* "" or NULL: ours */
	/* What it keeps between its turns, and may write however it is confined; made when
	 * needed. "" or NULL: nothing. */
	const char *state;
	unsigned interrupt_ms;     /* from SIGINT to SIGTERM */
	unsigned terminate_ms;     /* from SIGTERM to SIGKILL */
	unsigned total_timeout_ms; /* 0: none */
	int64_t budget;
	int64_t reserve;
	const struct environment *env; /* looked at when a turn starts; NULL: ours */
};

/* Refuses a command without words or with an open quote. Whether the program exists is checked
 * when a turn starts. */
int command_new(struct loop *l, const struct command_opts *opts, struct agent **ret_agent,
		struct error *error);

/* A command for those who run it themselves, as tasks do. */
struct command_program {
	char **argv;     /* NULL-ended; one piece of memory, for free() */
	bool by_stdin;   /* the prompt is not among the arguments but to be read from stdin */
	const char *cwd; /* the agent's own; "": none */
	const struct environment *env;
};

bool agent_is_command(const struct agent *a);

/* Refuses a prompt that no argument can hold. */
int command_program(const struct agent *a, struct text prompt, struct command_program *ret,
		    struct error *error);
