/*
 * Tools that an agent may use on this machine: its memory always; programs and files where the
 * settings allow them, after whoever approves has been asked, and in one folder only.
 *
 * All on the loop's thread; what touches a disk runs on others. Inputs and results are trees of
 * base/value, except that the answers of memory's tools are written by whoever made the tools. What is
 * wrong with the input, or went wrong, is a refusal with a sentence.
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
#include "base/why.h"
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
	TOOL_EXEC_SECONDS = 30,   /* unless it says otherwise */
	TOOL_EXEC_SECONDS_MAX = 300,
};

/* How the tools of memory answer, which is also how memory answers those who ask without a tool. */
struct tool_answers {
	void (*found)(struct buf *out, struct text query, const struct memory *hits, unsigned n);
	void (*entry)(struct buf *out, const struct memory *m);
	void (*stored)(struct buf *out, const struct memory *m);
	void (*duplicate)(struct buf *out, const struct memory *m);
};

struct tools_opts {
	struct loop *loop;
	struct background background;
	const char *owner; /* whose mark programs carry; see io/tree.h. NULL: none are run */
	struct memories *memories;
	struct approvals *approvals; /* NULL: what needs approval is refused */
	unsigned allowed;            /* bits: 1 << enum tool_id */
	const char *agent;           /* who runs tools, to whoever approves; NULL: several do */
	const char *folder;          /* of programs and files; "" where none of these is allowed */
	const struct environment *env; /* of programs; NULL: ours */
	struct tool_answers answers;
};

/* Refuses a folder that is none. */
int tools_new(const struct tools_opts *opts, struct tools **ret_tools, struct why *why);

/* What runs is ended, and told REFUSE_STOPPING. Accepts NULL. */
void tools_stop(struct tools *t);
void tools_free(struct tools *t); /* after the last work has finished; accepts NULL */

const char *tool_name(enum tool_id id);

/* One that is allowed. */
bool tool_find(const struct tools *t, struct text name, enum tool_id *ret_id);
bool tool_allowed(const struct tools *t, enum tool_id id);

struct tool_ask {
	enum tool_id id;
	const struct value *input; /* an object; copied */
	struct text agent;         /* who asks, for whoever approves */
	struct text session;       /* where, for the same; {NULL, 0}: not said */
	struct text call_id;       /* the agent's name for the call; {NULL, 0}: none */
	struct memory_asker by;    /* whose memories */
	struct peer peer;          /* for whom it is done; not known: for koined itself */
};

struct tool_result {
	const struct value *value; /* or NULL, and */
	struct text text;          /* as the answers of struct tools_opts write it */
};

typedef void (*tool_fn)(void *arg, int result, const struct tool_result *got,
			const struct why *why);

/* fn comes once, never before this has returned; what it is given is valid meanwhile. REFUSE_FORBIDDEN:
 * it was denied; REFUSE_TIMEOUT: nobody decided in time. */
int tool_run(struct tools *t, const struct tool_ask *ask, tool_fn fn, void *arg,
	     struct tool_run **ret_run, struct why *why);

/* fn does not come any more, and what runs is ended. Until fn came. Accepts NULL. */
void tool_leave(struct tool_run *r);
