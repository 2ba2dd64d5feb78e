/*
 * Go's net/rpc over gob: a header, then a body. No I/O.
 *
 * A request is Request{ServiceMethod, Seq} and the arguments, an answer is
 * Response{ServiceMethod, Seq, Error} and the reply, or any value where Error says why there
 * is none. Calls of one connection are answered in any order and known by Seq.
 *
 * One reader and one writer for each connection, on both sides: types are defined once for
 * a connection and direction, so what was written must be sent, and in that order.
 *
 * As a framing of call/client: netrpc_next is its `next` (the reader is the state, eof and
 * *ret_used mean the same, netrpc_in_message is `in_message`). A message is a tree
 * instead of text: give it an arena of the client, and hand that on to the call by value
 * (struct arena may be copied) when NETRPC_MESSAGE came; then nothing is parsed again. There
 * is no `wrap` of text: the dialect's row names the shapes of its arguments, for netrpc_fit,
 * and of its reply, for netrpc_answer. Write into the connection's buffer on the loop, in the
 * order of sending.
 */
#pragma once

#include "wire/gob/decode.h"
#include "wire/gob/encode.h"

enum netrpc_side { NETRPC_SERVER, NETRPC_CLIENT };

enum netrpc_kind {
	NETRPC_MORE,    /* no whole message yet */
	NETRPC_MESSAGE, /* a header with its body */
	/* `error` says it; the stream cannot be used any more: close without an answer, as Go does.
	 * Every later call says the same. */
	NETRPC_REFUSED,
};

struct netrpc_message {
	struct text method; /* all of it: "Agent.Chat" */
	uint64_t seq;
	struct text error; /* a client's; "": the call went well */
	const struct value
		*body; /* NULL: cannot be had, and body_error says it; a server answers that */
	const struct gob_type *body_type;
	/* Of NETRPC_REFUSED, the reader's; and where there is no body, in the arena. */
	const struct error *body_error;
};

struct netrpc_reader {
	struct gob_decoder gob;
	enum netrpc_side side;
	bool has_header; /* and its body is to come */
	int32_t plain;   /* the type of headers laid out like Go's; 0: none came yet */
	struct netrpc_message message;
	const struct error *broken; /* NULL: not yet */
};

/* A server reads requests, a client reads answers. */
void netrpc_reader_init(struct netrpc_reader *r, enum netrpc_side side,
			const struct gob_limits *limits);
void netrpc_reader_done(struct netrpc_reader *r);

/*
 * The next message, into the arena, which must be the same until a message has ended. The
 * rest is as in gob_next.
 */
enum netrpc_kind netrpc_next(struct netrpc_reader *r, struct arena *a, const char *in, size_t len,
			     bool eof, size_t *ret_used, struct netrpc_message *ret);

/* True while a message has begun and not ended. */
bool netrpc_in_message(const struct netrpc_reader *r);

/* Refuses a body that is not what was expected, in Go's words. */
int netrpc_fit(struct netrpc_reader *r, const struct netrpc_message *m,
	       const struct gob_shape *shape, struct error *error);

/*
 * "Agent" and "Chat" of "Agent.Chat": the last dot counts. Refuses with REFUSE_METHOD a name
 * without one. The other two functions word that there is no such service, or no such method.
 */
int netrpc_split(struct text method, struct text *ret_service, struct text *ret_name,
		 struct error *error);
int netrpc_no_service(struct text method, struct error *error);
int netrpc_no_method(struct text method, struct error *error);

enum { NETRPC_NAME_MAX = 1 << 20 };

/*
 * The error of one of these refusals with the name byte for byte, as Go sends it: error->text is cut
 * and has no NUL. A name of more than NETRPC_NAME_MAX bytes stays cut.
 */
int netrpc_name_error(struct arena *a, const struct error *error, struct text method,
		      struct text *ret_error);

struct netrpc_writer {
	struct gob_encoder gob;
	size_t start;           /* where the message begins in the output */
	struct gob_mark before; /* what was known then */
	const struct gob_shape *header;
	int32_t header_id; /* the id of its type; 0: not sent yet */
	int err;           /* of the header */
};

/* max: bytes of one gob message. */
void netrpc_writer_init(struct netrpc_writer *w, size_t max);
void netrpc_writer_done(struct netrpc_writer *w);

/*
 * A request, or a successful answer: the header, then the body is pushed to the encoder that
 * is returned, then netrpc_end. On failure out is as it was before the header, and the writer
 * can go on.
 */
struct gob_encoder *netrpc_call(struct netrpc_writer *w, struct buf *out, struct text method,
				uint64_t seq, const struct gob_shape *args);
struct gob_encoder *netrpc_answer(struct netrpc_writer *w, struct buf *out, struct text method,
				  uint64_t seq, const struct gob_shape *reply);
int netrpc_end(struct netrpc_writer *w, struct buf *out);

/* An answer with a body that this writer has written before, without any definitions. */
int netrpc_answer_again(struct netrpc_writer *w, struct buf *out, struct text method, uint64_t seq,
			struct text body);

/* An error answer; its body is an empty struct, as Go's is. */
int netrpc_error(struct netrpc_writer *w, struct buf *out, struct text method, uint64_t seq,
		 struct text error);
