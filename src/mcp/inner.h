/* What the files of this room share. */
#pragma once

#include "base/list.h"
#include "base/sets.h"
#include "mcp/mcp.h"
#include "wire/crypto.h"

struct mcp_session;

enum mcp_era {
	MCP_LEGACY = 1 << 0,
	MCP_MODERN = 1 << 1,
};

/* What an answer is made of. */
enum mcp_kind {
	MCP_PLAIN,      /* the members that the handler has written */
	MCP_CACHED,     /* the same, and how long they may be kept */
	MCP_TOOL,       /* content and structured output */
	MCP_CONTENTS,   /* of a resource; may be kept */
	MCP_MESSAGES,   /* of a prompt */
	MCP_COMPLETION, /* values */
	MCP_INPUT,      /* questions */
	MCP_SILENT,     /* nothing at all */
};

/* Capabilities that a server has or has not. */
enum mcp_part {
	PART_BASE,
	PART_TOOLS,
	PART_RESOURCES,
	PART_PROMPTS,
	PART_COMPLETIONS,
	PART_LOGGING,
	PART_SUBSCRIBE,
	PART_CHANGES, /* anything that listeners are told */
	PART_TASKS,
};

/* Limits of one mcp. */
enum {
	MCP_SESSIONS_MAX = 4096,        /* over HTTP; the one unused for longest goes first */
	MCP_URIS_MAX = 1024,            /* subscribed to by one client */
	MCP_URI_MAX = 16 << 10,         /* bytes of one */
	MCP_SESSION_BYTES = 256 << 10,  /* URIs and the folder of one session */
	MCP_SESSIONS_BYTES = 16 << 20,  /* of all */
	MCP_SESSION_IDLE_MS = 86400000, /* over HTTP, without a request or a stream */
	MCP_SWEEP_MS = 60000,           /* between two looks for idle ones */
	MCP_LISTEN_BYTES = 1 << 20,     /* what one subscriptions/listen keeps */
	MCP_LISTENS_BYTES = 16 << 20,   /* of all */
	MCP_QUESTIONS_MAX = 64,         /* of one call */
	MCP_STATE_LIFE_S = 3600,        /* for a user to answer */
	MCP_COMPLETIONS_MAX = 100,      /* by the protocol */
	MCP_PAGE = 100,
	MCP_KEEP_ALIVE_MS = 25000,
	MCP_TRACKS_MAX = 64,         /* of a session: streams that may be gone on with */
	MCP_TRACK_BYTES = 256 << 10, /* of each: what its client may have missed */
	MCP_TRACKS_BYTES = 16 << 20, /* of all */
	MCP_TASKS_MAX = 1024,
	MCP_TASK_LIFE_MS = 3600000, /* from a task's beginning */
	MCP_TASKS_BYTES = 64 << 20, /* results of all */
};

/* A question, and its answer once it is there. In the call's arena. */
struct mcp_question {
	struct mcp_question *next;
	struct list link; /* in its session's questions while a legacy client is asked */
	struct mcp_call *by;
	struct text key;
	struct text method;
	struct text params;
	const struct value *answer;
	uint64_t id; /* 0: not sent */
	/* Called with the answer instead of running the handler again; or NULL. */
	void (*told)(void *arg, const struct value *answer);
	void *told_arg;
	bool asked; /* by the present run of the handler */
};

/* One message, from its envelope to its answer. In the call's arena, at call->opened. */
struct mcp_call {
	struct mcp *mcp;
	struct call *call;
	enum mcp_era era;
	enum mcp_kind kind;
	const struct mcp_row *row;   /* NULL: not found yet */
	const char *version;         /* of the protocol */
	struct mcp_session *session; /* legacy; held */
	const struct value *meta;    /* or NULL */
	const struct value *capabilities;
	struct text name; /* of the tool or prompt; the URI of a resource */
	const struct value *arguments;
	const struct mcp_tool *tool;
	struct mcp_task *about; /* the task that is asked for */
	const struct mcp_resource *resource;
	void *own; /* the owner's */

	/* of a refusal, where the usual words do not do */
	int64_t code;     /* 0: by the table */
	struct text data; /* JSON, or {NULL, 0} */
	int status;       /* HTTP; 0: by the code */

