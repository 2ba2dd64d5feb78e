/*
 * A tree of structured data as bytes, and back: how the store keeps what it does not
 * look into. Our own form, the same on every machine: a byte for the kind, lengths as
 * varints, text as it is.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/value.h"

/* NULL packs as null. Failures stick to out->err. */
void value_pack(struct buf *out, const struct value *v);

/* The texts of the tree point into `bytes`, and nothing has a source (raw is NULL). -EBADMSG for
 * what value_pack did not make; nothing is allocated from a count that was only claimed, and
 * nesting is bounded. */
int value_unpack(struct arena *a, struct text bytes, struct value **ret_value);

/* A tree of its own, in the arena. */
int value_copy(struct arena *a, const struct value *v, const struct value **ret_copy);
