/*
 * Agent sessions: runs of an agent over a conversation.
 *
 * The agent is a program that prints stream-json (agent/transcript.h); where there is none, the
 * daemon's default agent answers, and the session is a conversation of one turn. What it says
 * is kept as events in order, and told by the event log:
 *
 *	session.status {session_id, run_id, old_status, new_status, parent_session_id?, error?}
 *	session.event {session_id, run_id, claude_session_id, id, sequence, event_type, …}
 *
 * What happened is in the store before anybody is told. Sessions that run belong to the loop;
 * functions that take a lane read on that worker's connection; all others are the loop's. Texts
 * that go in are copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/noun/session.h"
#include "base/text.h"
#include "base/value.h"
#include "base/why.h"
#include "io/loop.h"
#include "io/work.h"

struct approvals;
struct chat;
struct environment;
struct events;
struct sessions;
struct store;

enum {
	SESSION_QUERY_MAX = 1 << 20,
	SESSION_TITLE_MAX = 1000,
	SESSION_TOOLS_MAX = 256,
	SESSION_LIST_MAX = 1000,
	SESSION_CHAIN_MAX = 1000,
	SESSION_EVENTS_MAX = 1000, /* in a page; by default 200 */
	SESSION_EVENT_CONTENT_MAX =
		64 << 10, /* bytes of a text in what is told; the whole is in the store */
};

/* What clients show to people and programs look for is worded by the dialect whose peers they are. */
struct session_wording {
	const char *run_variable;    /* has the run's id in a program's environment */
	const char *socket_variable; /* says by which socket of ours its servers ask */
	/* The program ended badly; said: the end of what it wrote to stderr, where that explains it. */
	void (*failed)(struct buf *out, int status, int signal, struct text said);
	/* REFUSE_UNAVAILABLE: the folder cannot be used; there is no such program. */
	int (*no_folder)(struct why *why, struct text folder, int error);
	int (*no_program)(struct why *why, const char *name);
	/* REFUSE_CONFLICT: it cannot be continued, for its agent never told an id of its own. */
	int (*no_agent_session)(struct why *why);
};

struct sessions_opts {
	struct store *store;
	struct events *events;       /* NULL: nothing is told */
	struct chat *chat;           /* whose agents answer where there is no program */
	struct approvals *approvals; /* NULL: nobody asks */
	struct loop *loop;
	struct background background;
	/* absolute, made 0700 when one is needed: what programs read from files. */
	const char *folder;
	/* words, as for a command agent; NULL: "claude", looked up when one starts. */
	const char *program;
	/* Of those that name none: an agent, or "claude"; NULL or "": not said. */
	const char *runner;
	const struct environment *env; /* of the program; NULL: ours */
	unsigned parallel;             /* that may run side by side; 0: 64 */
	unsigned interrupt_ms;         /* SIGINT to SIGTERM; 0: 5 s */
	unsigned terminate_ms;         /* SIGTERM to SIGKILL; 0: 5 s */
	int64_t keep_bytes;            /* of what one session says; 0: 256 MiB */
	int64_t keep_ms;               /* ended sessions; 0: for ever */
	const struct session_wording *wording;
	/* The engine has no JSON text: a tree as such, in the arena. */
	int (*to_json)(struct arena *a, const struct value *v, struct text *ret_text);
};

/* After tasks_start, which ends the programs that a crash has left. The sessions that it left open
 * are failed: "daemon restarted while session was active". */
int sessions_start(const struct sessions_opts *opts, struct sessions **ret_sessions);

/* How many run now; 0 for NULL. */
unsigned sessions_open(const struct sessions *s);

/* Starts nothing new and ends what runs, as tasks_stop does; told as failed "daemon stopped while session was active". */
void sessions_stop(struct sessions *s, unsigned grace_ms, void (*fn)(void *arg), void *arg);
void sessions_free(struct sessions *s); /* accepts NULL */

