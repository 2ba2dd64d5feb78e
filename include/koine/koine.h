/*
 * libkoine: host a JSON-RPC 2.0 server in your own program, or talk to one.
 *
 * One header, two libraries:
 *	koine-client.pc   to talk only; needs nothing but libc
 *	koine.pc          to host and to talk
 * Functions of the hosting half are marked [host].
 *
 * Results: 0 is success; a negative number is a fault, -errno; a positive number
 * is a refusal, an enum koine_refusal. Outputs are left unchanged unless the
 * result is 0 or the function says otherwise. Free functions accept NULL.
 *
 * The library never exits, never touches signals and never prints. Use a server
 * and everything that belongs to it from one thread only, the one that runs it
 * (koine_server_post is the exception). The same goes for a client. Different
 * servers and clients may be on different threads.
 */
#ifndef KOINE_KOINE_H
#define KOINE_KOINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The shared libraries export exactly what is declared here. */
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define KOINE_VERSION_MAJOR 0
#define KOINE_VERSION_MINOR 2
#define KOINE_VERSION_PATCH 0

/* "0.2.0": the version of the linked library, which may be newer than this header. */
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
	KOINE_TOO_LARGE,         /* a message exceeds a limit */
	KOINE_UNAVAILABLE,       /* a component that this needs is not running */
	KOINE_FORBIDDEN,         /* not for this caller */
	KOINE_TIMEOUT,           /* not done in time */
	KOINE_CANCELLED,         /* asked to stop, and stopped */
	KOINE_STOPPING,          /* the server is shutting down */
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

/* Parses one JSON text, strictly. The document keeps a copy of it. On a refusal `error` (may be
 * NULL) receives a sentence that says where the problem is. */
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
/* A member's key. Not NUL-terminated; NULL if the value is not a member of an object. */
const char *koine_value_key(const struct koine_value *v, size_t *ret_len);
/* A string's bytes or a number's digits. Not NUL-terminated; NULL for other kinds. */
const char *koine_value_text(const struct koine_value *v, size_t *ret_len);
/* The value's JSON source. Not NUL-terminated. */
const char *koine_value_raw(const struct koine_value *v, size_t *ret_len);
/* Returns false, and leaves *ret unchanged, unless the value has this type and fits. */
bool koine_value_int(const struct koine_value *v, int64_t *ret);
bool koine_value_double(const struct koine_value *v, double *ret);
bool koine_value_bool(const struct koine_value *v, bool *ret);

/* ---- writing JSON ------------------------------------------------------ */

struct koine_json;

/* The writer takes care of commas; the caller must match begin and end. Errors stick: after one,
 * koine_json_text returns NULL. */
int koine_json_new(struct koine_json **ret_json);
void koine_json_free(struct koine_json *j);
/* What has been written so far, NUL-terminated, valid until the next call; NULL after an error. */
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
/* The text must already be JSON. */
void koine_json_raw(struct koine_json *j, const char *json, size_t len);
void koine_json_value(struct koine_json *j, const struct koine_value *v);

/* ---- talking: a client ------------------------------------------------- */

struct koine_client;
struct koine_answer;

