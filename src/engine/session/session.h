/*
 * Agent sessions: runs of an agent over a conversation.
 *
 * The agent is a program that prints stream-json (agent/transcript.h); if there is none, the
 * daemon's default agent answers, and the session is a conversation of one turn. What it says
 * is stored as events in order, and the event log reports it:
 *
 *	session.status {session_id, run_id, old_status, new_status, parent_session_id?, error?}
 *	session.event {session_id, run_id, agent_session_id, id, sequence, event_type, …}
 *
 * Everything is in the store before anybody is told about it. Running sessions belong to the
 * loop; functions that take a lane read on that worker's connection; all others belong to the
 * loop. Texts that are passed in are copied.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/session.h"
#include "base/text.h"
#include "base/value.h"
#include "base/error.h"
#include "io/loop.h"
#include "io/work.h"

struct approvals;
struct chat;
struct environment;
struct events;
struct node;
struct sessions;
struct spend;
struct store;

enum {
	SESSION_QUERY_MAX = 1 << 20,
	SESSION_TITLE_MAX = 1000,
	SESSION_TOOLS_MAX = 256,
	SESSION_LIST_MAX = 1000,
	SESSION_PATHS_DEFAULT = 20,
	SESSION_CHAIN_MAX = 1000,
	SESSION_EVENTS_MAX = 1000, /* in a page; the default is 200 */
	/* Bytes of a text in an event; the whole text is in the store. */
	SESSION_EVENT_CONTENT_MAX = 64 << 10,
};

/* Texts that clients show to people, or that programs look for, come from the dialect that these
 * clients speak. */
struct session_wording {
	/* Name the variables with the ids of the run and the session in a program's environment. */
	const char *run_variable;
	const char *session_variable;
	/* Names the variable with the socket that its servers ask on. */
	const char *socket_variable;
	/* The program ended badly; said: the end of its stderr, if that explains it. */
	void (*failed)(struct buf *out, int status, int signal, struct text said);
	/* REFUSE_UNAVAILABLE: the folder is unusable, or there is no such program. */
	int (*no_folder)(struct error *error, struct text folder, int fault);
	int (*no_program)(struct error *error, const char *name);
	/* REFUSE_CONFLICT: it cannot be continued, because its agent never told an id of its
	 * own. */
	int (*no_agent_session)(struct error *error);
};

struct sessions_opts {
	struct store *store;
	struct events *events;       /* NULL: no events are logged */
	struct chat *chat;           /* its agents answer if there is no program */
	struct approvals *approvals; /* NULL: no approvals */
	struct node *node;           /* NULL: there is one host only */
	struct loop *loop;
	struct workers *workers;
	/* An absolute path, made with mode 0700 when needed: holds the files that programs read. */
	const char *folder;
	/* Words, as for a command agent; NULL: CODING_AGENT, looked up at each start. */
	const char *program;
	/* For sessions that name none: an agent, or CODING_AGENT; NULL or "": not set. */
	const char *runner;
	const struct environment *env; /* of the program; NULL: ours */
	unsigned parallel;             /* how many may run in parallel; 0: 64 */
	unsigned interrupt_ms;         /* SIGINT to SIGTERM; 0: 5 s */
	unsigned terminate_ms;         /* SIGTERM to SIGKILL; 0: 5 s */
	int64_t keep_bytes;            /* of what one session says; 0: 256 MiB */
	int64_t keep_ms;               /* ended sessions; 0: for ever */
	int64_t silence_ms;            /* an observed session ends after so long without an event */
	const struct session_wording *wording;
	/* The engine does not handle JSON text: this yields a tree in the arena. */
	int (*to_json)(struct arena *a, const struct value *v, struct text *ret_text);
};

/* Call it after tasks_start, which ends the programs that a crash left behind. The sessions that
 * the crash left open are failed: "daemon restarted while session was active". Those of another host are
 * when that is lost: "host NAME was lost". */
int sessions_start(const struct sessions_opts *opts, struct sessions **ret_sessions);

/* How many are running now; 0 for NULL. */
unsigned sessions_open(const struct sessions *s);

/* What agents used in sessions that have ended; the tokens of those that were turns of a
 * conversation are chat's. On the loop; NULL for NULL. */
const struct spend *sessions_spend(const struct sessions *s);

/* The program that runs them, as it would be looked for now, without its arguments; {NULL, 0} for
 * NULL. */
struct text sessions_program(const struct sessions *s, bool *ret_found);

/* Launches are refused until it is called once more with false. Accepts NULL. */
void sessions_drain(struct sessions *s, bool drain);

/* Starts nothing new and ends what is running, as tasks_stop does; those sessions fail with
 * "the daemon stopped while the session was active". */
void sessions_stop(struct sessions *s, unsigned grace_ms, void (*fn)(void *arg), void *arg);
void sessions_free(struct sessions *s); /* accepts NULL */

