/*
 * A legacy client's session: opened by `initialize`, for one connection of lines, or over HTTP for
 * all requests that bring its id. Calls hold the session that they belong to.
 */
#pragma once

#include "call/client.h"
#include "mcp/inner.h"

enum {
	SESSION_ID = 32,
	SESSION_NAME_MAX = 256,      /* bytes kept of a client's name */
	SESSION_DECLARED_MAX = 1024, /* bytes kept of its capabilities' names */
};

/* How urgent a log line is, as the protocol (and syslog) has it: note.c knows all of them. */
enum { LEVEL_INFO = 1, N_LEVELS = 8 };

struct mcp_session {
	struct list link; /* in mcp.sessions */
	struct table_link by_id;
	struct mcp *mcp;
	unsigned refs;
	char id[SESSION_ID + 1]; /* "" on a connection of lines */
	const char *version;
	char *client_name; /* or NULL */
	char *declared; /* names of the capabilities that it has declared, a line each; or NULL */
	char *root;     /* the URI of its first folder; or NULL */
	bool knows_root;
	int log_level;
	struct list uris; /* struct session_uri: what it has subscribed to */
	unsigned n_uris;
	size_t bytes;          /* of its URIs and its root, which count for all sessions, too */
	struct client *client; /* a connection of lines; NULL: HTTP, or gone */
	struct client_hook hook;
	struct mcp_call *stream; /* HTTP: the open GET; or NULL */
	struct list questions;   /* that wait for an answer */
	uint64_t last_question;
	struct list tracks; /* HTTP: streams that may be gone on with */
	unsigned n_tracks;
	uint64_t used_ms; /* HTTP: when its last request came or ended */
	uid_t uid;        /* over HTTP nobody else's requests belong to it */
	bool ended;
};

struct session_uri {
	struct list link;
	size_t len;
	char uri[];
};

/* For a new client; the caller's call holds it. params are those of `initialize`. */
int session_new(struct mcp_call *mc, const char *version, const struct value *params,
		struct mcp_session **ret_session);
struct mcp_session *session_ref(struct mcp_session *s);
void session_unref(struct mcp_session *s); /* accepts NULL */

/* The session of a connection of lines, or of an id; NULL: none. */
struct mcp_session *session_of_client(const struct client *s);
struct mcp_session *session_find(struct mcp *m, struct text id, uid_t uid);

/* No request finds it any more; its stream ends. */
void session_end(struct mcp_session *s);

/* A message for the client that is no answer and belongs to no call. */
int session_tell(struct mcp_session *s, struct text message);

/* Whether its client has declared this capability. */
bool session_declares(const struct mcp_session *s, struct text capability);

/* The first folder of its client; {NULL, 0} for none. A URI that does not fit counts as none. */
void session_set_root(struct mcp_session *s, struct text uri);

/* 0, REFUSE_LIMIT or -ENOMEM. A second subscription to the same URI changes nothing. */
int session_subscribe(struct mcp_session *s, struct text uri, struct error *error);
void session_unsubscribe(struct mcp_session *s, struct text uri);
bool session_watches(const struct mcp_session *s, struct text uri);

/* The question of that id which waits for an answer; NULL: none. */
struct mcp_question *session_find_question(const struct mcp_session *s, struct text id);

/* All of an mcp's, with whatever they hold: nothing runs any more. */
void mcp_sessions_free(struct mcp *m);

/* note.c: the number of a level; -1 if there is none of that name. */
int level_read(struct text name);
