/*
 * One client's connection: bytes become messages, messages become calls, and
 * answers go back in the order that the dialect promises.
 *
 * One after another: while a call runs, further messages are read ahead into
 * `waiting` (so that rpc.cancel can overtake), up to limits.waiting; then the
 * client is not read any more. Over HTTP nothing is read ahead.
 */
#pragma once

#include "base/list.h"
#include "call/call.h"
#include "call/server.h"

struct frame;

/* An answer of so many bytes is handed over to the connection instead of copied. */
enum { HANDED_OVER = 64 << 10 };

/* Somebody who wants to know when a client closes, or takes more; in what they keep for it. */
struct client_hook {
	struct client_hook *next;
	/* The client may still be looked at, and nothing can be sent. */
	void (*closed)(struct client_hook *h);
	/* The client took some of what waited for it, and not much is left. May be NULL. */
	void (*drained)(struct client_hook *h);
};

struct client {
	struct list link;          /* in server.clients */
	struct list deadline_link; /* in server.deadlines */
	struct list input_link;    /* in server.inputs */
	struct server *server;
	struct endpoint *endpoint;
	struct conn *conn;
	uint64_t number;

	const struct framing *framing; /* NULL until recognised */
	void *framing_state;
	uint64_t small_state[3]; /* where framing_state is, if it fits */

	/* Bytes that came and are not used: in[in_start..in.len). During on_bytes
	 * they may still stand in the connection's own buffer: `fresh`. */
	struct buf in;
	size_t in_start;
	struct text fresh;
	size_t input_held; /* as counted in the server's: these, and what the framing keeps */
	uint64_t input_since_ms;
	uint64_t bytes_in;

	struct list running;
	struct list waiting;
	unsigned n_running;
	unsigned n_waiting;
	size_t waiting_bytes;
	struct batch *batch;
	struct buf *
		held; /* notifications behind the answer of a batch, or of a call that holds them */
	unsigned n_holding; /* such calls */
	struct client_hook *hooks;
	struct upgraded *upgraded; /* who has taken the connection over, or NULL */

	uint64_t deadline_ms;
	uint64_t deadline_bytes; /* bytes_in when it was set */
	struct peer peer;
	bool looked : 1;          /* confined is known */
	bool confined : 1;        /* the client is kept from writing (call/confined) */
	bool http_keep_alive : 1; /* of the request that is being answered */
	bool http_head : 1;
	bool http_old : 1; /* HTTP/1.0 */
	bool pumping : 1;
	bool eof : 1;
	bool gone : 1;    /* nobody reads what we would send */
	bool closing : 1; /* nothing more is read; closed when all is answered */
	bool read_ahead_full : 1;
	bool refused_ahead : 1; /* what follows the calls that wait is no message */
	bool heard : 1;         /* a first message has come, and might */
	bool deaf : 1;          /* what comes is thrown away; its end is the end */
};

/* Takes fd, on failure too. */
int client_new(struct server *s, struct endpoint *e, int fd, const struct peer *peer);

/* Goes on with what waits: after a call was answered, or the client read some. */
void client_pump(struct client *s);

/* A call of this client has answered; called by call.c, on the loop. */
void client_answered(struct client *s, struct call *c);

/* Cancels the running or waiting call with this id. False if there is none. */
bool client_cancel(struct client *s, struct text id);

/* Sends a message that answers nothing, behind the answer of a batch that is under way. -ENOBUFS when
 * the client does not read (the message is dropped and counted), -ENOTSUP over HTTP. */
int client_notify(struct client *s, const char *data, size_t len);

/* The same, but client_flush must follow in the same turn: for several. */
int client_post(struct client *s, const char *data, size_t len);

/* What posts and notes come while this call runs go out behind its answer: it goes on after the commit
 * that told of what it did. */
void client_hold_for(struct call *c);

/* Whether it can be sent what answers nothing: it speaks, and not HTTP. */
bool client_hears(const struct client *s);

/* Whether it would take some now that can also come later: at most max bytes wait for the client,
 * and no batch of answers is held back, which what its calls have caused must not overtake. */
bool client_takes(struct client *s, size_t max);

/* As client_notify, whatever waits; client_flush must follow in the same turn. */
int client_append(struct client *s, const char *data, size_t len);
void client_flush(struct client *s);

/* From now on the client is only told: what it sends, and has sent behind the call that runs, is
 * thrown away, and when it stops sending, the connection is closed. */
void client_deafen(struct client *s);

/* Bytes for the client, in all: that were written for it, and that have left. */
uint64_t client_written(const struct client *s);
uint64_t client_sent(const struct client *s);

void client_add_hook(struct client *s, struct client_hook *h);
/* The one with this function, or NULL. */
struct client_hook *client_find_hook(const struct client *s, void (*closed)(struct client_hook *h));
void client_tell_hooks(struct client *s); /* for client.c: it closes */
void client_tell_drained(struct client *s);

/* Reads nothing more; closes when what runs has been answered. */
void client_end(struct client *s);

/* An answer could not be written: half of one would be worse than none. */
void client_give_up(struct client *s);

/* Closes now; calls go on without it. */
void client_close(struct client *s);

/* Reads nothing more of it, now, and holds nothing of it; says why if it can. */
void client_cut(struct client *s, const struct frame *no);

/* The time for its request is over. */
void client_timed_out(struct client *s);

const char *client_framing_name(const struct client *s);

/* One message at debug, where opts.log_messages wants it. */
void client_log(const struct client *s, const char *way, const char *data, size_t len);

/* For client.c: whether a stream may begin with these bytes, and then with this message; if not,
 * ret_no says why. */
bool client_may_open(const struct client *s, struct text first, struct frame *ret_no);
bool client_may_go_on(const struct client *s, const struct call *first, struct frame *ret_no);

/* For client.c: what was held back goes out behind the answers of the batch, or is forgotten. */
void client_release_held(struct client *s);
void client_forget_held(struct client *s);
