/*
 * Calls of Go's net/rpc as bytes: enough of gob to number a call, and to see which call an
 * answer belongs to. Like answer.h it is written apart from the project's own codec; what is
 * inside a call comes from Go itself (peers/gob, "form").
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/text.h"

struct gob_form {
	struct buf method;
	struct buf prologue; /* the definitions that a connection begins with */
	struct buf body;     /* of every call */
};

/* "METHOD PROLOGUE BODY", the last two in hexadecimal. 0 or -EINVAL. */
int gob_form_init(struct gob_form *f, const char *text);
void gob_form_done(struct gob_form *f);

void gob_add_call(const struct gob_form *f, uint64_t seq, struct buf *out);

/* Where in the answers a connection is. */
struct gob_answers {
	bool has_header; /* its body is to come */
	uint64_t seq;
};

/* One whole message at the front; as message_cut. */
ssize_t gob_cut(const char *data, size_t len, struct text *ret_body);

/*
 * Takes one message: a definition, the header of an answer, or its body.
 *
 * 1 when an answer has ended and *ret_seq is its number, 0 when it has not, -EPROTO for an error
 * or what is none of these, and *ret_wrong says what.
 */
int gob_take(struct gob_answers *a, struct text message, uint64_t *ret_seq, const char **ret_wrong);
