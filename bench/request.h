/* The requests that the load generator sends: one text with holes in it. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "gob.h"
#include "made.h"
#include "message.h"

enum hole { HOLE_NONE, HOLE_ID, HOLE_CONNECTION, HOLE_SERIES, HOLE_TEXT, HOLE_QUESTION };

enum { PIECES_MAX = 6, SERIES = 16 };

/* Some text, and what goes after it. */
struct piece {
	struct buf text;
	enum hole hole;
};

struct request {
	enum framing framing;
	struct gob_form gob; /* instead of pieces, for a Go server */
	struct piece pieces[PIECES_MAX];
	unsigned n_pieces;
	struct buf body;     /* scratch: one request without its frame */
	struct made_set set; /* what $TEXT and $QUESTION are made from */
	uint64_t n_made;     /* the next one's number */
};

/*
 * `form` has $ID where the id goes, $CONNECTION for the connection's number, $SERIES for
 * one that every SERIES requests of a connection share, $PAD where a 10 KB request
 * carries its load, $TEXT for a memory (never the same twice), $QUESTION for a question;
 * NULL is a plain ping. With gob it is what gob.h says. `set` and `n_made` are to be set before.
 */
int request_init(struct request *r, enum framing framing, const char *form, bool is_10k);
void request_done(struct request *r);

/* Appends what a connection begins with. */
void request_add_prologue(const struct request *r, struct buf *out);

/* Appends one framed request. */
void request_add(struct request *r, unsigned connection, uint64_t id, struct buf *out);
