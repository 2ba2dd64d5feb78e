/*
 * What the floors share: the least a server can do between a read and a write.
 *
 * It counts the whole messages of one read and knows the one answer they all
 * get, already repeated, so that a read is answered by one write.
 */
#pragma once

#include <sys/types.h>

#include "base/buf.h"
#include "message.h"

enum { READ_SIZE = 64 * 1024, CARRY_MAX = 4 * MESSAGE_MAX };

/* NULL in the bare floor. Where Meson chose floor_parse.c it reads the body as JSON. */
extern int (*const floor_check)(struct text body);

struct floor_opts {
	const char *listen;
	enum framing framing;
	struct text answer; /* without its frame */
};

/* 0, or -EINVAL after saying how it is called. */
int floor_opts_parse(int argc, char **argv, struct floor_opts *ret_opts);

struct answers {
	struct buf repeated;
	size_t one; /* bytes of a single answer */
	size_t n;
};

int answers_init(struct answers *a, const struct floor_opts *opts);

/* The bytes of up to n answers; takes what it gives from *n. */
static inline struct text answers_some(const struct answers *a, size_t *n)
{
	size_t some = *n < a->n ? *n : a->n;

	*n -= some;
	return (struct text) {.data = a->repeated.data, .len = some * a->one};
}

/*
 * Counts the messages that these bytes complete, or -errno.
 *
 * `carry` keeps a message's beginning until the rest comes. It holds no memory
 * while reads end where messages do.
 */
ssize_t floor_feed(struct buf *carry, enum framing framing, const char *data, size_t len);