struct koine_dial_opts {
	size_t size;         /* sizeof(struct koine_dial_opts): set by KOINE_DIAL_OPTS */
	const char *framing; /* "line" (default), "length", "http" or "gob", which is Go's net/rpc
				  * (see koine_client_call); http: URLs imply http */
	uint32_t timeout_ms; /* for one call; 0: 30 s, over http 60 s */
	uint32_t retries;    /* after a failed connection attempt; 0: none */
	uint32_t retry_delay_ms; /* before the first retry, doubled each time; 0: 500 */
	const char *token;       /* http: sent as a bearer token */
	size_t message_max;      /* largest answer accepted; 0: 16 MiB */
	/* If not NULL, it is called with all bytes that are sent (out) or received. */
	void (*on_bytes)(void *arg, bool out, const char *data, size_t len);
	void *on_bytes_arg;
	/* If not 0, tries to connect every 300 ms for this long, instead of `retries` times, and
	 * then fails with -ETIMEDOUT. */
	uint32_t wait_ms;
	/* Unix sockets: who must be serving there. Otherwise koine_dial, and every later call
	 * that connects, is refused with KOINE_FORBIDDEN before anything is sent. 0: anybody;
	 * KOINE_OURSELVES: our own user or root; any other value: that user as well. */
	int64_t server_uid;
	char *error; /* koine_dial: receives a sentence if it fails; may be NULL */
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
 * Connects. `address` is "unix:PATH", a plain path that contains a slash, "tcp:HOST:PORT" or
 * "http://HOST[:PORT][/PATH]" (only numeric hosts or "localhost": this half needs no
 * resolver). `opts` may be NULL.
 *
 * Connection errors are retried as opts say. -ENOENT and -ECONNREFUSED mean that no server is
 * there.
 */
int koine_dial(const char *address, const struct koine_dial_opts *opts,
	       struct koine_client **ret_client);
/* Pending calls end with -ECANCELED. Do not call it from within a callback. */
void koine_client_free(struct koine_client *c);

/* The last fault or refusal of this client, in words. Never NULL. */
const char *koine_client_error(const struct koine_client *c);

/*
 * Calls and waits for the answer. `params` is JSON (an object or an array), or NULL for none.
 *
 * 0: the answer holds a result. KOINE_ERROR_ANSWER: it holds an error; *ret_answer is set in
 * this case, too. -ETIMEDOUT: no answer arrived in time. KOINE_PARSE, KOINE_PARAMS,
 * KOINE_TOO_LARGE, KOINE_LIMIT: nothing was sent, because params cannot be sent. -EBADMSG,
 * -EMSGSIZE: what arrived is not an answer, or is too large. -EACCES, -EPROTO: an http server
 * refused. Any other negative number: the connection failed; the next call dials again, as
 * opts say. A call that may have reached the server is never sent twice.
 *
 * With framing "gob" `method` is Go's name for it ("Arith.Multiply") and `params` is any JSON
 * value but null: an object becomes a struct, a whole number an int, one with a fraction a
 * float64; NULL is struct{}. Since Go is strict about types, {"$uint": 7}, {"$int": 7},
 * {"$float": 7}, {"$bytes": "00ff"}, {"$map": {...}} and {"$any": ...} express what JSON
 * cannot; see libkoine(3). Go omits members that are zero, so the result lacks them, too. An
 * error has net/rpc's text as its message. Its code is -32601 for a service or method that
 * does not exist, -32602 for params of the wrong type, and otherwise -32000.
 */
int koine_client_call(struct koine_client *c, const char *method, const char *params,
		      struct koine_answer **ret_answer);

/* Sends without expecting an answer. Returns when the socket has accepted everything, or, over
 * http, when the server has confirmed it. */
int koine_client_notify(struct koine_client *c, const char *method, const char *params);

void koine_answer_free(struct koine_answer *a);
const struct koine_value *koine_answer_result(const struct koine_answer *a); /* NULL for an error */
int64_t koine_answer_error_code(const struct koine_answer *a);               /* 0 for a result */
const char *koine_answer_error_message(const struct koine_answer *a, size_t *ret_len);
const struct koine_value *koine_answer_error_data(const struct koine_answer *a);
/* The whole answer as it arrived. */
const struct koine_value *koine_answer_whole(const struct koine_answer *a);

/* `result` is 0, KOINE_ERROR_ANSWER or a fault; `answer` is NULL for a fault. The answer is
 * freed when the callback returns. */
typedef void (*koine_answer_cb)(void *arg, int result, const struct koine_answer *answer);

/* Sends and returns. cb runs within koine_client_step or a call that waits. */
int koine_client_call_async(struct koine_client *c, const char *method, const char *params,
			    koine_answer_cb cb, void *arg, int64_t *ret_id);

/* Called for messages without an id that have a method, or a result (streams); method is NULL
 * for the latter. `whole` is valid until the callback returns. */
typedef void (*koine_notification_cb)(void *arg, const char *method, size_t method_len,
				      const struct koine_value *whole);
void koine_client_on_notification(struct koine_client *c, koine_notification_cb cb, void *arg);

/* For your own poll loop: wait for `events` (POLLIN, POLLOUT) on the descriptor, for at most
 * timeout_ms (-1: forever), then step. A step never blocks. The descriptor changes when the
 * client dials again, and is -1 between two attempts, so ask for it each time. A step returns
 * the fault that ended a connection, and -ENOTCONN when there is no connection and nothing to
 * dial for. */
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
	KOINE_TYPE_ARRAY,
	/* Arrays whose elements are of one type, for the schema that a tool's model reads. */
	KOINE_TYPE_STRINGS,
	KOINE_TYPE_NUMBERS,
	KOINE_TYPE_OBJECTS
};

