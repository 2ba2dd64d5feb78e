/* What encode.c and define.c share: how a type is described to the other side. */
#pragma once

#include "wire/gob/encode.h"
#include "wire/gob/number.h"

/* Remembers the first failure. */
static inline void gob_fail(struct gob_encoder *e, int err)
{
	if (e->err == 0)
		e->err = err;
}

/* Puts the number of bytes from `start` on in front of them. */
static inline void gob_count_from(struct buf *b, size_t start)
{
	unsigned char count[GOB_UINT_MAX];
	size_t n = b->len - start;
	size_t size = gob_format_uint(count, n);

	if (buf_reserve(b, size) != 0)
		return;
	memmove(b->data + start + size, b->data + start, n);
	memcpy(b->data + start, count, size);
	b->len += size;
}

static inline void gob_add_text(struct buf *out, const char *text)
{
	gob_add_uint(out, strlen(text));
	buf_add_str(out, text);
}

/* The id of a type; defines it, and what it is made of, where that was not done before. */
int32_t gob_need_type(struct gob_encoder *e, const struct gob_shape *shape);
