/*
 * Tools that an agent may use on this machine: its memory always; programs and files if the
 * settings allow them, after the approver has been asked, and in one folder only.
 *
 * Everything runs on the loop's thread, except what touches a disk. Inputs and results are trees of
 * base/value, except that whoever made the tools writes the answers of memory's tools. A fault in the
 * input, or a failure, is a refusal with a message.
 *
 *	memory_search {query, category, limit, minScore}
 *	memory_get {path}
 *	memory_store {text, category, importance}
 *	exec {command, timeout, workdir} → {command, timeout, workdir?, success, exit_code, stdout,
 *		stderr, error?}
 *	read {path, offset, limit} → {path, size, content, is_binary}
 *	write {path, content, append} → {path, bytes, append, created?}
 *	edit {path, oldText, newText} → {path, changed, match_info}
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/peer.h"
#include "io/work.h"
#include "engine/memory/memory.h"

struct approvals;
struct environment;
struct tools;
struct tool_run;

enum tool_id {
	TOOL_MEMORY_SEARCH,
	TOOL_MEMORY_GET,
	TOOL_MEMORY_STORE,
	TOOL_EXEC,
	TOOL_READ,
	TOOL_WRITE,
	TOOL_EDIT,
	N_TOOLS,
};

enum {
	TOOL_RUNS_MAX = 256,      /* at once */
	TOOL_READ_MAX = 50 << 10, /* bytes of a file */
	TOOL_EDIT_MAX = 1 << 20,  /* bytes of a file */
	TOOL_STDOUT_MAX = 10000,  /* bytes that are kept, the first */
	TOOL_STDERR_MAX = 2000,   /* the same */
	TOOL_EXEC_SECONDS = 30,   /* the default */
	TOOL_EXEC_SECONDS_MAX = 300,
};

/* How the tools of memory answer, which is also how memory answers clients that use no tool. */
struct tool_answers {
	void (*found)(struct buf *out, struct text query, const struct memory *hits, unsigned n);
	void (*entry)(struct buf *out, const struct memory *m);
	void (*stored)(struct buf *out, const struct memory *m);
	void (*duplicate)(struct buf *out, const struct memory *m);
};

struct tools_opts {
	struct loop *loop;
	struct workers *workers;
	const char *owner; /* of the programs' marks (io/process/tree.h); NULL: none are run */
	struct memories *memories;
	struct approvals *approvals; /* NULL: what needs approval is refused */
	unsigned allowed;            /* bits: 1 << enum tool_id */
	/* The name of those who run tools, for the approver; NULL: there are several. */
	const char *agent;
	const char *folder;            /* for programs and files; "" if none of these is allowed */
	const struct environment *env; /* of programs; NULL: ours */
	struct tool_answers answers;
};

/* Refuses a path that is not a folder. */
int tools_new(const struct tools_opts *opts, struct tools **ret_tools, struct error *error);

/* Ends what is running, with REFUSE_STOPPING. Accepts NULL. */
void tools_stop(struct tools *t);
void tools_free(struct tools *t); /* call it after the last work has finished; accepts NULL */

const char *tool_name(enum tool_id id);

/* A tool that is allowed. */
bool tool_find(const struct tools *t, struct text name, enum tool_id *ret_id);

struct tool_ask {
	enum tool_id id;
	const struct value *input; /* an object; copied */
	struct text agent;         /* who asks, for the approver */
	struct text session;       /* where, for the approver; {NULL, 0}: not given */
	struct text call_id;       /* the agent's name for the call; {NULL, 0}: none */
	struct memory_asker by;    /* whose memories */
	struct peer peer;          /* the client; if unknown, koined itself */
};

struct tool_result {
	const struct value *value; /* or NULL, and */
	struct text text;          /* in the form that the answers of struct tools_opts write */
};

typedef void (*tool_fn)(void *arg, int result, const struct tool_result *got,
			const struct error *error);

/* Calls fn once, never before this returns; its arguments are valid until it returns.
 * REFUSE_FORBIDDEN: it was denied; REFUSE_TIMEOUT: nobody decided in time. */
int tool_run(struct tools *t, const struct tool_ask *ask, tool_fn fn, void *arg,
	     struct tool_run **ret_run, struct error *error);

/* fn is not called any more, and what is running is ended. Only valid until fn is called.
 * Accepts NULL. */
void tool_leave(struct tool_run *r);
