/* A buffer in a list, for data that is handed over instead of copied. */
#pragma once

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/list.h"

struct piece {
	struct list link;
	struct buf buf;
};

/* Takes the buffer's memory, even on failure; the buffer is then empty. */
static inline int piece_append(struct list *pieces, struct buf *b)
{
	struct piece *p = malloc(sizeof(*p));

	if (!p) {
		buf_done(b);
		return -ENOMEM;
	}
	p->buf = *b;
	buf_init(b, p->buf.max);
	list_append(pieces, &p->link);
	return 0;
}

static inline struct piece *piece_first(struct list *pieces)
{
	struct list *first = list_first(pieces);

	return first ? list_entry(first, struct piece, link) : NULL;
}

static inline void piece_free(struct piece *p)
{
	list_remove(&p->link);
	buf_done(&p->buf);
	free(p);
}

static inline void pieces_done(struct list *pieces)
{
	struct piece *p;

	while ((p = piece_first(pieces)))
		piece_free(p);
}
