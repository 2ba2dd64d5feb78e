#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/room.h"

enum { SMALLEST = 256 };

void buf_init(struct buf *b, size_t max)
{
	*b = (struct buf) {.max = max};
}

/* The part of a capacity that is counted. */
static size_t counted(const struct buf *b, size_t cap)
{
	return b->room && cap > ROOM_FREE ? cap : 0;
}

void buf_done(struct buf *b)
{
	if (counted(b, b->cap) > 0)
		room_give(b->room, b->cap);
	free(b->data);
	*b = (struct buf) {.max = b->max};
}

void buf_count(struct buf *b, struct room *room)
{
	if (b->room)
		return;
	b->room = room;
	if (counted(b, b->cap) > 0)
		(void)room_take(room, b->cap, true);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->err = 0;
}

void buf_trim(struct buf *b, size_t keep)
{
	if (b->cap > keep)
		buf_done(b);
	else
		buf_clear(b);
}

int buf_grow(struct buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : SMALLEST;
	size_t more;
	char *data;

	if (b->err != 0)
		return b->err;
	if (n > b->max || b->len > b->max - n) {
		b->err = -EMSGSIZE;
		return b->err;
	}
	while (cap < b->len + n)
		cap *= 2;
	if (cap > b->max)
		cap = b->max;
	if (cap <= b->cap)
		return 0;
	more = counted(b, cap) - counted(b, b->cap);
	if (more > 0 && !room_take(b->room, more, b->sure)) {
		b->err = -ENOBUFS;
		return b->err;
	}
	data = realloc(b->data, cap);
	if (!data) {
		if (more > 0)
			room_give(b->room, more);
		b->err = -ENOMEM;
		return b->err;
	}
	b->data = data;
	b->cap = cap;
	return 0;
}

void buf_consume(struct buf *b, size_t n)
{
	b->len -= n;
	if (b->len > 0 && n > 0)
		memmove(b->data, b->data + n, b->len);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0 || buf_reserve(b, (size_t)n + 1) != 0)
		return;
	va_start(args, format);
	vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
	va_end(args);
	b->len += (size_t)n;
}

void buf_add_uint(struct buf *b, uint64_t n)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	buf_add(b, digits + at, sizeof(digits) - at);
}

void buf_add_int(struct buf *b, int64_t n)
{
	if (n < 0)
		buf_add_char(b, '-');
	buf_add_uint(b, n < 0 ? 0 - (uint64_t)n : (uint64_t)n);
}
