/*
 * A growing byte buffer whose maximum is set when it is created.
 *
 * Errors stick: after one failed append every later one does nothing, so a writer may put a
 * whole message together and check `err` once.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

struct room;

struct buf {
	char *data;
	size_t len;
	size_t cap;
	size_t max;
	struct room *room; /* counts a capacity beyond ROOM_FREE; or NULL */
	int err;           /* 0, -ENOMEM, -EMSGSIZE beyond max, -ENOBUFS without room */
	bool sure;         /* never refused room */
};

void buf_init(struct buf *b, size_t max);
void buf_done(struct buf *b);

/* For CLEANUP. */
static inline void buf_donep(struct buf *b)
{
	buf_done(b);
}

/* From now on the buffer, with what it already has, is counted there. */
void buf_count(struct buf *b, struct room *room);

/* Empties it and clears its error; keeps the memory. */
void buf_clear(struct buf *b);

/* Like buf_clear, but frees memory above `keep` bytes. */
void buf_trim(struct buf *b, size_t keep);

/* Makes room for n more bytes; does not change len. */
int buf_grow(struct buf *b, size_t n);

/* Drops n bytes from the front. */
void buf_consume(struct buf *b, size_t n);

/* Appends with printf. Not for the path of a request. */
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline int buf_reserve(struct buf *b, size_t n)
{
	if (b->err == 0 && b->cap - b->len >= n)
		return 0;
	return buf_grow(b, n);
}

static inline void buf_add(struct buf *b, const void *data, size_t n)
{
	if (n == 0 || buf_reserve(b, n) != 0)
		return;
	memcpy(b->data + b->len, data, n);
	b->len += n;
}

static inline void buf_add_char(struct buf *b, char c)
{
	if (buf_reserve(b, 1) == 0)
		b->data[b->len++] = c;
}

static inline void buf_add_str(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

/* What it holds; valid until it changes. */
static inline struct text buf_bytes(const struct buf *b)
{
	return (struct text) {.data = b->data, .len = b->len};
}

/* Decimal digits, without printf. */
void buf_add_uint(struct buf *b, uint64_t n);
void buf_add_int(struct buf *b, int64_t n);
