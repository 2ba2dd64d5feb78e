/*
 * libkoine: host a JSON-RPC 2.0 server in your own program, or talk to one.
 *
 * One header, two libraries:
 *	koine-client.pc   only to talk: needs nothing but libc
 *	koine.pc          to host and to talk
 * Functions of the hosting half are marked [host].
 *
 * Results: 0 is done; a negative number is a fault, -errno; a positive number
 * is a refusal, an enum koine_refusal. Outputs are left alone unless the
 * result is 0. Free functions accept NULL.
 *
 * The library never exits, never touches signals, never prints. A server and
 * all that belongs to it is used from one thread, the one that runs it
 * (koine_server_post is the exception); so is a client. Different servers and
 * clients may live on different threads.
 */
#ifndef KOINE_KOINE_H
#define KOINE_KOINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is declared here is what the shared libraries show. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define KOINE_VERSION_MAJOR 0
#define KOINE_VERSION_MINOR 1
#define KOINE_VERSION_PATCH 0

/* "0.1.0" of the library that is linked, which may be newer than the header. */
const char *koine_version(void);

/* ---- refusals ---------------------------------------------------------- */

enum koine_refusal {
	KOINE_PARSE = 1,         /* the text is not JSON */
	KOINE_REQUEST,           /* JSON, but not a request */
	KOINE_METHOD,            /* no such method */
	KOINE_PARAMS,            /* a parameter is missing or wrong */
	KOINE_INTERNAL,          /* something failed inside */
	KOINE_NOT_FOUND,         /* what was named does not exist */
	KOINE_CONFLICT,          /* it is not in a state that allows this */
	KOINE_LIMIT,             /* a queue or quota is full */
	KOINE_TOO_LARGE,         /* a message passes a limit */
	KOINE_UNAVAILABLE,       /* a part that this needs is not running */
	KOINE_FORBIDDEN,         /* not for this caller */
	KOINE_TIMEOUT,           /* not done in time */
	KOINE_CANCELLED,         /* asked to stop, and stopped */
	KOINE_STOPPING,          /* the server is on its way out */
	KOINE_ERROR_ANSWER = 100 /* client: the server answered with an error */
};

/* ---- values: JSON that was read ---------------------------------------- */

struct koine_value;
struct koine_doc;

enum koine_kind {
	KOINE_NULL,
	KOINE_FALSE,
	KOINE_TRUE,
	KOINE_NUMBER,
	KOINE_STRING,
	KOINE_ARRAY,
	KOINE_OBJECT
};

/* Reads one JSON text, strictly. The document keeps a copy of it. On a refusal
 * `error` (may be NULL) receives a sentence with the place. */
int koine_doc_parse(const char *text, size_t len, struct koine_doc **ret_doc, char *error,
		    size_t error_size);
void koine_doc_free(struct koine_doc *doc);
const struct koine_value *koine_doc_root(const struct koine_doc *doc);

/* All of these accept NULL, so that lookups can be chained. */
enum koine_kind koine_value_kind(const struct koine_value *v); /* KOINE_NULL for NULL */
const struct koine_value *koine_value_get(const struct koine_value *v, const char *key);
size_t koine_value_count(const struct koine_value *v); /* children */
const struct koine_value *koine_value_first(const struct koine_value *v);
const struct koine_value *koine_value_next(const struct koine_value *v);
/* A member's key. Not NUL-ended; NULL for what is no member of an object. */
const char *koine_value_key(const struct koine_value *v, size_t *ret_len);
/* A string's bytes or a number's digits. Not NUL-ended; NULL for other kinds. */
const char *koine_value_text(const struct koine_value *v, size_t *ret_len);
/* The value's JSON source. Not NUL-ended. */
const char *koine_value_raw(const struct koine_value *v, size_t *ret_len);
/* False, and *ret left alone, unless it is a number that fits. */
bool koine_value_int(const struct koine_value *v, int64_t *ret);
bool koine_value_double(const struct koine_value *v, double *ret);
bool koine_value_bool(const struct koine_value *v, bool *ret);

/* ---- writing JSON ------------------------------------------------------ */

struct koine_json;

/* Commas are its business, matching begin and end yours. An error sticks and
 * shows in koine_json_text. */
int koine_json_new(struct koine_json **ret_json);
void koine_json_free(struct koine_json *j);
/* What was written so far, NUL-ended, valid until the next call; NULL after an error. */
const char *koine_json_text(struct koine_json *j, size_t *ret_len);