struct koine_field {
	const char *name;
	enum koine_type type;
	bool required;
	const char *doc; /* one line, shown by rpc.discover */
};

/* A handler must answer exactly once, even a notification (nothing is sent then): with
 * koine_call_reply, koine_call_fail, or koine_call_later and one of the other two some time
 * later. It runs on the server's thread, and everything else waits meanwhile. Notifications that
 * it sends to its caller before it answers arrive before the answer. */
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
/* Closes clients and removes sockets. Open calls are cancelled, and posted functions are run; a
 * call that is still unanswered then is gone when this returns. Threads that may still post must
 * have ended by then: wait for them before, or in on_cancel of koine_call_later. Do not call it
 * from within a handler or callback. */
void koine_server_free(struct koine_server *s); /* [host] */

/* What went wrong, in words. Never NULL. */
const char *koine_server_error(const struct koine_server *s); /* [host] */

/* Adds a method; everything is copied. Call it before the first listen. -EINVAL: the name or
 * handler is missing, or a field has no name or occurs twice. -EEXIST: the name is taken
 * (rpc.discover and rpc.cancel already exist). */
int koine_server_add(struct koine_server *s, const struct koine_method *method); /* [host] */

#define KOINE_ANYBODY   (-1)
#define KOINE_ALLOW_MAX 32

/* Lets one more user connect, beside our own and root, or with KOINE_ANYBODY every user of this
 * machine. It applies to addresses listened at afterwards. Another user may have at most 256
 * connections at a time. -EINVAL: not a uid; KOINE_LIMIT: more than KOINE_ALLOW_MAX of them. */
int koine_server_allow(struct koine_server *s, int64_t uid); /* [host] */

/*
 * Listens at "unix:PATH", "tcp:HOST:PORT" or "http:HOST:PORT" (loopback only). `framing` is
 * "line", "length", "http", or NULL to recognise each connection by its first bytes. `bound`
 * (may be NULL) receives the actual address, which matters for port 0.
 *
 * Our own user and root may connect, and others as koine_server_allow says. A Unix socket is
 * private from the very first moment. At a port, a client that cannot be identified is
 * disconnected before anything is read (KOINE_UNAVAILABLE: this kernel cannot tell who
 * connects). A dead socket at the path is removed; a live one, or anything but a socket, is
 * refused.
 */
int koine_server_listen(struct koine_server *s, const char *address, const char *framing,
			char *bound, size_t bound_size); /* [host] */

/* Our loop: returns after koine_server_stop, which first lets running calls finish. A second
 * koine_server_stop cancels them and closes every connection, in the next turn of the loop. A
 * handler may call it, and its call is still answered. From another thread, post a function that
 * stops. For signals, use a loop of your own, or a thread that waits for them and posts. */
int koine_server_run(struct koine_server *s);   /* [host] */
void koine_server_stop(struct koine_server *s); /* [host] */

/* Your loop: poll the descriptor for reading, for at most timeout_ms (-1: forever, as with
 * poll), then step, whatever poll returned. The descriptor stays the same; ask for the timeout
 * in each round. A step never blocks, and handlers run within it. To end, leave the loop and
 * free the server. */
int koine_server_fd(const struct koine_server *s);         /* [host] */
int koine_server_timeout_ms(const struct koine_server *s); /* [host] */
void koine_server_step(struct koine_server *s);            /* [host] */

/* From any thread: runs fn on the server's thread, soon, in the order of posting. This is the
 * only such function, and the way to turn a worker's result into an answer: neither koine_call_
 * nor koine_json_ functions may be used on another thread. Do not call it from a signal handler.
 * 0 or -ENOMEM. */
