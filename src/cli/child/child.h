/*
 * A program that is asked something and then ended: its standard input and output are ours, a line
 * at a time. What it may take of time and memory is bounded, and it leaves nobody behind: it has a
 * process group of its own.
 */
#pragma once

#include <koine/koine.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/text.h"

enum { CHILD_SAYS_MAX = 4 << 20 };

struct cli_child {
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

struct cli_child_opts {
	const char *const *argv; /* the program is looked for in PATH */
	char *const *env;        /* NULL: ours */
	struct child_variable variable;
	const char *folder; /* NULL: ours */
	bool all;           /* its stderr goes where its stdout goes; otherwise nowhere */
	unsigned patience_ms;
};

/* False: it cannot be started; child_end does nothing then. */
bool child_start(struct cli_child *c, const struct cli_child_opts *opts);

/* Says a line, which has its end. False: it does not listen. */
bool child_tell(struct cli_child *c, struct text line);

/* Asks by JSON-RPC, on one line, and gives the answer with that id; other messages are left out.
 * The caller frees the document. False: there is none. */
bool child_ask(struct cli_child *c, struct text request, int64_t id, struct koine_doc **ret_doc);

/* Ends it and what it has started. */
void child_end(struct cli_child *c);

/* Runs it to its end. What it prints is added to `out`. Returns its exit code; 127: there is no such
 * program; -1: it did not end well or in time. */
int child_output(const struct cli_child_opts *opts, struct buf *out);

/* Runs a program that nobody waits for: in a session of its own, without our files; it outlives us,
 * and the client that started us. False: errno says why. */
bool child_detach(const char *const *argv);

/* ---- what is installed ---- */

/* Looks for a program of that name in PATH. False: there is none, and the path is "". */
bool program_find(const char *name, char path[PATH_MAX]);

/* The file that a process runs (0: we), as the kernel names it. False: it does not, and the path is "". */
bool program_of(int64_t pid, char path[PATH_MAX]);

struct probe {
	char program[PATH_MAX]; /* "": not in PATH */
	char version[80];       /* the first line that it printed; "": none in time */
	struct cli_child child;
};

/* Asks all that were found for their version, at the same time, for two seconds at most. */
void probe_ask(struct probe *probes, unsigned n);

/* ---- the daemon's program ---- */

/* Finds the koined in our own folder, which has our version, else the one that a shell would find.
 * False: there is none. */
bool koined_find(char path[PATH_MAX]);

/* Its dialects and where they listen, as `koined --dialects` prints them; what it has said is added to
 * `said`. False: it does not tell, and `said` may have the reason. */
bool koined_dialects(const char *program, unsigned patience_ms, struct buf *said,
		     struct koine_doc **ret_doc);

/* ---- the user's editor: that of VISUAL, else of EDITOR, else vi ---- */

struct edited_text {
	const char *name; /* a word of the file's name */
	struct text before;
	size_t max; /* bytes that may come back */
	/* Takes what came back, if it is not the same. 0 or an exit code. */
	int (*send)(void *arg, struct text after);
	void *arg;
};

/* Lets the user change a text. What was typed is never thrown away: its file stays if it cannot be
 * sent. 0 or an exit code. */
int editor_change(const struct edited_text *t);
