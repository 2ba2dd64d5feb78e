/*
 * The Model Context Protocol over call/: tools, resources, prompts and completion for clients of
 * both eras at once. Legacy ones (2024-11-05 to 2025-11-25) open a session with `initialize`;
 * modern ones (2026-07-28) bring everything with each request. Handlers see neither.
 *
 * A tool is a row like any method, and runs where its row says. What its handler writes by
 * call_result is the tool's structured output, an object; call_fail is a result with isError, with
 * the refusal's sentence for the model; call_fail_with is an error of the protocol. mcp_text and
 * its kin add content, and may be called on the handler's thread. Everything else here belongs to
 * the loop's thread.
 *
 * An owner makes a struct mcp, adds what it offers, and sets it as `state` of the endpoints that
 * speak a dialect made with MCP_DIALECT.
 */
#pragma once

#include "call/call.h"
#include "call/http.h"

struct mcp;

/* What annotations tell of a tool; without any, it may do everything. */
enum mcp_hints {
	MCP_READ_ONLY = 1 << 0,
	MCP_HARMLESS = 1 << 1,   /* it changes something, but destroys nothing */
	MCP_IDEMPOTENT = 1 << 2, /* a second time changes nothing more */
	MCP_CLOSED = 1 << 3,     /* it reaches nothing outside */
	MCP_TASK_ONLY = 1 << 8,  /* it takes too long for clients that know no tasks; not shown */
};

struct mcp_tool {
	struct method row;         /* name, doc (its description), fields, handle, where, flags */
	const char *title;         /* for people; or NULL */
	const char *input_schema;  /* JSON; NULL: made of the row's fields */
	const char *output_schema; /* JSON; or NULL */
	unsigned hints;
};

struct mcp_resource {
	struct method row; /* name, doc, handle, where, flags; no fields */
	/* Where "{id}" stands for one or more characters but '/', it is a template. The handler finds
	 * "uri" and the parts by name in c->request.params. */
	const char *uri;
	const char *title;
	const char *mime_type; /* of mcp_text; or NULL */
};

struct mcp_prompt {
	struct method row; /* name, doc, fields (strings), handle, where, flags */
	const char *title;
};

struct mcp_opts {
	struct server *server;
	const char *name; /* of this server, for clients */
	const char *version;
	const char *title;        /* or NULL */
	const char *instructions; /* for the model; or NULL */
	const uint8_t *key;       /* SEAL_KEY bytes that sign what clients keep; NULL: made now */
	unsigned page;            /* entries on a page of a list; 0: 100 */
	unsigned ttl_ms;          /* how long a client may keep lists and resources */
	unsigned keep_alive_ms;   /* between signs of life on a stream; 0: 25 s */
	unsigned session_idle_ms; /* until an unused session over HTTP ends; 0: a day */
	bool logs;                /* mcp_log is used */
	bool subscribes;          /* mcp_updated is used */
	bool tasks;               /* mcp_task is used */
	/* Rows of the owner's own in place of ours, where a table does not do; NULL: ours. They write
	 * the whole result: {"resources":[…],"nextCursor":…}. The fields are the owner's: cursor, and
	 * ref, argument, context. */
	const struct method *resources_list;
	const struct method *complete;
	/* Whether this client is offered a tool; NULL: all are. */
	bool (*offers)(const struct call *c, const struct mcp_tool *tool);
};

/* Texts are not copied: they outlive it, like everything that is added. */
int mcp_new(const struct mcp_opts *opts, struct mcp **ret_mcp);
/* After the server was freed, and before its loop is. Accepts NULL. */
void mcp_free(struct mcp *m);

/* -EEXIST: the name, or the URI, is taken. -EINVAL: it is none, or a schema is no JSON object. */
int mcp_add_tool(struct mcp *m, const struct mcp_tool *tool);
int mcp_add_resource(struct mcp *m, const struct mcp_resource *resource);
int mcp_add_prompt(struct mcp *m, const struct mcp_prompt *prompt);

/* Instead of opts.complete, when it is known only now. */
void mcp_set_complete(struct mcp *m, const struct method *complete);

/* ---- a dialect that speaks it ---- */

extern const struct error_row mcp_errors[N_REFUSALS];
extern const struct http_route mcp_routes[];
enum { MCP_N_ROUTES = 3, MCP_MESSAGE_MAX = 16 << 20 };

int mcp_open(struct call *c, const struct http_request *http);
bool mcp_overtakes(const struct value *message);
bool mcp_recognise(const struct value *first);
void mcp_http_refusal(struct buf *body, const struct http_refusal *no);

/* The members of a struct dialect, but for its name and its home. An owner that reads some messages
 * by itself passes functions that lead to mcp_open and mcp_recognise for all others. */
#define MCP_DIALECT_WITH(opens, recognises)                                                        \
	.framing = SPEAKS_ANY, .message_max = MCP_MESSAGE_MAX, .concurrent = true,                 \
	.whole_floats = true, .rules = {.flags = JSONRPC_NO_BATCH | JSONRPC_NO_POSITIONAL},        \
	.errors = mcp_errors, .open = (opens), .overtakes = mcp_overtakes,                         \
	.recognise = (recognises), .http_routes = mcp_routes, .n_http_routes = MCP_N_ROUTES,       \
	.http_silent_status = 202, .http_refusal = mcp_http_refusal
#define MCP_DIALECT MCP_DIALECT_WITH(mcp_open, mcp_recognise)

/* ---- what a call's client is ---- */

