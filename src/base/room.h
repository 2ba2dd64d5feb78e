/*
 * An amount of memory that many share, on any thread. Anything larger than a little asks for
 * its share before it grows (struct buf, struct arena), and returns it when it is freed.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Bytes of one buffer or arena that need not be requested. */
enum { ROOM_FREE = 256 << 10 };

struct room {
	atomic_size_t used;
	atomic_size_t max;
	atomic_bool closed; /* somebody is already waiting: only sure requests are granted */
};

/* sure: always granted, but still counted. */
static inline bool room_take(struct room *r, size_t n, bool sure)
{
	size_t before = atomic_fetch_add_explicit(&r->used, n, memory_order_relaxed);

	if (sure || (before + n <= atomic_load_explicit(&r->max, memory_order_relaxed) &&
		     !atomic_load_explicit(&r->closed, memory_order_relaxed)))
		return true;
	atomic_fetch_sub_explicit(&r->used, n, memory_order_relaxed);
	return false;
}

static inline void room_give(struct room *r, size_t n)
{
	atomic_fetch_sub_explicit(&r->used, n, memory_order_relaxed);
}

static inline size_t room_used(struct room *r)
{
	return atomic_load_explicit(&r->used, memory_order_relaxed);
}
