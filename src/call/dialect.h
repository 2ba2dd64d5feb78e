/*
 * A dialect is const data: how its clients frame and shape messages, which
 * methods they know, the words for every refusal, where they look for the daemon. Dialects
 * translate, the engine decides.
 */
#pragma once

#include "call/method.h"
#include "wire/framing.h"
#include "wire/jsonrpc.h"

enum framing_choice {
	SPEAKS_ANY, /* recognised from the first bytes of each connection */
	SPEAKS_LINE,
	SPEAKS_LENGTH,
	SPEAKS_HTTP,
	SPEAKS_GOB, /* Go's net/rpc */
};

/* How an error's message is made from the table's words and the refusal's sentence. */
enum wording {
	WORDS_TEXT, /* the sentence alone; the words where there is none */
	WORDS_ONLY,
	WORDS_BOTH, /* "words: sentence" */
};

struct error_row {
	int64_t code;
	const char *words;
	enum wording wording;
	int http_status; /* 0: 200 */
};

struct dialect_life;
struct dialect_section;
struct client;
struct gate_refusal;
struct http_route;
struct route_found;

/* Where it listens, unless the settings say otherwise. */
struct dialect_home {
	const char *socket;       /* its name under --root and in the runtime directory */
	const char *variable;     /* of the environment, that names its socket; or NULL */
	const char *old_variable; /* that does where the first does not; or NULL */
	const char
		*path; /* where its clients look, "~/" is the user's; NULL: the runtime directory */
	const char *address; /* of one that has a port instead of a socket; or NULL */
	bool optional;       /* listens only where it is named */
	bool in_project;     /* its socket lies in a project's folder */
	/* The variable that tells programs of ours where it listens; or NULL. */
	const char *told_by;
	bool told_sessions; /* ... only those that run a session, and only of a Unix socket */
};

struct http_route_table {
	const struct http_route *rows;
	unsigned n;
};

/* A refused HTTP request. */
struct http_refusal {
	int status;
	struct text message;            /* by the table's words; followed by a NUL */
	const struct error *error;      /* of a call; NULL: it did not get that far */
	const struct http_route *route; /* NULL: there is none */
	/* The method that was asked for and does not exist; {NULL, 0}: not read. */
	struct text target;
};

struct dialect {
	const char *name;
	enum framing_choice framing;
	size_t message_max;
	bool concurrent; /* calls of one connection run side by side, answered as they finish */
	struct jsonrpc_rules rules;
	const struct error_row *errors; /* indexed by enum refusal */
	bool whole_floats;              /* 5.0 and 5e0 are integers, as JSON Schema has it */
	bool plain_errors;              /* errors never carry data */
	/* Words a parameter that is missing (v is NULL) or of the wrong type. May be NULL. */
	int (*explain_field)(const struct field *f, const struct value *v, struct error *error);
	/* Instead of call_decode, where parameters are read by other rules. May be NULL. */
	int (*decode)(struct call *c);
	/* Instead of JSON-RPC's rules and the registry, for a protocol with envelopes of its own:
	 * reads the whole message (c->tree; NULL: it is no JSON, as c->error says, or there is none),
	 * and sets the call's request and method, and usually `opened` and `deliver`. The message
	 * stays until the call has answered; http, NULL unless it came to a ROUTE_RPC, does not.
	 * May be NULL. */
	int (*open)(struct call *c, const struct http_request *http);
	/* With `open`: whether a message acts as soon as it is read (METHOD_OVERTAKES). */
	bool (*overtakes)(const struct value *message);
	/* As a guest of another dialect's listener: whether a connection whose first line is this
	 * speaks it. */
	bool (*recognise)(const struct value *first);

	const struct method *methods;
	unsigned n_methods;
	const struct method_table *const *more_methods; /* NULL-ended; or NULL */
	const struct method_table *debug_methods; /* only where the settings offer them; or NULL */
	bool lets_in;    /* only whom a human has let in gets past its gate */
	bool speaks_all; /* has the methods of all others, too, but for names of its own */

	/* The name of a dialect to whose listeners its clients may come, too; or NULL. */
	const char *guest_of;

	struct dialect_home home;
	bool sandboxed; /* who asks for a reload may not cause one: the settings are only read */
	bool makes_vectors;                    /* a model that we ask there is ourselves */
	const struct dialect_section *section; /* see dialect/life.h; or NULL */
	const struct dialect_life *life;       /* likewise */

	/* HTTP: the paths that take calls, NULL-ended, where a final '*' stands for any name
	 * (the call's `path_name`); the status for a notification; the status for a request that is
	 * too slow (0: 408); and the body of an error outside JSON-RPC (NULL: a JSON-RPC error). */
	const char *const *http_paths;
	int http_silent_status;
	int http_timeout_status;
	void (*http_error)(struct buf *body, int status, const char *text);

	/* HTTP endpoints that are not JSON-RPC (see http.h), tried before http_paths; the
	 * body of their errors, and then of all others instead of http_error (NULL:
	 * {"error":{"message":…}}); and other ways to bring the token. */
	const struct http_route *http_routes;
	unsigned n_http_routes;
	bool http_token_bare; /* "Authorization: TOKEN" is accepted */
	void (*http_refusal)(struct buf *body, const struct http_refusal *no);
	/* Writes the answer, with status 200, to a request whose body is too large, for clients that
	 * take any other status for a mistake and go on. False: none. May be NULL. */
	bool (*http_too_large)(struct buf *body, const struct http_refusal *no);
	/* What is answered while no token is set; NULL: then none is needed. */
	const char *http_token_unset;
	const char *http_token_header; /* a header that may hold it, or NULL */
	const char *http_token_wrong;  /* the words for a missing or wrong token, both 401 */
	/* Who may come in, in place of the rules for Host, Origin and token; or NULL. */
	bool (*http_gate)(const struct client *s, const struct http_request *r,
			  const struct route_found *found, struct gate_refusal *ret);
	const char *
		http_headers; /* lines of every answer that has none of its own, each ending in CRLF; or NULL */
	const char *http_refusal_type; /* of the bodies that http_refusal writes; NULL: JSON */
	/* More routes, made elsewhere; or NULL. */
	const struct http_route_table *http_more_routes;
};
