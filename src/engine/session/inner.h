/*
 * Internal to engine/session: sessions that are running, and their changes on the way to the
 * store. Everything belongs to the loop.
 */
#pragma once

#include "agent/transcript.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/metric.h"
#include "base/uuid.h"
#include "engine/attempt/attempt.h"
#include "io/process/tree.h"
#include "engine/record/record.h"
#include "engine/session/session.h"
#include "store/session.h"

enum {
	SESSION_STDERR_MAX = 64 << 10, /* bytes of it that are kept: the last ones */
	SESSION_RESULT_MAX = 1 << 20,  /* bytes of its result: the first ones */
	SESSION_ARENA_MAX = 64 << 20,
	/* Bytes on their way to the store; above this it is not read. */
	SESSION_UNWRITTEN_MAX = 4 << 20,
	SESSION_TEXT_MAX = 1 << 20, /* of any text of a configuration */
	/* Bytes of a path in a refusal: the reason follows it, and clients prepend more. */
	SESSION_PATH_SHOWN = 90,
};

/* A session that has not ended, or whose end is not stored yet. */
struct live_session {
	struct list link; /* in sessions->live */
	struct sessions *sessions;
	struct arena arena; /* holds the texts that it started with */
	struct session row;
	struct buf result;       /* what row.result points to */
	struct buf error;        /* what row.error points to */
	char agent_session[256]; /* what row.agent_session points to */
	char id[UUID_LEN + 1];
	char run[UUID_LEN + 1];
	char mark[TREE_MARK_MAX];
	struct session_new plan; /* its configuration; the other members are empty */
	char *mcp_file;          /* to be removed; NULL: none */
	struct text resume;      /* {NULL, 0}: it starts afresh */

	struct attempt attempt;
	struct transcript transcript;
	bool begun;         /* its query has been added to its events */
	const char *named;  /* its program, as it was to be started */
	bool has_result;    /* the agent has reported its result */
	bool is_error;      /* that result is an error */
	bool exited;        /* it has ended; its end may not be stored yet */
	bool nobody;        /* no agent can run it */
	bool paused;        /* its output is not read */
	bool full;          /* what it says is no longer kept */
	unsigned n_waiting; /* approvals that are open */
	int64_t kept_bytes;
	struct list enders; /* those who wait for its end */

	/* launch.c */
	struct work adding; /* stores its row */
	session_launched_fn launched;
	void *launched_arg;

	/* write.c */
	struct record record;
	size_t unwritten; /* bytes in them */
	struct record_waiter end_waiter;
};

struct sessions {
	struct sessions_opts opts;
	char *folder;
	char *program;
	char runner[AGENT_NAME_MAX]; /* "": not set */
	struct list live;
	unsigned n_live;
	unsigned n_coming; /* how many of these are not in the store yet */
	struct records records;
	struct spend spend; /* what their agents used */
	struct list
		elsewhere;   /* session_ender: those who wait for the end of one on another host */
	struct list watched; /* observed.c: the processes of observed sessions */
	unsigned n_watched;
	unsigned n_drains; /* nothing is launched meanwhile */
	struct timer *stop_timer;
	void (*stopped)(void *arg);
	void *stopped_arg;
};

/* Somebody who waits for the end of a session. */
struct session_ender {
	struct list link;
	/* row NULL: the end will not come, and nobody may be told. */
	void (*fn)(struct session_ender *e, const struct session *row);
	/* In sessions->elsewhere: something has happened to it. */
	struct text session;
	void (*look)(struct session_ender *e);
};

/* ---- session.c ---- */

/* "session not found: ID" */
int session_refuse_unknown(struct text id, struct error *error);
/* "ambiguous session id …": two of those that begin with it. */
int session_refuse_prefix(struct text id, const struct text found[2], struct error *error);