void koine_json_begin_object(struct koine_json *j);
void koine_json_end_object(struct koine_json *j);
void koine_json_begin_array(struct koine_json *j);
void koine_json_end_array(struct koine_json *j);
void koine_json_key(struct koine_json *j, const char *key);
void koine_json_null(struct koine_json *j);
void koine_json_bool(struct koine_json *j, bool b);
void koine_json_int(struct koine_json *j, int64_t n);
void koine_json_double(struct koine_json *j, double d);
void koine_json_string(struct koine_json *j, const char *s);
void koine_json_text_n(struct koine_json *j, const char *s, size_t len);
/* Must be JSON already. */
void koine_json_raw(struct koine_json *j, const char *json, size_t len);
void koine_json_value(struct koine_json *j, const struct koine_value *v);

/* ---- talking: a client ------------------------------------------------- */

struct koine_client;
struct koine_answer;

struct koine_dial_opts {
	size_t size;         /* sizeof(struct koine_dial_opts): set by KOINE_DIAL_OPTS */
	const char *framing; /* "line" (default), "length", "http" or "gob", which is Go's net/rpc
				  * (see koine_client_call); http: URLs imply http */
	uint32_t timeout_ms; /* of one call; 0: 30 s, over http 60 s */
	uint32_t retries;    /* after a failed connection; 0: none */
	uint32_t retry_delay_ms; /* before the first retry, doubled each time; 0: 500 */
	const char *token;       /* http: sent as a bearer token */
	size_t message_max;      /* largest answer accepted; 0: 16 MiB */
	/* Sees every byte that is sent (out) or received, if not NULL. */
	void (*on_bytes)(void *arg, bool out, const char *data, size_t len);
	void *on_bytes_arg;
	/* Tries to connect every 300 ms, this long, instead of `retries` times; then
	 * -ETIMEDOUT. 0: does not. */
	uint32_t wait_ms;
	/* Unix sockets: who must serve there, or koine_dial and every later call that connects
	 * is refused with KOINE_FORBIDDEN before anything is sent. 0: whoever it is;
	 * KOINE_OURSELVES: our own user or root; another: that user as well. */
	int64_t server_uid;
	char *error; /* koine_dial: gets a sentence where it fails; may be NULL */
	size_t error_size;
};

#define KOINE_OURSELVES (-1)

#ifdef __cplusplus
#define KOINE_DIAL_OPTS                                                                            \
	{                                                                                          \
		sizeof(struct koine_dial_opts), NULL, 0, 0, 0, NULL, 0, NULL, NULL, 0, 0, NULL, 0  \
	}
#else
#define KOINE_DIAL_OPTS                                                                            \
	{                                                                                          \
		.size = sizeof(struct koine_dial_opts)                                             \
	}
#endif

/*
 * Connects. `address` is "unix:PATH", a plain path with a slash in it,
 * "tcp:HOST:PORT" or "http://HOST[:PORT][/PATH]" (numeric or "localhost" hosts
 * only: this half needs no resolver). `opts` may be NULL.
 *
 * Connection errors are retried as opts say; -ENOENT and -ECONNREFUSED are
 * what a server that is not there looks like.
 */
int koine_dial(const char *address, const struct koine_dial_opts *opts,
	       struct koine_client **ret_client);
/* Calls still under way are told -ECANCELED. Not from within a callback. */
void koine_client_free(struct koine_client *c);

/* The last fault or refusal of this client, in words. Never NULL. */
const char *koine_client_error(const struct koine_client *c);

/*
 * Calls and waits for the answer. `params` is JSON (an object or an array), or
 * NULL for none.
 *
 * 0: the answer holds a result. KOINE_ERROR_ANSWER: it holds an error; *ret_answer
 * is set here too. -ETIMEDOUT: no answer in time. KOINE_PARSE, KOINE_PARAMS,
 * KOINE_TOO_LARGE, KOINE_LIMIT: nothing was sent, params is not fit to be. -EBADMSG, -EMSGSIZE:
 * what came is no answer, or too large. -EACCES, -EPROTO: an http server said no.
 * Another negative number: the connection failed; it is dialled again, as opts
 * say, by the next call. A call that may have reached the server is never sent
 * twice.
 *
 * With framing "gob" `method` is what Go calls it ("Arith.Multiply") and `params` any JSON
 * value but null: an object becomes a struct, a whole number an int, one with a fraction a
 * float64; NULL is struct{}. Since Go is strict about types, {"$uint": 7}, {"$int": 7},
 * {"$float": 7}, {"$bytes": "00ff"}, {"$map": {...}} and {"$any": ...} say what JSON cannot;
 * see libkoine(3). What Go leaves out because it is zero is missing from the result too.
 * An error has net/rpc's words as message, and as code -32601 for a service or method that is
 * not there, -32602 for params of the wrong type, else -32000.
 */
int koine_client_call(struct koine_client *c, const char *method, const char *params,
		      struct koine_answer **ret_answer);