struct session_new {
	struct text query;
	struct text title;        /* {NULL, 0}: none; so with all that follow */
	struct text model;        /* given to the program as it is */
	struct packed mcp_config; /* its tree: {"mcpServers":{NAME:{"command","args"?,"env"?}}} */
	struct text permission_prompt_tool;
	struct text working_dir; /* {NULL, 0}: the daemon's; "~/" is the user's home */
	int64_t max_turns;       /* 0: not said */
	struct text system_prompt;
	struct text append_system_prompt;
	struct texts allowed_tools;
	struct texts disallowed_tools;
	struct text custom_instructions; /* follow append_system_prompt */
	struct text agent; /* an agent of the settings, or "claude"; {NULL, 0}: the default */
};

struct session_launched {
	struct text id;
	struct text run;
	struct text parent; /* {NULL, 0}: none */
};

/*
 * result 0: it runs. REFUSE_PARAMS; REFUSE_LIMIT; REFUSE_STOPPING; REFUSE_UNAVAILABLE when the program
 * could not be started: then there is a session that says failed, `launched` names it too, and the
 * sentence says what is wrong with its folder or its program.
 */
typedef void (*session_launched_fn)(void *arg, int result, const struct session_launched *launched,
				    const struct why *why);

void session_launch(struct sessions *s, const struct session_new *in, session_launched_fn fn,
		    void *arg);

/*
 * A new session that goes on where `parent` ended. What `in` does not say is inherited (model, working_dir
 * and all configuration). One that runs is interrupted first and waited for. REFUSE_NOT_FOUND without a
 * parent; REFUSE_CONFLICT with the words "cannot continue session with status S (must be completed or
 * running)", those of the wording, or "parent session missing
 * working_dir (cannot resume session without working directory)".
 */
void session_continue(struct sessions *s, struct text parent, const struct session_new *in,
		      session_launched_fn fn, void *arg);

typedef void (*session_done_fn)(void *arg, int result, const struct why *why);

/* fn comes when `completing` is kept and the program was told. REFUSE_NOT_FOUND ("session not found: ID"),
 * REFUSE_CONFLICT: "cannot interrupt session with status S (must be running)". */
void session_interrupt(struct sessions *s, struct text id, session_done_fn fn, void *arg);

/* On the writer's thread, within a call. REFUSE_NOT_FOUND: "session not found: ID". Tells session.changed. */
int session_set_archived(struct sessions *s, struct text id, bool archived, struct why *why);
int session_set_title(struct sessions *s, struct text id, struct text title, struct why *why);

struct session_filter {
	enum session_archived archived;
	int status; /* enum session_status, or -1: any */
	bool leaves;
	int64_t limit; /* 0: SESSION_LIST_MAX */
	bool brief;    /* texts cut at 200 characters */
};

/* The last active first. */
int session_list(struct sessions *s, int lane, struct arena *a, const struct session_filter *f,
		 struct session **ret_rows, unsigned *ret_n);

/* REFUSE_NOT_FOUND: "session not found: ID". A beginning of an id that only one has will do where `short_id`. */
int session_get(struct sessions *s, int lane, struct arena *a, struct text id, bool short_id,
		struct session *ret_row, struct why *why);

struct session_events_query {
	struct text session;       /* or */
	struct text agent_session; /* wins */
	bool chain;                /* its parents' before, the oldest first */
	bool raw;                  /* also the lines that nobody understood */
	int64_t after_id;
	int64_t limit;    /* 0: all, where max_bytes bounds it */
	size_t max_bytes; /* of text; 0: 64 MiB */
};

/* None for a session that is not known. *ret_more: there are further ones behind the last. */
int session_events(struct sessions *s, int lane, struct arena *a,
		   const struct session_events_query *q, struct session_event **ret_events,
		   unsigned *ret_n, bool *ret_more);

int session_paths(struct sessions *s, int lane, struct arena *a, int64_t limit,
		  struct session_path **ret_paths, unsigned *ret_n);

/* The configuration that is packed in row->config, for those who show it; NULL: none. */
const struct value *session_config(struct arena *a, const struct session *row);

/* On the loop, for approvals: something of this session waits for a human (+1), or does not any more (-1): its status
 * follows. Nothing happens where it does not run. Accepts NULL. */
void session_wait(struct sessions *s, struct text id, int change);

/* On the writer's thread: deletes some that ended too long ago. Accepts NULL. */
int session_sweep(struct sessions *s, bool *ret_more);
