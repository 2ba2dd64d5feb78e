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

/* An answer of at least this many bytes is handed over to the connection instead of copied. */
enum { HANDED_OVER = 64 << 10 };

/* Someone who wants to know when a client closes or can take more. Lives in what they keep for
 * that client. */
struct client_hook {
	struct client_hook *next;
	/* The client may still be read from memory, but nothing can be sent to it. */
	void (*closed)(struct client_hook *h);
	/* The client took some of what was waiting for it, and little is left. May be NULL. */
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
	uint64_t small_state[3]; /* room for framing_state, if it fits */

	/* Bytes that came and are not used yet: in[in_start..in.len). During on_bytes they may
	 * still be in the connection's own buffer: `fresh`. */
	struct buf in;
	size_t in_start;
	struct text fresh;
	size_t input_held; /* as counted by the server: these bytes, and what the framing keeps */
	uint64_t input_since_ms;
	uint64_t bytes_in;

	struct list running;
	struct list waiting;
	unsigned n_running;
	unsigned n_waiting;
	size_t waiting_bytes;
	struct batch *batch;
	/* Notifications waiting behind the answer of a batch, or of a call that holds them. */
	struct buf *held;
	unsigned n_holding; /* how many such calls there are */
	struct client_hook *hooks;
	struct upgraded *upgraded; /* who has taken the connection over, or NULL */

	uint64_t deadline_ms;
	uint64_t deadline_bytes; /* bytes_in when it was set */
	struct peer peer;
	bool looked : 1;          /* `confined` is known */
	bool confined : 1;        /* the client must not write (call/access) */
	bool http_keep_alive : 1; /* of the request that is being answered */
	bool http_head : 1;
	bool http_old : 1; /* HTTP/1.0 */
	bool pumping : 1;
	bool eof : 1;
	bool gone : 1;    /* nobody reads what we would send */
	bool closing : 1; /* nothing more is read; closed when everything is answered */
	bool read_ahead_full : 1;
	bool refused_ahead : 1; /* what follows the waiting calls is no message */
	bool heard : 1;         /* a first message has come, and was allowed */
	bool deaf : 1;          /* input is thrown away; its end closes the connection */
};

/* Takes fd, also on failure. */
int client_new(struct server *s, struct endpoint *e, int fd, const struct peer *peer);

/* The process that connected to a Unix socket, see process_of_peer. False: it is gone, or unknown. */
bool client_process(const struct client *s, pid_t *ret_pid, long long *ret_started);

/* Goes on with what waits: after a call was answered, or the client read something. */
void client_pump(struct client *s);

/* A call of this client has answered. Called by call.c, on the loop. */
void client_answered(struct client *s, struct call *c);

/* Ends the stream of a call, if it has one; the call goes on without its client, which was answered
 * or is answered elsewhere. Later requests of that client do not wait for it. */
void client_let_go(struct call *c);

/* Cancels the running or waiting call with this id. False if there is none. */
bool client_cancel(struct client *s, struct text id);
/* The waiting call with this id never runs, and is not answered. */
void client_forget(struct client *s, struct text id);

/* Sends a message that is not an answer; behind the answers of a batch that is under way.
 * -ENOBUFS when the client does not read (the message is dropped and counted), -ENOTSUP over
 * HTTP. */
int client_notify(struct client *s, const char *data, size_t len);

/* The same for several messages; client_flush must follow in the same turn. */
int client_post(struct client *s, const char *data, size_t len);

/* Notifications that come while this call runs go out behind its answer: the call only goes on
 * after the commit that caused them. */
void client_hold_for(struct call *c);

/* Whether it can be sent notifications: it is connected, and not over HTTP. */
bool client_hears(const struct client *s);

/* Sends what it can if more than max bytes wait for the client. True: it takes messages now that
 * could also come later, and no batch of answers is held back that these must not overtake. */
bool client_make_room(struct client *s, size_t max);

/* As client_notify, however much waits; client_flush must follow in the same turn. */
int client_append(struct client *s, const char *data, size_t len);
void client_flush(struct client *s);

/* From now on the client only listens: whatever it sends, and has sent behind the running call,
 * is thrown away. When it stops sending, the connection is closed. */
void client_deafen(struct client *s);

/* Bytes for the client in all: written for it, and sent. */
uint64_t client_written(const struct client *s);
uint64_t client_sent(const struct client *s);

void client_add_hook(struct client *s, struct client_hook *h);
/* The hook with this function, or NULL. */
struct client_hook *client_find_hook(const struct client *s, void (*closed)(struct client_hook *h));
void client_tell_hooks(struct client *s); /* for client.c: the client closes */
void client_tell_drained(struct client *s);

/* Reads nothing more; closes when running calls are answered. */
void client_end(struct client *s);

/* An answer could not be written: half of one would be worse than none. */
void client_give_up(struct client *s);

/* Closes now; its calls go on without it. */
void client_close(struct client *s);

/* Stops reading now and drops all input; says why if it can. */
void client_cut(struct client *s, const struct frame *no);

/* The time for its request is over. */
void client_timed_out(struct client *s);

const char *client_framing_name(const struct client *s);

/* One message at debug level, where opts.log_messages asks for it. */
void client_log(const struct client *s, const char *way, const char *data, size_t len);

/* For client.c: the client is gone, not wrong; its calls go on, and nobody hears the answers. True:
 * some are watched, and end with it: the second function asks them to. The third does when the
 * client only sends nothing more. */
bool client_detach_calls(struct client *s);
void client_cancel_left(struct server *s);
void client_cancel_watched(struct client *s);
/* The client is not read any more, and what only it could end ends. */
bool client_cancel_endless(struct client *s);

/* For client.c: whether a stream may begin with these bytes, and then with this message; if not,
 * ret_no says why. */
bool client_may_open(const struct client *s, struct text first, struct frame *ret_no);
bool client_may_go_on(const struct client *s, const struct call *first, struct frame *ret_no);

/* For client.c: notifications that were held back go out behind the answers of the batch, or are
 * dropped. */
void client_release_held(struct client *s);
void client_forget_held(struct client *s);

/*
 * For client.c: how answers are wrapped and handed to the connection. Short ones are copied
 * into its buffer; of long ones the buffer itself is handed over.
 */

/* One message; over HTTP with that status. */
void answer_send_text(struct client *s, int status, const char *data, size_t len);

/* The answer of a call or a batch; the buffer may be taken. */
void answer_send(struct client *s, int status, struct buf *out);

/* The response where there is no answer. */
void answer_send_silence(struct client *s);

/* Adds a call's answer to its batch; sends the batch. */
void answer_batch(struct batch *b, struct call *c);
void answer_finish_batch(struct client *s);