	/* what the handler has said */
	struct buf items; /* as JSON, with commas between them */
	unsigned n_items;
	const char *role;
	bool is_error;
	bool starved;   /* there was no memory for some of it */
	bool too_large; /* or some of it was larger than an answer may be */
	double progress;
	bool progressed;

	/* what it has asked */
	struct mcp_question *questions;
	unsigned n_questions;
	struct text state; /* JSON; {NULL, 0}: none */
	const struct value *kept;
	const char *lacking; /* a capability that the client has not */
	bool beside;         /* it goes on waiting if the client cannot answer */

	/* how it is answered */
	struct mcp_track *track; /* legacy HTTP of 2025-11-25, once it streams; or NULL */
	struct list stream_link; /* in mcp.streams while it streams */
	struct mcp_listen *listen;
	struct mcp_task *task;              /* that it has become; or NULL */
	const struct http_request *headers; /* only while the message is opened */
	bool http;
	bool takes_events; /* its Accept allows a stream */
	bool opens_session;
	bool withdrawn; /* by its client: nothing is answered */
	void (*on_cancel)(struct call *c, void *arg);
	void *cancel_arg;
};

/* What is offered, each kind in a list of its own. */
enum mcp_offer { OFFER_TOOLS, OFFER_RESOURCES, OFFER_TEMPLATES, OFFER_PROMPTS, N_MCP_OFFERS };

struct mcp_row {
	struct method method;
	unsigned eras;
	enum mcp_part part;
	enum mcp_kind kind;
	bool notification;
	enum mcp_offer offer; /* of a list */
	/* Finds out what the call is about, and may choose another method. NULL: nothing to do. */
	int (*open)(struct mcp_call *mc);
	/* The header Mcp-Name must say the same as this member of the params; or NULL. */
	const char *named_by;
};

struct mcp {
	struct mcp_opts opts;
	uint8_t key[SEAL_KEY];
	struct list offers[N_MCP_OFFERS]; /* struct mcp_entry */
	struct table session_ids;
	struct list sessions; /* the one used last at the end */
	unsigned n_http_sessions;
	size_t session_bytes; /* what all sessions keep of their clients' words */
	struct ticker *sweep; /* looks for idle sessions; NULL before the first one */
	struct list listens;  /* streams of modern clients */
	size_t listen_bytes;
	struct list streams;      /* open ones, over HTTP */
	struct timer *keep_alive; /* runs while there are any; or NULL */
	size_t track_bytes;       /* of all sessions */
	struct list tasks;        /* struct mcp_task, the oldest first */
	unsigned n_tasks;
	size_t task_bytes; /* of their results */
	uint64_t last_number;
};

/* One of what is offered. */
struct mcp_entry {
	struct list link;
	const void *what;     /* a tool, resource or prompt */
	struct arena arena;   /* of the schema */
	struct value *schema; /* a tool's own, for its headers; or NULL */
};

static inline struct mcp_call *opened(const struct call *c)
{
	return c->opened;
}

/* mcp.c */
bool mcp_has(const struct mcp *m, enum mcp_part part);
const struct mcp_entry *mcp_find_tool(const struct mcp *m, struct text name);
const struct mcp_prompt *mcp_find_prompt(const struct mcp *m, struct text name);

/* rows.c */
const struct mcp_row *mcp_find_row(struct text name);

/* open.c: refuses with a code, and an HTTP status, that the table does not have. data is JSON that
 * lives long enough, or {NULL, 0}. */
int mcp_refuse_with(struct mcp_call *mc, int64_t code, int status, struct text data,
		    const char *format, ...) __attribute__((format(printf, 5, 6)));
int mcp_text_param(struct mcp_call *mc, const char *name, struct text *ret);

/* legacy.c: the methods of the legacy era, and how a message finds its session */
/* The session, by the connection or by Mcp-Session-Id; and the version that its client speaks. */
int legacy_open(struct mcp_call *mc, const struct http_request *http);
/* A message without a method: the answer to a question of ours. */
struct done legacy_answer(struct call *c);

struct done legacy_initialize(struct call *c);
struct done legacy_empty(struct call *c);
struct done legacy_set_level(struct call *c);
struct done legacy_subscribe(struct call *c);
struct done legacy_unsubscribe(struct call *c);
struct done legacy_cancelled(struct call *c);
/* Cancels the other calls of the session: no client can receive their responses any more. */
void legacy_cancel_all(struct mcp_call *mc);