/* Sends without wanting an answer; returns when the socket has taken it all, over
 * http when the server has said that it did. */
int koine_client_notify(struct koine_client *c, const char *method, const char *params);

void koine_answer_free(struct koine_answer *a);
const struct koine_value *koine_answer_result(const struct koine_answer *a); /* NULL for an error */
int64_t koine_answer_error_code(const struct koine_answer *a);               /* 0 for a result */
const char *koine_answer_error_message(const struct koine_answer *a, size_t *ret_len);
const struct koine_value *koine_answer_error_data(const struct koine_answer *a);
/* The whole answer as it came. */
const struct koine_value *koine_answer_whole(const struct koine_answer *a);

/* `result` is 0, KOINE_ERROR_ANSWER or a fault, `answer` NULL for a fault. The
 * answer is freed when the callback returns. */
typedef void (*koine_answer_cb)(void *arg, int result, const struct koine_answer *answer);

/* Sends and returns; cb runs within koine_client_step or a waiting call. */
int koine_client_call_async(struct koine_client *c, const char *method, const char *params,
			    koine_answer_cb cb, void *arg, int64_t *ret_id);

/* Called for messages without id that have a method, or a result (streams);
 * method is NULL for the latter. `whole` is valid until it returns. */
typedef void (*koine_notification_cb)(void *arg, const char *method, size_t method_len,
				      const struct koine_value *whole);
void koine_client_on_notification(struct koine_client *c, koine_notification_cb cb, void *arg);

/* For your own poll loop: wait for `events` (POLLIN, POLLOUT) on the
 * descriptor, at most timeout_ms (-1: for ever), then step. A step never blocks.
 * The descriptor changes when the client dials again, and is -1 between two
 * tries, so ask each time. A step returns the fault that ended a connection, and
 * -ENOTCONN when there is none and nothing to dial for. */
int koine_client_fd(const struct koine_client *c);
short koine_client_events(const struct koine_client *c);
int koine_client_timeout_ms(const struct koine_client *c);
int koine_client_step(struct koine_client *c);

/* Waits at most timeout_ms and steps once. */
int koine_client_wait(struct koine_client *c, int timeout_ms);

/* ---- hosting: a server [host] ------------------------------------------ */

struct koine_server;
struct koine_call;

enum koine_type {
	KOINE_ANY,
	KOINE_TYPE_STRING,
	KOINE_TYPE_INT,
	KOINE_TYPE_NUMBER,
	KOINE_TYPE_BOOL,
	KOINE_TYPE_OBJECT,
	KOINE_TYPE_ARRAY
};

struct koine_field {
	const char *name;
	enum koine_type type;
	bool required;
	const char *doc; /* one line, shown by rpc.discover */
};

/* Must answer exactly once, notifications too (nothing is then sent): koine_call_reply,
 * koine_call_fail, or koine_call_later and then one of the two some time later. Runs on
 * the server's thread, and everything waits while it does. What it notifies its caller
 * of before it answers arrives before the answer. */
typedef void (*koine_handler)(struct koine_call *call, void *arg);

struct koine_method {
	const char *name;
	koine_handler handler;
	void *arg;
	const struct koine_field *fields; /* in the order of positional params */
	size_t n_fields;
	const char *doc; /* one line */
};

int koine_server_new(struct koine_server **ret_server); /* [host] */
/* Closes clients, removes sockets. Calls still open are cancelled, and what was
 * posted is run; a call that is not answered by then is gone when this returns.
 * Threads that may still post must be at their end by then: wait for them before,
 * or in on_cancel of koine_call_later. Not from within a handler or callback. */
void koine_server_free(struct koine_server *s); /* [host] */

/* What went wrong, in words. Never NULL. */
const char *koine_server_error(const struct koine_server *s); /* [host] */

/* Adds a method; everything is copied. Before the first listen. -EINVAL: without a name
 * or handler, or with a nameless or doubled field; -EEXIST: the name is taken
 * (rpc.discover and rpc.cancel are there already). */
int koine_server_add(struct koine_server *s, const struct koine_method *method); /* [host] */

#define KOINE_ANYBODY   (-1)
#define KOINE_ALLOW_MAX 32

/* Lets one more user connect, beside our own and root, or KOINE_ANYBODY: every user of this
 * machine. It counts for what is listened at afterwards. Another user has at most 256 connections
 * at a time. -EINVAL: no uid; KOINE_LIMIT: over KOINE_ALLOW_MAX of them. */
int koine_server_allow(struct koine_server *s, int64_t uid); /* [host] */