struct session_new {
	struct text query;
	struct text title;        /* {NULL, 0}: none; the same for all that follow */
	struct text model;        /* passed to the program unchanged */
	struct packed mcp_config; /* its tree: {"mcpServers":{NAME:{"command","args"?,"env"?}}} */
	struct text permission_prompt_tool;
	struct text working_dir; /* {NULL, 0}: the daemon's; "~/" is the user's home */
	int64_t max_turns;       /* 0: not given */
	struct text system_prompt;
	struct text append_system_prompt;
	struct texts allowed_tools;
	struct texts disallowed_tools;
	struct texts additional_directories; /* absolute paths */
	struct text custom_instructions;     /* added after append_system_prompt */
	struct text agent; /* an agent of the settings, or CODING_AGENT; {NULL, 0}: the default */
};

struct session_launched {
	struct text id;
	struct text run;
	struct text parent; /* {NULL, 0}: none */
};

/*
 * result 0: it is running. REFUSE_PARAMS; REFUSE_LIMIT; REFUSE_STOPPING; REFUSE_UNAVAILABLE if
 * the program could not be started: then a failed session exists, `launched` names it, and the
 * message says what is wrong with its folder or its program.
 */
typedef void (*session_launched_fn)(void *arg, int result, const struct session_launched *launched,
				    const struct error *error);

/* As the two functions below: 0 if fn will be called, once and later, never inside the call. Else it returns a
 * fault or a refusal, and fn is not called. */
int session_launch(struct sessions *s, const struct session_new *in, session_launched_fn fn,
		   void *arg, struct error *error);

/*
 * A new session that continues where `parent` ended. What `in` does not say is inherited
 * (model, working_dir and all configuration). A parent that is running is interrupted first
 * and waited for. REFUSE_NOT_FOUND if there is no such parent; REFUSE_CONFLICT with "cannot
 * continue session with status S (must be completed or running)", with the text of the
 * wording, or with "parent session missing working_dir (cannot resume session without working
 * directory)".
 */
int session_continue(struct sessions *s, struct text parent, const struct session_new *in,
		     session_launched_fn fn, void *arg, struct error *error);

typedef void (*session_done_fn)(void *arg, int result, const struct error *error);

/* Calls fn when `completing` is stored and the program was told. REFUSE_NOT_FOUND ("session not
 * found: ID"), REFUSE_CONFLICT: "cannot interrupt session with status S (must be running)". */
int session_interrupt(struct sessions *s, struct text id, session_done_fn fn, void *arg,
		      struct error *error);

/* Runs on the writer's thread, within a call. REFUSE_NOT_FOUND: "session not found: ID". Logs
 * session.changed. */
int session_set_archived(struct sessions *s, struct text id, bool archived, struct error *error);
int session_set_title(struct sessions *s, struct text id, struct text title, struct error *error);

struct session_filter {
	enum session_archived archived;
	int status; /* enum session_status, or -1: any */
	bool leaves;
	int64_t limit; /* 0: SESSION_LIST_MAX */
	bool brief;    /* texts cut at 200 characters */
	bool observed; /* those of agents that koined did not start, too */
};

/* The most recently active first. */
int session_list(struct sessions *s, int lane, struct arena *a, const struct session_filter *f,
		 struct session **ret_rows, unsigned *ret_n);

/* REFUSE_NOT_FOUND: "session not found: ID". With `short_id`, a unique prefix of an id is
 * enough. */
int session_get(struct sessions *s, int lane, struct arena *a, struct text id, bool short_id,
		struct session *ret_row, struct error *error);

struct session_events_query {
	struct text session;       /* or */
	struct text agent_session; /* wins */
	bool chain;                /* includes its parents' events, the oldest first */
	bool raw;                  /* includes lines that were not understood */
	int64_t after_id;          /* only those after it; 0: from the first */
	int64_t before_id;         /* only those before it; 0: to the last */
	bool newest;               /* the last of them, not the first */
	unsigned limit;
	size_t max_bytes; /* of text; the event that reaches it is the last one */
};

struct session_page {
	struct session_event *events; /* the oldest first */
	unsigned n;
	bool more; /* there are more behind them; with `newest`, before them */
	bool cut;  /* the chain is longer than SESSION_CHAIN_MAX; its oldest were not looked for */
};

/* Reads no more than it returns, however long the session is. Finds nothing for an unknown
 * one. */
int session_events(struct sessions *s, int lane, struct arena *a,
		   const struct session_events_query *q, struct session_page *ret_page);

int session_paths(struct sessions *s, int lane, struct arena *a, int64_t limit,
		  struct session_path **ret_paths, unsigned *ret_n);

/* The configuration packed in row->config, for display; NULL: none. */
const struct value *session_config(struct arena *a, const struct session *row);

/* Runs on the loop, for approvals: something in this session starts (+1) or stops (-1) waiting
 * for a human, and its status follows. Does nothing if the session is not running. Accepts NULL. */
void session_wait(struct sessions *s, struct text id, int change);

/* Runs on the writer's thread. Deletes some that ended too long ago. Accepts NULL. */
int session_sweep(struct sessions *s, bool *ret_more);
