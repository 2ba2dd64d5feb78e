/*
 * A server: listeners, their clients, the calls in flight, and the limits
 * that hold for all of them. Everything here belongs to the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/room.h"
#include "call/dialect.h"
#include "call/metric/call_count.h"
#include "io/conn.h"
#include "io/listener.h"
#include "io/loop.h"
#include "io/peer.h"
#include "io/workers.h"

/*
 * How many connections and calls in flight other users have. A listener may be opened to them
 * (allow_uids), but neither one of them nor all together may use up what our own user and root
 * need.
 */

enum { OTHERS_MAX = 256 }; /* at a time */

struct others {
	struct {
		uid_t uid;
		unsigned n;
	} list[OTHERS_MAX];
	unsigned n;
	unsigned total;
	unsigned calls;
};

/* Whether one more from this peer fits: `each` for one user, and for all of them half of what
 * there may be at all (`connections`, or descriptors). Always for our own user and root, and for
 * a peer of whom nothing is known, whom a token lets in. */
bool others_fit(const struct others *o, const struct peer *peer, unsigned each,
		unsigned connections);

/* Only after others_fit. */
void others_add(struct others *o, const struct peer *peer);
void others_remove(struct others *o, const struct peer *peer);

struct samples;
struct engine; /* what handlers work with; the owner knows it */

struct limits {
	unsigned connections;         /* in all; more wait in the backlog */
	unsigned connections_per_uid; /* for one other user who is let in; more are closed */
	unsigned calls;               /* in flight, in all; more are refused */
	unsigned waiting;             /* calls that one connection may queue behind a running one */
	size_t queue_bytes; /* answers waiting for one client, before it is not read any more */
	size_t total_queue_bytes; /* answers waiting for all clients; more cuts the slowest */
	unsigned room_wait_ms;    /* for a call without room for its answer; then it is refused */
	size_t reply_bytes;       /* of one answer */
	size_t total_input_bytes; /* half-sent messages of all clients; more cuts the worst */
	size_t total_call_bytes;  /* held by calls in flight; more refuses large ones */
	size_t progress_bytes;    /* of a half-sent message, in each read_timeout */
	unsigned json_depth;
	unsigned json_values;
	unsigned batch;           /* requests in one batch */
	unsigned read_timeout_ms; /* HTTP: for one whole request; else for progress_bytes */
	unsigned linger_ms;       /* to let a client read a last error */
	unsigned stop_ms;         /* for running calls when the server stops */
};

extern const struct limits default_limits;

/* What a reload has done with a setting. The texts are valid during the call. */
struct reload_note {
	enum reload_fate {
		RELOAD_TAKEN,
		RELOAD_LATER,   /* takes effect at the next start */
		RELOAD_INVALID, /* stays as it was */
		RELOAD_KEPT, /* stays as it was, since something else counts more than the file */
	} fate;
	const char *key;
	const char *file; /* "" if it is not from the file */
	unsigned line;    /* 0 if it is not known */
	const char *reason;
};

struct reload_listener {
	void (*note)(void *arg, const struct reload_note *note);
	void *arg;
};

struct server_opts {
	struct limits limits;
	struct engine *engine;
	struct workers_opts workers;
	/* A client asked the daemon to stop. NULL: such a request is refused. */
	void (*on_stop_asked)(void *arg, bool force);
	/* A client asked that koined runs again with its sockets and page sessions. With `env`
	 * ("NAME=value", copied; NULL: as it is) it stops and runs itself; `by_manager` the service
	 * manager's next stop is a restart, until `on` is false. NULL: such a request is refused. */
	int (*on_restart_asked)(void *arg, bool by_manager, bool on, const struct value *env);
	/* A client of this dialect's listener asked to have the settings read again. May be
	 * NULL. `report` is told what became of each setting that has changed; it may be NULL. */
	int (*on_reload_asked)(void *arg, const struct dialect *by,
			       const struct reload_listener *report, struct error *error);
	/* A client asked that this dialect, which listens nowhere yet, listens at its usual place.
	 * NULL: such a request is refused. */
	int (*on_listen_asked)(void *arg, const struct dialect *d, struct error *error);
	/* After server_stop: everything is closed. */
	void (*on_stopped)(void *arg);
	void *arg;
	/* On the writer's thread: refuses a caller that is an agent. NULL: everybody may call
	 * everything. */
	int (*check_human)(const struct engine *engine, const struct dialect *by,
			   const struct peer *peer, struct error *error);
	/* Whether an agent of this name is a program, in chats or as the runner of a task; needed
	 * with check_human. */
	bool (*is_program)(const struct engine *engine, struct text agent, bool runs_tasks);
	/* What confined clients may call (call/access): names, or prefixes that end with a
	 * dot; NULL-ended. NULL: everything. */
	const char *const *confined_methods;
	const char *version;
	bool log_messages; /* every message both ways, at debug */
};

/* Why a connection is not served. */
enum refused_for {
	REFUSED_UID,     /* it is of a user who may not come in */
	REFUSED_UNKNOWN, /* nobody can tell whose it is */
	REFUSED_LIMIT,   /* other users have too many */
	N_REFUSED_FOR,
};

/* Why an HTTP request is turned away before it is a call; see call/http.h. */
enum gate_reason { GATE_HOST, GATE_ORIGIN, GATE_TOKEN, GATE_METHOD, GATE_PATH, N_GATE_REASONS };

