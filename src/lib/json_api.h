/*
 * A JSON writer of the public API. It writes into its own buffer, or into another: a call's.
 */
#pragma once

#include "base/buf.h"
#include "koine/koine.h"
#include "wire/json.h"

struct koine_json {
	struct json json;
	struct buf *out; /* &own, or the buffer it was put over */
	struct buf own;
};

/* A writer over `out`, which outlives it; there is nothing to free. */
static inline void koine_json_over(struct koine_json *j, struct buf *out)
{
	*j = (struct koine_json) {.json = json_writer(out), .out = out};
}
