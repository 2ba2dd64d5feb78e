/*
 * JSON-RPC 2.0 envelopes: what a request is, and how answers are composed. No I/O, no methods:
 * only the shape. Where dialects differ, struct jsonrpc_rules says how.
 */
#pragma once

#include <stdbool.h>

#include "wire/json.h"

enum jsonrpc_flags {
	JSONRPC_NO_BATCH = 1 << 0,       /* an array is not a request */
	JSONRPC_NO_POSITIONAL = 1 << 1,  /* params must be an object */
	JSONRPC_NULL_ID_SILENT = 1 << 2, /* "id": null is a notification too */
	JSONRPC_NO_SILENCE = 1 << 3,     /* a missing id is answered, with null */
	JSONRPC_ANY_ID = 1 << 4,         /* arrays, objects and booleans are ids too */
	JSONRPC_PARAMS_WRONG =
		1 << 6, /* params of another kind are invalid params, not an invalid request */
	JSONRPC_ID_SECOND = 1 << 5,     /* answers are written jsonrpc, id, result */
	JSONRPC_FAULT_NULL_ID = 1 << 7, /* an invalid request is answered with null, not its id */
	JSONRPC_PARAMS_LOOSE = 1 << 8,  /* params that are not an object count as none */
	JSONRPC_PARAMS_ANY = 1 << 9, /* params of any kind are left to the method; null is kept */
	JSONRPC_ANY_CASE = 1 << 10,  /* members of the envelope are found in upper or lower case */
	JSONRPC_HTML_SAFE = 1 << 11, /* answers are written as json_escape_html does */
};

/* What can be wrong with an envelope, in the order in which it is checked. */
enum jsonrpc_fault {
	JSONRPC_NOT_OBJECT, /* nor a batch */
	JSONRPC_NO_VERSION, /* jsonrpc is missing or not "2.0" */
	JSONRPC_NO_METHOD,  /* method is missing, no string, or "" */
	JSONRPC_BAD_PARAMS, /* params is neither object nor array */
	JSONRPC_POSITIONAL, /* params is an array, where there are none */
	JSONRPC_BAD_ID,
};

struct jsonrpc_rules {
	unsigned flags;
	/* What to say when it is not a request; NULL: the specification's words. */
	const char *no_version; /* jsonrpc is missing or not "2.0" */
	const char *no_method;  /* method is missing, no string, or "" */
	const char *bad_params; /* params is neither object nor array */
	const char *bad_id;
	const char *not_object; /* not an object, nor a batch */
	/* Words it instead of all these, with the value at fault (NULL: it is missing), and says
	 * which refusal it is. May be NULL. */
	int (*explain)(enum jsonrpc_fault fault, const struct value *v, struct error *error);
};

struct jsonrpc_request {
	struct text method;
	const struct value *params; /* NULL: none, or null */
	struct text id;             /* its source, to be echoed; {NULL, 0}: unknown */
	bool silent;                /* a notification: nothing is answered */
};

/*
 * Examines one request object.
 *
 * Refuses with REFUSE_REQUEST, or REFUSE_PARAMS for positional parameters where there are
 * none, unless rules->explain says otherwise. ret->id and ret->silent are set in any case, as
 * far as they are known, because the refusal must carry the id. What is refused with
 * REFUSE_PARSE has none.
 */
int jsonrpc_read(const struct jsonrpc_rules *rules, const struct value *v,
		 struct jsonrpc_request *ret, struct error *error);

/*
 * An answer is begun, then its result (or error) is written with the writer, then it is ended.
 */
void jsonrpc_begin_result(const struct jsonrpc_rules *rules, struct json *j, struct text id);
void jsonrpc_end_result(const struct jsonrpc_rules *rules, struct json *j, struct text id);

/* A whole error answer. data is JSON, or {NULL, 0} for none. */
void jsonrpc_write_error(const struct jsonrpc_rules *rules, struct json *j, struct text id,
			 int64_t code, struct text message, struct text data);

/* A whole notification, or with an id a request. params is JSON, or {NULL, 0}. */
void jsonrpc_write_request(struct json *j, struct text method, struct text params, struct text id);