/* One place where a dialect is spoken. */
struct endpoint {
	struct list link;
	struct server *server;
	const struct dialect *dialect;
	struct registry *registry;
	struct listener *listener;
	char address[ADDRESS_TEXT_MAX];
	enum framing_choice framing;
	bool tcp;
	unsigned n_connections;
	uint64_t n_accepted;
	uint64_t n_refused[N_REFUSED_FOR]; /* connections, by enum refused_for */
	uint64_t n_gate[N_GATE_REASONS];   /* HTTP requests, by enum gate_reason */
	uint64_t n_calls;
	uint64_t n_errors;
	uint64_t bytes_in;
	uint64_t bytes_out;
	uint64_t n_dropped;   /* notifications that a slow client did not get */
	const void *settings; /* the dialect's own */
	void *state;          /* what the dialect keeps here, and frees itself */
	bool closed;          /* by server_unlisten */
	bool handed_over;     /* a service manager holds the socket, also while we do not run */
	/* The place of another dialect whose clients may come here (endpoint_opts.guest), without
	 * a listener of its own; freed with this one. NULL: none. */
	struct endpoint *guest;
	/* HTTP: "Bearer " and the token that calls must carry; "" for none. */
	char token[256];
	/* The file that has it, for clients that may read that; NULL: none. */
	const char *token_file;
};

struct server {
	struct loop *loop;
	struct conn_pool *pool;
	struct server_opts opts;
	struct workers *workers; /* made when first needed */
	struct list endpoints;
	struct list closed_endpoints; /* by server_unlisten */
	struct list clients;
	struct list deadlines; /* clients that have begun to send a message */
	struct list inputs;    /* clients that have sent incomplete messages */
	size_t input_held;     /* bytes of all of them */
	struct room room;      /* for answers; see call/parked.c */
	struct list parked;    /* calls that wait for some of it */
	struct call *retried;  /* the waiting call that is at work */
	struct timer *parked_clock;
	struct list detached; /* running calls whose client has left */
	struct list spare_calls;
	unsigned n_spare_calls;
	unsigned n_clients;
	struct others others;
	unsigned n_calls;  /* in flight */
	size_t call_bytes; /* that these hold */
	struct call_counts counts;
	struct samples *samples; /* of the last day; who keeps them frees them. NULL: nobody does */
	uint64_t last_client;
	uint64_t started_ms;
	int64_t started_utc_ms;
	struct timer *clock; /* checks deadlines while there are any */
	struct timer *stop_timer;
	bool stopping;
	bool cutting; /* clients that have sent too much */
	bool hurried; /* by a second server_stop */
	bool paused;  /* listeners wait for a connection to end */
};

int server_new(struct loop *l, const struct server_opts *opts, struct server **ret_server);
/* Takes effect at once, for open connections too. */
void server_set_limits(struct server *s, const struct limits *limits);

/* Closes everything that is open, at once, and asks calls that answer later to stop. They may
 * answer until server_finish. */
void server_close(struct server *s);

/* Closes, too, and ends the threads. A call that has not answered when this returns is gone. Accepts
 * NULL. */
void server_finish(struct server *s);
/* Finishes, too. */
void server_free(struct server *s);

struct endpoint_opts {
	const struct dialect *dialect;
	struct registry *registry; /* the methods to be found here; outlives the server */
	struct address address;
	enum framing_choice framing; /* usually the dialect's */
	int fd;                      /* already listening, or -1 */
	const uid_t *allow_uids;
	unsigned n_allow_uids;
	bool anybody;         /* anybody may connect */
	const char *token;    /* HTTP bearer token, or NULL */
	const void *settings; /* the dialect's own; outlives the server */
	/* Another dialect, spoken by clients whose first line it recognises; or NULL. */
	const struct dialect *guest;
};

int server_listen(struct server *s, const struct endpoint_opts *opts,
		  struct endpoint **ret_endpoint, struct error *error);

/*
 * Closes one listener, and its clients once they have been answered; other listeners go on.
 * False, and nothing happens, when it is the only one.
 */
bool server_unlisten(struct server *s, struct endpoint *e);

/* A place without a listener, for connections that are made elsewhere. */
int server_inside(struct server *s, const struct endpoint_opts *opts,
		  struct endpoint **ret_endpoint);

/* A connection that was made elsewhere. Takes fd. */
int server_accept(struct server *s, struct endpoint *e, int fd, const struct peer *peer);

/*
 * Stops in good order: no more connections, no more reading; running calls finish within
 * limits.stop_ms, then are cancelled; clients are closed; then on_stopped. A second call ends
 * it in the next turn of the loop, and no connection closes before that: a handler may call
 * this, and its answer is still sent.
 */
void server_stop(struct server *s);

/* Makes the threads unless they are there. They live as long as the server. */
int server_workers(struct server *s, struct workers **ret_workers);
/* Hands work to the thread that `where` names. */
int server_submit(struct server *s, struct work *work, enum where where);

/* Calls are reused. */
struct call *server_new_call(struct server *s);
void server_free_call(struct server *s, struct call *c);

/* Cuts the largest and slowest half-sent messages while there are too many bytes of them. */
void server_check_input(struct server *s);

/* A client of this peer's has closed; called by client.c. */
void server_client_gone(struct server *s, const struct peer *peer);

/* A notification, wrapped for each client's framing. HTTP clients get none. params is JSON or
 * {NULL, 0}; ret_n, the number of clients reached, may be NULL. -ENOMEM or -EMSGSIZE when it
 * could not be written: nobody got it. */
int server_notify_all(struct server *s, struct text method, struct text params, unsigned *ret_n);

struct client *server_find_client(struct server *s, uint64_t number);

/* Writes the members of one endpoint for daemon.status. */
void endpoint_write(const struct endpoint *e, struct json *j);