struct mcp *call_mcp(const struct call *c);
const char *mcp_version(const struct call *c);      /* "2026-07-28" */
struct text mcp_client_name(const struct call *c);  /* as it calls itself; {NULL, 0}: unknown */
const struct value *mcp_meta(const struct call *c); /* the request's _meta; or NULL */
/* The owner's own of this call, set when it was opened; NULL: nothing. */
void mcp_set_own(struct call *c, void *own);
void *mcp_own(const struct call *c);
/* Whether it has declared "elicitation", "sampling" or "roots". */
bool mcp_can(const struct call *c, const char *capability);

/* ---- content ---- */

/* A piece of text: of a tool's result, a resource's contents, a prompt's messages, or one value of
 * a completion. Without memory for it the call fails. */
void mcp_text(struct call *c, struct text text);

enum mcp_data { MCP_IMAGE, MCP_AUDIO, MCP_BLOB };
/* Bytes: an image or a sound of a tool or a prompt; for a resource always a blob. */
void mcp_data(struct call *c, enum mcp_data kind, const char *mime_type, struct text bytes);
/* A resource inside a tool's result or a prompt, and a link to one. mime_type may be NULL. */
void mcp_embed(struct call *c, struct text uri, const char *mime_type, struct text text);
void mcp_link(struct call *c, struct text uri, const char *name, const char *mime_type);
/* Any other item, as JSON. */
void mcp_item(struct call *c, struct text json);
/* Who says the following messages of a prompt: "user", which it is at first, or "assistant". */
void mcp_role(struct call *c, const char *role);

/* Answers a tool with isError and a sentence for the model; anything else with an error. */
struct done mcp_refuse(struct call *c, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- while a call runs, on the loop ---- */

/* Told only to clients that have asked for it, and only if it grows. total 0: unknown; message may
 * be NULL. */
void mcp_progress(struct call *c, double progress, double total, const char *message);

/* level: "debug" to "emergency". data is JSON. logger may be NULL. */
void mcp_log(struct call *c, const char *level, const char *logger, struct text data);

/*
 * Asks the client for something: "elicitation/create" its user, "sampling/createMessage" its model,
 * "roots/list" its folders. params is JSON and copied. The key names the question within the call.
 *
 * Returns the answer if it is there, and else NULL: then the handler asks what else it wants to know
 * and ends with mcp_wait. It is run again, from its start, when the answers are there. Only for rows
 * that run ON_LOOP, with METHOD_LATER.
 */
const struct value *mcp_ask(struct call *c, const char *key, const char *method,
			    struct text params);

/* What the handler wants to find when it is run again, as JSON; NULL: nothing was kept. A modern
 * client carries it, signed; it is not secret. */
void mcp_keep(struct call *c, struct text state);
const struct value *mcp_kept(const struct call *c);

/* Whether a call that waits stays open, so that it may also be answered from elsewhere meanwhile:
 * true for legacy clients. A modern client calls again. */
bool mcp_stays_open(const struct call *c);

/* Ends a run of the handler that has asked. on_cancel may be NULL, and is as for call_later. */
struct done mcp_wait(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg);

/* The same for a handler that is also answered from elsewhere, where mcp_stays_open: a client that
 * cannot answer does not end the wait. */
struct done mcp_wait_beside(struct call *c, void (*on_cancel)(struct call *c, void *arg),
			    void *arg);

/* Ends the stream that carries this call, so that its client comes again for the rest. Only HTTP
 * clients of 2025-11-25 can; for others nothing happens. */
void mcp_hang_up(struct call *c);

/*
 * Makes a tool's call a task, where its client knows them (the extension io.modelcontextprotocol/tasks,
 * modern clients only): the request is answered with the task's id, and the call goes on without its
 * client, which asks for its state, and for its result when it has ended. Questions are then answered
 * by the client's tasks/update, and a cancel by tasks/cancel. False: it stays an ordinary call. For
 * rows that run ON_LOOP, with METHOD_LATER; in a run of the handler, before or after call_later.
 *
 * Tasks are kept in memory, an hour from their beginning, and no longer than this struct mcp.
 */
bool mcp_task(struct call *c);

/*
 * For a row's `before`, or the handler of an ON_LOOP row with METHOD_LATER: calls `then` once, now
 * or later, when it is known which folder a legacy client works in. The client is asked once for
 * each session, if it has declared "roots".
 */
void mcp_with_root(struct call *c, void (*then)(struct call *c));
/* On the loop: the first of its roots that is a file: URI; {NULL, 0}: none is known. */
struct text mcp_root(const struct call *c);

/* ---- telling clients ---- */

enum mcp_lists { MCP_TOOLS = 1 << 0, MCP_PROMPTS = 1 << 1, MCP_RESOURCES = 1 << 2 };

/* A list is not what it was. */
void mcp_changed(struct mcp *m, unsigned lists);
/* A resource has other contents; those who have subscribed to it are told. */
void mcp_updated(struct mcp *m, struct text uri);
/* Whether anybody has; whether anybody has subscribed to anything. */
bool mcp_watched_any(const struct mcp *m);
bool mcp_watched(const struct mcp *m, struct text uri);

/* ---- pages ---- */

/* Cursors are opaque, and bound to their list: `list` is its method, `at` where the next page
 * begins. Appends to `out`. */
void mcp_cursor_add(const struct mcp *m, struct buf *out, const char *list, struct text at);
/* REFUSE_PARAMS for a cursor that is not ours, or another list's. */
int mcp_cursor_read(struct call *c, const char *list, struct text cursor, struct text *ret_at);