/* NULL: it is not running. */
struct live_session *session_live(struct sessions *s, struct text id);
void session_drop_enders(struct list *enders);
/* Interrupts it, unless it is ending already. */
void session_cancel(struct live_session *l);
void session_drop(struct live_session *l); /* it has ended, or never started */
void sessions_check_stopped(struct sessions *s);

/* ---- hosts.c: sessions of other hosts, and what lost ones have left ---- */

/* Before anybody is served: what a crash has left. */
int sessions_recover(struct sessions *s);
int sessions_join(struct sessions *s);
/* Runs on the writer's thread. If another host runs it, that is asked to interrupt it. If it has ended
 * meanwhile, row is what it is then. */
int session_wish(struct sessions *s, struct arena *a, struct session *row, bool *ret_wished);
/* Whoever waits for the end of this session of another host ({NULL, 0}: of any) looks again. */
void session_look_elsewhere(struct sessions *s, struct text id);

/* ---- observed.c ---- */

int observed_load(struct sessions *s);
void observed_unwatch_all(struct sessions *s);
/* On the writer's thread. *ret_n > 0: there may be more. */
int observed_end_silent(struct sessions *s, unsigned *ret_n);
/* Adds them to a list. */
int observed_merge(struct sessions *s, int lane, struct arena *a, const struct session_filter *f,
		   struct session **rows, unsigned *n);

/* ---- launch.c ---- */

int session_check_new(const struct session_new *in, struct error *error);
/* resume {NULL, 0}: it starts afresh; else the agent's own id of the parent. Everything is
 * copied. */
int session_launch_from(struct sessions *s, const struct session_new *in, struct text parent,
			struct text resume, session_launched_fn fn, void *arg, struct error *error);

/* ---- run.c ---- */

/* Its row is in the store: starts the agent, then tells l->launched. */
void session_begin(struct live_session *l);

/* Makes it end. Does nothing if it has ended or is already ending. */
void session_end_with(struct live_session *l, enum intent intent);
void session_kill(struct live_session *l);
void session_run_init(struct live_session *l);
void session_run_free(struct live_session *l);

/* ---- say.c: turns what was said into events ---- */

int session_said(void *live, const struct said *said);
/* Adds the query, unless it has already been added. */
void session_say_query(struct live_session *l);
void session_say(struct live_session *l, const struct session_event *row,
		 const struct value *tool_input);

/* ---- write.c ---- */

/* The row has changed: it is stored with the next batch. */
void session_write(struct live_session *l);
/* The same, and it is logged as an event. */
void session_set_status(struct live_session *l, enum session_status status);

/* Copies the texts of the row. */
int session_write_event(struct live_session *l, const struct session_event *row,
			const struct value *tool_input);

/* Calls the waiter when everything written so far is stored (0), or could not be stored yet
 * (-errno). -ECANCELED: the service is closing, and nobody may be told any more. */
int session_when_kept(struct live_session *l, struct record_waiter *w);

extern const struct record_change_ops session_changes;

/* ---- event.c: logged events; on the writer's thread ---- */

int session_tell_status(struct events *events, const struct session *row, enum session_status old);
int session_tell_changed(struct events *events, struct text id, const struct text *title,
			 const bool *archived);
int session_tell_wish(struct events *events, const struct session *row);
int session_tell_event(struct events *events, const struct session *row,
		       const struct session_event *event);

/* ---- config.c ---- */

/* The part of `in` that is kept for sessions that continue this one, copied into the arena;
 * unchanged if there is none. */
int session_config_make(struct arena *a, const struct session_new *in, struct session_new *ret_plan,
			struct text *ret_packed);

/* Fills in what `in` does not say from the parent; in the arena. */
int session_config_inherit(struct arena *a, const struct session *parent, struct session_new *in);

/* Writes the file with the servers, each with our run id and a socket in its environment. Does
 * nothing if there are no servers. */
int session_config_write_mcp(struct live_session *l, struct error *error);

/* Removes files that a crash left behind: nobody reads them, and their servers' environment may
 * contain secrets. */
void session_config_sweep(const char *folder);