int koine_server_post(struct koine_server *s, void (*fn)(void *arg), void *arg); /* [host] */

/* Runs fn on the server's thread after ms milliseconds, once, unless the server is freed before.
 * From the server's thread. 0 or -ENOMEM. */
int koine_server_after(struct koine_server *s, uint32_t ms, void (*fn)(void *arg),
		       void *arg); /* [host] */

/* Sends a notification to every client, or to the one with this connection number
 * (koine_call_connection). `params` is JSON, an object or an array, or NULL. -ENOTCONN when the
 * client is gone, -ENOBUFS when it does not read and its queue is full, -ENOTSUP when it uses
 * http or its framing is not known yet: nothing was sent to it. */
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
/* All parameters, as sent; NULL for none. */
const struct koine_value *koine_call_params(const struct koine_call *c); /* [host] */

/* About the call. */
const char *koine_call_method(const struct koine_call *c);   /* [host] */
const char *koine_call_dialect(const struct koine_call *c);  /* [host] */
const char *koine_call_framing(const struct koine_call *c);  /* [host] */
uint64_t koine_call_connection(const struct koine_call *c);  /* [host] 0: the client has left */
bool koine_call_is_notification(const struct koine_call *c); /* [host] */
/* Who calls. Over TCP only the uid is known, and pid and gid are -1. False if nothing is known.
 * Any output may be NULL. */
bool koine_call_peer(const struct koine_call *c, int64_t *ret_pid, int64_t *ret_uid,
		     int64_t *ret_gid); /* [host] */

/* Write the result here, then koine_call_reply. */
struct koine_json *koine_call_result(struct koine_call *c); /* [host] */
void koine_call_reply(struct koine_call *c);                /* [host] */
/* Answers with an error with your own code and message; data is JSON or NULL. */
void koine_call_fail(struct koine_call *c, int64_t code, const char *message,
		     const char *data); /* [host] */
/* The answer comes later; the call stays valid until then, even if the client leaves. Call this
 * before anything else can answer, such as a thread that you are about to start. on_cancel (may
 * be NULL) is called on the server's thread when the client cancels the call, or the server
 * stops. Answer soon after, there or later; a failure will do. */
void koine_call_later(struct koine_call *c, void (*on_cancel)(struct koine_call *c, void *arg),
		      void *arg); /* [host] */

/* ---- hosting: the Model Context Protocol [host] ------------------------ */

/*
 * Tools, resources and prompts for AI clients, over stdio, a Unix socket or HTTP. Clients of both
 * eras are served at once: 2024-11-05 to 2025-11-25, which open sessions, and 2026-07-28, which
 * does not. Handlers see no difference. See doc/mcp.md.
 *
 * A handler is an ordinary one: it runs on the server's thread, finds its arguments with
 * koine_call_param, and answers exactly once, now or later.
 */
struct koine_mcp;

enum koine_mcp_flags {
	KOINE_MCP_LOGS = 1 << 0,    /* koine_mcp_log is used */
	KOINE_MCP_UPDATES = 1 << 1, /* koine_mcp_updated is used: clients may subscribe */
	KOINE_MCP_TASKS = 1 << 2    /* koine_mcp_task is used */
};

struct koine_mcp_info {
	const char *name;         /* of this server */
	const char *version;      /* of this server */
	const char *title;        /* for people; or NULL */
	const char *instructions; /* tells a model when to use what; or NULL */
	unsigned flags;           /* enum koine_mcp_flags */
	unsigned page;            /* entries on one page of a list; 0: 100 */
	uint32_t ttl_ms;          /* how long a client may keep lists and resources */
	/* 32 bytes that sign what clients carry for us (cursors, the state of questions), for several
	 * processes or restarts that serve the same clients. NULL: random ones. */
	const unsigned char *key;
};

/* Everything is copied. It belongs to the server, and is freed with it. -EINVAL: the name or the
 * version is missing. */
int koine_mcp_new(struct koine_server *s, const struct koine_mcp_info *info,
		  struct koine_mcp **ret_mcp); /* [host] */

