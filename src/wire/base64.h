/* Base64 (RFC 4648), with padding, and read strictly: one text for one value. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

void base64_add(struct buf *out, struct text bytes);

/* -EINVAL: not base64 (a character outside the alphabet, wrong padding, white space, bits that
 * are lost). -ENOMEM. */
int base64_read(struct arena *a, struct text in, struct text *ret_bytes);
