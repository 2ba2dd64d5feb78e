/*
 * gob's numbers.
 *
 * An unsigned number below 128 is one byte; else one byte says, as 256 - n, how many bytes
 * follow, big-endian. A signed one has its sign in the lowest bit, so that small ones
 * stay short. A float is its IEEE bytes from the last to the first, because the last ones
 * are mostly zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

enum { GOB_UINT_MAX = 9 /* bytes */ };

enum gob_number {
	GOB_NUMBER_OK,
	GOB_NUMBER_SHORT, /* the bytes end inside it */
	GOB_NUMBER_BAD,   /* more than eight bytes are announced */
};

/* What is to be read: from p to end. */
struct gob_in {
	const unsigned char *p;
	const unsigned char *end;
};

static inline size_t gob_left(const struct gob_in *in)
{
	return (size_t)(in->end - in->p);
}

static inline enum gob_number gob_read_uint(struct gob_in *in, uint64_t *ret)
{
	uint64_t n = 0;
	size_t size;

	if (in->p == in->end)
		return GOB_NUMBER_SHORT;
	if (*in->p < 128) {
		*ret = *in->p++;
		return GOB_NUMBER_OK;
	}
	size = 256 - (size_t)*in->p;
	if (size > 8)
		return GOB_NUMBER_BAD;
	if (gob_left(in) < 1 + size)
		return GOB_NUMBER_SHORT;
	in->p++;
	for (size_t i = 0; i < size; i++)
		n = n << 8 | *in->p++;
	*ret = n;
	return GOB_NUMBER_OK;
}

static inline int64_t gob_uint_to_int(uint64_t n)
{
	int64_t half = (int64_t)(n >> 1);

	return n & 1 ? ~half : half;
}

static inline uint64_t gob_int_to_uint(int64_t n)
{
	return n < 0 ? (uint64_t)~n << 1 | 1 : (uint64_t)n << 1;
}

static inline double gob_uint_to_double(uint64_t n)
{
	uint64_t bits = __builtin_bswap64(n);
	double d;

	memcpy(&d, &bits, sizeof(d));
	return d;
}

static inline uint64_t gob_double_to_uint(double d)
{
	uint64_t bits;

	memcpy(&bits, &d, sizeof(bits));
	return __builtin_bswap64(bits);
}

/* Into GOB_UINT_MAX bytes; returns how many it took. */
static inline size_t gob_format_uint(unsigned char *to, uint64_t n)
{
	size_t size;

	if (n < 128) {
		to[0] = (unsigned char)n;
		return 1;
	}
	size = 8 - (size_t)__builtin_clzll(n) / 8;
	to[0] = (unsigned char)(256 - size);
	for (size_t i = size; i > 0; i--) {
		to[i] = (unsigned char)n;
		n >>= 8;
	}
	return 1 + size;
}

static inline void gob_add_uint(struct buf *out, uint64_t n)
{
	unsigned char bytes[GOB_UINT_MAX];
	size_t size = gob_format_uint(bytes, n);

	buf_add(out, bytes, size);
}

static inline void gob_add_int(struct buf *out, int64_t n)
{
	gob_add_uint(out, gob_int_to_uint(n));
}