/* What clients are told of a tool. Without any of these, it may change and destroy everything. */
enum koine_tool_hints {
	KOINE_TOOL_READ_ONLY = 1 << 0,
	KOINE_TOOL_HARMLESS = 1 << 1,   /* it changes something, but destroys nothing */
	KOINE_TOOL_IDEMPOTENT = 1 << 2, /* a second time changes nothing more */
	KOINE_TOOL_CLOSED = 1 << 3,     /* it reaches nothing outside */
	KOINE_TOOL_TASK_ONLY = 1 << 8   /* refused to clients that know no tasks; not shown */
};

/*
 * A tool's arguments are decoded by its fields, and its schema is made of them; wrong arguments are
 * answered with a sentence for the model, and the handler does not run. What the handler writes to
 * koine_call_result, an object, is its structured output; koine_mcp_text and its kin add content. A
 * tool with output alone shows it as text, too. koine_mcp_refuse says what went wrong to the model,
 * koine_call_fail to the client.
 */
struct koine_tool {
	const char *name; /* of letters, digits and _.- */
	koine_handler handler;
	void *arg;
	const struct koine_field *fields;
	size_t n_fields;
	const char *description; /* for the model */
	const char *title;       /* for people; or NULL */
	unsigned hints;          /* enum koine_tool_hints */
	/* A JSON schema of your own; NULL: made of the fields. With one, arguments that are no fields
	 * are found in koine_call_params, unchecked. */
	const char *input_schema;
	const char *output_schema; /* or NULL */
};

/* "{id}" in the URI stands for text without '/', up to the character that follows it: then it is a
 * template, and the handler finds the text with koine_call_param(call, "id"); "uri" is the whole URI. The contents are what the
 * handler adds with koine_mcp_text and koine_mcp_data. */
struct koine_resource {
	const char *uri;
	koine_handler handler;
	void *arg;
	const char *name;
	const char *description; /* or NULL */
	const char *title;       /* or NULL */
	const char *mime_type;   /* of koine_mcp_text; or NULL */
};

/* The messages are what the handler adds with koine_mcp_text and its kin. */
struct koine_prompt {
	const char *name;
	koine_handler handler;
	void *arg;
	const struct koine_field *fields; /* strings */
	size_t n_fields;
	const char *description;
	const char *title; /* or NULL */
};

/* Everything is copied. -EINVAL: a name or handler is missing, or a schema is not a JSON object.
 * -EEXIST: the name, or the URI, is taken. They may be added while clients are connected;
 * koine_mcp_changed tells them. */
int koine_mcp_add_tool(struct koine_mcp *m, const struct koine_tool *tool);             /* [host] */
int koine_mcp_add_resource(struct koine_mcp *m, const struct koine_resource *resource); /* [host] */
int koine_mcp_add_prompt(struct koine_mcp *m, const struct koine_prompt *prompt);       /* [host] */

/* Completes arguments of prompts and places of templates: the handler finds `ref`, `argument` and
 * `context` as sent, and adds each value with koine_mcp_text. */
int koine_mcp_on_complete(struct koine_mcp *m, koine_handler handler, void *arg); /* [host] */

/* As koine_server_listen, for MCP clients: lines and HTTP on a Unix socket, HTTP on a port
 * ("http:127.0.0.1:8080"), where the path is /mcp. With a token (may be NULL) HTTP requests need it
 * as "Authorization: Bearer". */
int koine_mcp_listen(struct koine_mcp *m, const char *address, const char *token, char *bound,
		     size_t bound_size); /* [host] */

/* Serves the client that has started this program, usually at 0 and 1. The server stops when the
 * client closes `in` and everything is answered. While it runs, the descriptors do not block. */
int koine_mcp_stdio(struct koine_mcp *m, int in, int out); /* [host] */

/* Content, in the order of the calls. Texts are copied. */
void koine_mcp_text(struct koine_call *c, const char *text);               /* [host] */
void koine_mcp_text_n(struct koine_call *c, const char *text, size_t len); /* [host] */
/* Bytes: kind is "image", "audio", or "blob" for a resource. */
void koine_mcp_data(struct koine_call *c, const char *kind, const char *mime_type, const void *data,
		    size_t len); /* [host] */
/* A resource inside the result, and a link to one. mime_type may be NULL. */
void koine_mcp_embed(struct koine_call *c, const char *uri, const char *mime_type,
		     const char *text); /* [host] */
