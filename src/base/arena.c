#include "base/arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/room.h"

struct arena_block {
	struct arena_block *older;
	size_t size; /* of data */
	_Alignas(16) char data[];
};

enum { FIRST_BLOCK = 4096 - (int)sizeof(struct arena_block), LARGEST_STEP = 1 << 20 };

void arena_init(struct arena *a, size_t max)
{
	*a = (struct arena) {.max = max};
}

static void block_use(struct arena *a, struct arena_block *block)
{
	ASAN_POISON_MEMORY_REGION(block->data, block->size);
	a->newest = block;
	a->at = block->data;
	a->end = block->data + block->size;
}

/* If there is a room, blocks are counted there, and uncounted when they are freed. */
static void uncount(struct arena *a, size_t size)
{
	size_t n = size < a->counted ? size : a->counted;

	if (n == 0)
		return;
	a->counted -= n;
	room_give(a->room, n);
}

static bool arena_count(struct arena *a, size_t size)
{
	if (!a->room || a->used + size <= ROOM_FREE)
		return true;
	if (!room_take(a->room, size, a->sure)) {
		a->starved = true;
		return false;
	}
	a->counted += size;
	return true;
}

static void free_down_to(struct arena *a, const struct arena_block *keep)
{
	while (a->newest != keep) {
		struct arena_block *older = a->newest->older;

		a->used -= a->newest->size;
		uncount(a, a->newest->size);
		free(a->newest);
		a->newest = older;
	}
}

void arena_done(struct arena *a)
{
	free_down_to(a, NULL);
	arena_init(a, a->max);
}

void arena_reset(struct arena *a)
{
	struct arena_block *oldest = a->newest;

	if (!oldest)
		return;
	while (oldest->older)
		oldest = oldest->older;
	if (oldest->size > FIRST_BLOCK)
		oldest = NULL;
	free_down_to(a, oldest);
	if (oldest)
		block_use(a, oldest);
	else
		arena_init(a, a->max);
}

void arena_rewind(struct arena *a, const struct arena_mark *mark)
{
	free_down_to(a, mark->newest);
	a->at = mark->at;
	a->end = mark->end;
	if (a->newest)
		ASAN_POISON_MEMORY_REGION(a->at, (size_t)(a->end - a->at));
}

void *arena_more(struct arena *a, size_t n)
{
	size_t first = a->first ? a->first : (size_t)FIRST_BLOCK;
	size_t size = a->newest ? a->newest->size * 2 : first;
	size_t left = a->max - a->used;
	struct arena_block *block;

	if (n > left || n > SIZE_MAX - sizeof(*block))
		return NULL;
	if (size > LARGEST_STEP)
		size = LARGEST_STEP;
	if (size > left)
		size = left;
	if (size < n)
		size = n;
	if (!arena_count(a, size))
		return NULL;
	block = malloc(sizeof(*block) + size);
	if (!block) {
		uncount(a, size);
		return NULL;
	}
	block->older = a->newest;
	block->size = size;
	a->used += size;
	block_use(a, block);
	a->at += n;
	return block->data;
}

void *arena_zalloc(struct arena *a, size_t n)
{
	void *p = arena_alloc(a, n);

	if (p)
		memset(p, 0, n);
	return p;
}

char *arena_copy(struct arena *a, const void *data, size_t n)
{
	char *p = arena_alloc(a, n + 1);

	if (!p)
		return NULL;
	if (n > 0)
		memcpy(p, data, n);
	p[n] = '\0';
	return p;
}

int arena_copy_text(struct arena *a, struct text from, struct text *to)
{
	*to = from;
	if (!from.data)
		return 0;
	to->data = arena_copy(a, from.data, from.len);
	return to->data ? 0 : -ENOMEM;
}
