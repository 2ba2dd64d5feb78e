/*
 * A client's side of Go's net/rpc: wire/netrpc between calls of JSON and a Go server.
 *
 * Coming in it is a framing like the others: an answer is handed on as the JSON-RPC that
 * would have said the same, so whatever becomes of an answer is one road for all.
 * Going out it is not, because the bytes of a call depend on the connection: types are
 * defined once on each. So a call is kept as a tree, and written when it goes out.
 */
#pragma once

#include "lib/gob_params.h"
#include "lib/value_api.h"
#include "wire/framing.h"
#include "wire/netrpc.h"

/*
 * {"id":SEQ,"result":...} or {"id":SEQ,"error":{"code":...,"message":...}}. The code is -32601
 * where net/rpc has no such method, -32602 where gob says that the arguments do not fit, else
 * -32000. In a result, []byte and what only Go understands is {"$bytes": "hex"}.
 */
extern const struct framing framing_gob_answer;

struct caller_gob {
	struct netrpc_writer writer; /* of the connection at hand */
	struct gob_shapes shapes;
	size_t max;
};

/* One call's parameters. */
struct gob_call {
	struct koine_doc doc;
	const struct gob_shape *shape;
};

/* max: bytes of one call. */
int caller_gob_new(size_t max, struct caller_gob **ret_gob);
void caller_gob_free(struct caller_gob *g);

/* For a new connection, which has been told no types yet. */
void caller_gob_restart(struct caller_gob *g);

/* Forgets every shape; no call may have one, and the next connection is new. */
void caller_gob_forget(struct caller_gob *g);

/* Reads parameters, which may be NULL. Refuses as gob_params_read and doc_read do. After any
 * result but 0 there is nothing to undo. */
int gob_call_read(struct caller_gob *g, const char *params, struct gob_call *ret_call,
		  struct why *why);
void gob_call_done(struct gob_call *call);

/* Appends the call, and on failure nothing. */
int caller_gob_write(struct caller_gob *g, const char *method, uint64_t seq,
		     const struct gob_call *call, struct buf *out);
