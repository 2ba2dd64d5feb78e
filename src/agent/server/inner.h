/* Internal to agent/server: one server, its connection and what is on its way. */
#pragma once

#include "agent/server/server.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "io/http_client.h"
#include "wire/http/sse.h"

/*
 * What a kind of server is: its paths, and what its texts mean. No I/O: text in, calls of the sink
 * out.
 */

enum { AGENT_SERVER_LISTS_MAX = 2 };

/* Where what was read goes. */
struct agent_server_sink {
	const struct agent_server_fns *fns;
	void *arg;
	/* Called for every folder that an event names; may be NULL. */
	void (*folder)(void *arg, struct text folder);
	void *folder_arg;
	unsigned skipped; /* asks that could not be shown */
	bool answered;    /* something was: a list that is on its way may still have it */
};

struct agent_server_ops {
	const char *word;
	const char *probe;  /* answers 200 or 401 without a password */
	const char *stream; /* server-sent events, of all folders */
	const char *home;   /* says which folder the server works in */
	const char *lists[AGENT_SERVER_LISTS_MAX];

	/* REFUSE_PARSE: it is not what such a server sends. The arena is the caller's. */
	int (*read_event)(struct arena *a, struct text data, struct agent_server_sink *sink,
			  struct error *error);
	int (*read_home)(struct arena *a, struct text body, struct text *ret_folder,
			 struct error *error);
	int (*read_list)(struct arena *a, unsigned which, struct text body, struct text folder,
			 struct agent_server_sink *sink, struct error *error);
	/* Adds a query for the folder to a path. */
	void (*add_folder)(struct buf *path, struct text folder);
	void (*write_reply)(const struct agent_server_reply *reply, struct buf *path,
			    struct buf *body);
};

enum {
	SERVER_FIRST_DELAY_MS = 1000,
	SERVER_ANSWER_MS = 20000, /* for anything but the stream */
	SERVER_PATH_MAX = 32 << 10,
	SERVER_BODY_MAX = 1 << 20,
	SERVER_ARENA_MAX = 64 << 20,
	SERVER_PASSWORD_MAX = 4096,
};

/* A folder that the server works in. */
struct server_folder {
	struct list link;
	unsigned listed; /* the round that has listed it */
	size_t len;
	char path[];
};

struct agent_server {
	const struct agent_server_ops *ops;
	struct loop *loop;
	struct http_client *http;
	char *name;
	char *url; /* without a slash at its end */
	char *user;
	char *password_env;
	char *password_file;
	unsigned idle_ms;

	enum agent_server_state state;
	int64_t since_ms;
	enum agent_server_fault fault;       /* why it is away */
	char text[AGENT_SERVER_TEXT_MAX];    /* the same, in words */
	bool said;                           /* the log has this outage */
	char trouble[AGENT_SERVER_TEXT_MAX]; /* what is wrong with what comes; "": nothing */
	struct timer *again;
	unsigned delay_ms;
	struct peer peer;

	struct http_fetch *probe;
	struct http_fetch *stream;
	struct sse sse;
	bool speaks; /* the stream has had an event */
	struct arena arena;
	struct agent_server_sink sink;

	struct http_fetch *list; /* of where it works, or of what is open */
	struct list folders;     /* the one that was heard of last comes first */
	unsigned n_folders;
	unsigned round;
	unsigned n_listed; /* answers of this round */
	unsigned which;    /* of the lists */
	struct server_folder *at;
	bool list_again;

	struct list replies;
};

/* ---- connect.c ---- */

/* The timer's: connects, or ends a connection in which something failed. */
void server_on_again(void *server);
void server_set_state(struct agent_server *s, enum agent_server_state state);
/* Ends the connection, and opens it again later. The text says why. */
void server_fail(struct agent_server *s, enum agent_server_fault fault, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void server_drop(struct agent_server *s);
/* A request with the password. The URL, headers and the time to connect are not the caller's. */
int server_fetch(struct agent_server *s, const char *path, const struct http_fetch_opts *opts,
		 struct http_fetch **ret_fetch, struct error *error);
/* Asks that could not be shown were counted by the sink: says so in the log. */
void server_say_skipped(struct agent_server *s);

/* ---- list.c ---- */

void server_list_begin(struct agent_server *s);

/* ---- server.c ---- */

void server_replies_drop(struct agent_server *s);
