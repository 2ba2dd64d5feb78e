/* The requests that the load generator sends: one text with a hole for the id. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "message.h"

struct request {
	enum framing framing;
	struct buf before; /* the id */
	struct buf after;
	struct buf body; /* scratch: one request without its frame */
	bool has_id;
};

/*
 * `form` has $ID where the id goes and $PAD where a 10 KB request carries its
 * load; NULL is a plain ping.
 */
int request_init(struct request *r, enum framing framing, const char *form, bool is_10k);
void request_done(struct request *r);

/* Appends one framed request. */
void request_add(struct request *r, uint64_t id, struct buf *out);
