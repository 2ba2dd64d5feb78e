/*
 * A program that is asked something and then ended: its standard input and output are ours, a line
 * at a time. What it may take of time and memory is bounded, and it leaves nobody behind: it has a
 * process group of its own.
 */
#pragma once

#include <koine/koine.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/text.h"

enum { CHILD_SAYS_MAX = 4 << 20 };

struct child {
	pid_t pid; /* -1: none */
	int in;
	int out;
	struct buf said; /* of that, what is behind `at` was not looked at */
	size_t at;
	uint64_t until_ms; /* of the steady clock; nothing is waited for later */
};

/* A variable that it finds changed. */
struct child_variable {
	const char *name; /* NULL: none */
	const char *value;
};

struct child_opts {
	const char *const *argv; /* the program is looked for in PATH */
	char *const *env;        /* NULL: ours */
	struct child_variable variable;
	const char *folder; /* NULL: ours */
	bool all;           /* its stderr goes where its stdout goes; otherwise nowhere */
	unsigned patience_ms;
};

/* False: it cannot be started; child_end does nothing then. */
bool child_start(struct child *c, const struct child_opts *opts);

/* Says a line, which has its end. False: it does not listen. */
bool child_tell(struct child *c, struct text line);

/* The next line, without its end, until the next call. False: there is none in time, or too much
 * was said. */
bool child_hear(struct child *c, struct text *ret_line);

/* Asks by JSON-RPC, on one line, and gives the answer with that id; other messages are left out.
 * The caller frees the document. False: there is none. */
bool child_ask(struct child *c, struct text request, int64_t id, struct koine_doc **ret_doc);

/* Closes its standard input, and waits for its end. The exit code; -1: it has none in time. */
int child_wait(struct child *c);

/* Ends it and what it has started. */
void child_end(struct child *c);

/* Runs it to its end. What it prints is added to `out`, with `all` what it says on stderr, too.
 * Returns its exit code; 127: there is no such program; -1: it did not end well or in time. */
int child_output(const char *const *argv, bool all, unsigned patience_ms, struct buf *out);