/* GET and DELETE of the endpoint. */
int legacy_open_get(struct mcp_call *mc, const struct http_request *http);
int legacy_open_delete(struct mcp_call *mc, const struct http_request *http);

/* modern.c */
bool mcp_is_modern(const struct mcp_call *mc, const struct http_request *http);
int mcp_open_modern(struct mcp_call *mc, const struct http_request *http);
extern const char *const mcp_modern_version;
/* The legacy version of that name, or NULL. */
const char *mcp_legacy_version(struct text name);
const char *mcp_newest_legacy(void);

/* header.c: REFUSE_PARAMS with -32020 where a header is missing, or differs from the body. */
int mcp_check_headers(struct mcp_call *mc, const struct http_request *http);
int mcp_check_param_headers(struct mcp_call *mc, const struct value *schema);

/* content.c */
/* Drops the items that the handler has written; and all that it has said, when it begins again. */
void mcp_drop_items(struct mcp_call *mc);
void mcp_start_over(struct call *c);

/* deliver.c */
void mcp_deliver(struct client *s, struct call *c);
void mcp_write_server_info(const struct mcp *m, struct json *j);

/* stream.c: a message about this call for its client, before the answer. -ENOTCONN, -ENOBUFS,
 * -ENOTSUP: it has none that could carry it. */
int mcp_tell(struct mcp_call *mc, struct text message);
/* Begins the stream, if it has not begun. */
int mcp_stream(struct mcp_call *mc);
void mcp_stream_ended(struct mcp_call *mc);
void mcp_event_add(struct buf *out, struct text id, struct text message);

/* lists.c, tool.c, resource.c, prompt.c */
struct done mcp_list(struct call *c);
int mcp_open_resources(struct mcp_call *mc);
int mcp_read_arguments(struct mcp_call *mc);
int mcp_open_tool(struct mcp_call *mc);
int mcp_open_resource(struct mcp_call *mc);
int mcp_open_prompt(struct mcp_call *mc);
int mcp_open_completion(struct mcp_call *mc);
void mcp_write_tool(struct json *j, const struct mcp_entry *e);

/* discover.c */
void mcp_write_capabilities(const struct mcp *m, struct json *j, enum mcp_era era);
struct done mcp_discover(struct call *c);

/* question.c, state.c */
int mcp_read_answers(struct mcp_call *mc);
void mcp_answered(struct mcp_question *q, const struct value *answer, bool failed);
void mcp_forget_questions(struct mcp_call *mc);
/* Asks a legacy client beside the handler. `told` is called once, on the loop: with the answer, or
 * with NULL if the client cannot answer. After a failure it is not called. */
int mcp_put_question(struct mcp_call *mc, const char *key, const char *method,
		     void (*told)(void *arg, const struct value *answer), void *arg,
		     struct mcp_question **ret_question);
void mcp_withdraw_question(struct mcp_question *q);
int mcp_check_answer(struct mcp_call *mc, struct text method, struct text key,
		     const struct value *answer);
int mcp_state_add(struct mcp_call *mc, struct buf *out);
int mcp_state_read(struct mcp_call *mc, struct text sealed, const struct value **ret_answers);
void mcp_write_questions(struct mcp_call *mc, struct json *j);

/* deliver.c: the result, or false for an error; and the whole message, sent as the answer. */
bool mcp_compose_bare(struct mcp_call *mc, struct json *j);
void mcp_send(struct client *s, struct mcp_call *mc, struct buf *message);

/* task.c */
int mcp_open_task(struct mcp_call *mc);
int mcp_open_update(struct mcp_call *mc);
struct done mcp_get_task(struct call *c);
struct done mcp_update_task(struct call *c);
struct done mcp_cancel_task(struct call *c);
int mcp_check_task_only(struct mcp_call *mc);
void mcp_task_waits(struct mcp_task *t, bool waits);
void mcp_task_ended(struct mcp_call *mc);
void mcp_tasks_free(struct mcp *m);
extern const char mcp_tasks_extension[];

/* roots.c */
struct done mcp_roots_changed(struct call *c);

/* listen.c */
struct done mcp_listen(struct call *c);
void mcp_listen_ended(struct mcp_call *mc);
void mcp_listen_write_meta(const struct mcp_call *mc, struct json *j);