void koine_mcp_link(struct koine_call *c, const char *uri, const char *name,
		    const char *mime_type); /* [host] */
/* Any other item, as JSON. */
void koine_mcp_item(struct koine_call *c, const char *json); /* [host] */
/* Who says the following messages of a prompt: "user", as at first, or "assistant". A literal. */
void koine_mcp_role(struct koine_call *c, const char *role); /* [host] */

/* Answers: of a tool, a result that tells the model what is wrong; else an error. */
void koine_mcp_refuse(struct koine_call *c, const char *sentence); /* [host] */

/* Told to clients that have asked for it, as long as it grows. total 0: unknown. message may be
 * NULL. */
void koine_mcp_progress(struct koine_call *c, double progress, double total,
			const char *message); /* [host] */
/* level: "debug", "info", "notice", "warning", "error", "critical", "alert" or "emergency". */
void koine_mcp_log(struct koine_call *c, const char *level, const char *text); /* [host] */

/* Whether the client has declared "elicitation", "sampling" or "roots". */
bool koine_mcp_can(const struct koine_call *c, const char *capability); /* [host] */
/* "2025-11-25": what the client speaks. */
const char *koine_mcp_version(const struct koine_call *c); /* [host] */

/*
 * Asks the client: "elicitation/create" its user, "sampling/createMessage" its model, "roots/list"
 * its folders. `params` is JSON. The key names the question within the call.
 *
 * Returns the answer, an object, if it is there. Otherwise NULL: then the handler asks what else it
 * wants to know, calls koine_mcp_wait and returns. It runs again from its start when all answers are
 * there, and whatever it added before is forgotten. A client that has not declared what it is asked
 * for is refused by koine_mcp_wait; see koine_mcp_can.
 */
const struct koine_value *koine_mcp_ask(struct koine_call *c, const char *key, const char *method,
					const char *params); /* [host] */
/* The same for the user, with a form made of fields: {"action": "accept", "content": {…}}, or another
 * action: "decline", "cancel". */
const struct koine_value *koine_mcp_elicit(struct koine_call *c, const char *key,
					   const char *message, const struct koine_field *fields,
					   size_t n_fields); /* [host] */
/* The call must not be used any more when this returns; the next run gets it again. */
void koine_mcp_wait(struct koine_call *c); /* [host] */

/* For the next run: JSON, signed where the client carries it, and not secret; NULL: none was kept. */
void koine_mcp_keep(struct koine_call *c, const char *json);          /* [host] */
const struct koine_value *koine_mcp_kept(const struct koine_call *c); /* [host] */

/* Makes a tool's call a task, where the client knows them (the protocol's extension for tasks, of
 * 2026-07-28): its request is answered with the task's id now, the call goes on, and the client asks for
 * its state and in the end for its result. False: it stays an ordinary call. Either way answer it as
 * any call; cancels and answers to questions come as usual. Tasks are in memory, for an hour. */
bool koine_mcp_task(struct koine_call *c); /* [host] */

/* Ends the HTTP stream of this call, so that its client comes again for the answer. Only clients of
 * 2025-11-25 can; for others nothing happens. The call goes on. */
void koine_mcp_hang_up(struct koine_call *c); /* [host] */

enum koine_mcp_lists {
	KOINE_MCP_TOOLS = 1 << 0,
	KOINE_MCP_PROMPTS = 1 << 1,
	KOINE_MCP_RESOURCES = 1 << 2
};

/* Tells clients that lists have changed, or those who have subscribed to a resource that its
 * contents have. */
void koine_mcp_changed(struct koine_mcp *m, unsigned lists);  /* [host] */
void koine_mcp_updated(struct koine_mcp *m, const char *uri); /* [host] */

/* ---- logs [host] ------------------------------------------------------- */

/* level: 0 err, 1 warn, 2 info, 3 debug. The line has no newline. Without a callback nothing is
 * logged. There is one callback for the whole process: set it before the first server is made.
 * It is called on whatever thread has something to report. */
void koine_set_log(void (*log)(void *arg, int level, const char *line), void *arg,
		   int max_level); /* [host] */

#ifdef __GNUC__
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