/*
 * Listens at "unix:PATH", "tcp:HOST:PORT" or "http:HOST:PORT" (loopback only).
 * `framing` is "line", "length", "http", or NULL to recognise each connection
 * from its first bytes. `bound` (may be NULL) receives where it really listens,
 * for port 0. This user and root may connect, others as koine_server_allow says: a Unix
 * socket is private from its first instant, and at a port whoever cannot be identified is
 * closed before anything is read (KOINE_UNAVAILABLE: this kernel cannot tell who connects);
 * a dead socket in its place is removed, a live one, or what is no socket, is refused.
 */
int koine_server_listen(struct koine_server *s, const char *address, const char *framing,
			char *bound, size_t bound_size); /* [host] */

/* Our loop: returns after koine_server_stop, which lets calls that run come to their
 * end first; a second call cancels them and closes every connection, in the next turn of
 * the loop. A handler may call it, and is still answered. From another thread, post a
 * function that stops; for signals, have a loop of your own, or a thread that waits for
 * them and posts. */
int koine_server_run(struct koine_server *s);   /* [host] */
void koine_server_stop(struct koine_server *s); /* [host] */

/* Your loop: poll the descriptor for reading, at most timeout_ms (-1: for ever, as poll
 * has it), then step, whatever poll said. The descriptor stays the same; ask for the
 * time each round. A step never blocks, and handlers run within it. To end, leave the
 * loop and free the server. */
int koine_server_fd(const struct koine_server *s);         /* [host] */
int koine_server_timeout_ms(const struct koine_server *s); /* [host] */
void koine_server_step(struct koine_server *s);            /* [host] */

/* From any thread: runs fn on the server's thread, soon, in the order of posting. The
 * one such function, and the way for a worker's result to become an answer: neither
 * koine_call_ nor koine_json_ functions may be used on another thread. Not from a
 * signal handler. 0 or -ENOMEM. */
int koine_server_post(struct koine_server *s, void (*fn)(void *arg), void *arg); /* [host] */

/* A notification to every client, or to the one with this connection number
 * (koine_call_connection). `params` is JSON, an object or an array, or NULL.
 * -ENOTCONN when it is gone, -ENOBUFS when it does not read and its queue is full,
 * -ENOTSUP when it speaks http, or has not said yet what it speaks: nothing was
 * sent to it. */
int koine_server_notify_all(struct koine_server *s, const char *method,
			    const char *params); /* [host] */
int koine_server_notify(struct koine_server *s, uint64_t connection, const char *method,
			const char *params); /* [host] */

/* How many clients are connected. */
size_t koine_server_clients(const struct koine_server *s); /* [host] */

/* ---- hosting: one call [host] ------------------------------------------ */

/* The parameter, checked against its field; NULL when it was not given. Valid
 * until the call is answered. */
const struct koine_value *koine_call_param(const struct koine_call *c,
					   const char *name); /* [host] */
/* All of them, as sent; NULL for none. */
const struct koine_value *koine_call_params(const struct koine_call *c); /* [host] */

/* Who called. */
const char *koine_call_method(const struct koine_call *c);   /* [host] */
const char *koine_call_dialect(const struct koine_call *c);  /* [host] */
const char *koine_call_framing(const struct koine_call *c);  /* [host] */
uint64_t koine_call_connection(const struct koine_call *c);  /* [host] 0: it has left */
bool koine_call_is_notification(const struct koine_call *c); /* [host] */
/* Who calls. Over TCP only the uid is known, pid and gid are -1. False where nothing is. Any
 * output may be NULL. */
bool koine_call_peer(const struct koine_call *c, int64_t *ret_pid, int64_t *ret_uid,
		     int64_t *ret_gid); /* [host] */

/* Write the result here, then koine_call_reply. */
struct koine_json *koine_call_result(struct koine_call *c); /* [host] */
void koine_call_reply(struct koine_call *c);                /* [host] */
/* An error with a code and message of your own; data is JSON or NULL. */
void koine_call_fail(struct koine_call *c, int64_t code, const char *message,
		     const char *data); /* [host] */
/* The answer comes later; the call stays valid until then, even if the client
 * leaves. Say so before anything else can answer it, such as a thread that is to be
 * started. on_cancel (may be NULL) is called on the server's thread when the client
 * cancels it, or the server stops; answer soon, there or later, a failure will do. */
void koine_call_later(struct koine_call *c, void (*on_cancel)(struct koine_call *c, void *arg),
		      void *arg); /* [host] */

/* ---- logs [host] ------------------------------------------------------- */

/* level: 0 err, 1 warn, 2 info, 3 debug. The line has no newline. Without a
 * callback nothing is logged. One for the whole process: set it before the first
 * server is made; it is called on whatever thread has something to tell. */
void koine_set_log(void (*log)(void *arg, int level, const char *line), void *arg,
		   int max_level); /* [host] */

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
