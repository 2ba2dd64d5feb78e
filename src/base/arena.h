/*
 * Memory that is freed all at once, such as a call's. Pieces are never freed alone.
 *
 * The first block survives a reset, so that a small call costs no malloc.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct arena_block;
struct room;

struct arena {
	char *at; /* the next free byte of the newest block */
	char *end;
	struct arena_block *newest;
	size_t used; /* bytes in all blocks */
	size_t max;
	size_t first;      /* bytes of the first block, for many small ones; 0: about a page */
	struct room *room; /* counts what blocks need beyond the first ROOM_FREE bytes; or NULL */
	size_t counted;
	bool sure;    /* never refused room */
	bool starved; /* the last NULL was for lack of room */
};

/* A point to return to. */
struct arena_mark {
	char *at;
	char *end;
	struct arena_block *newest;
};

void arena_init(struct arena *a, size_t max);
void arena_done(struct arena *a);

/* Frees everything except one small block. */
void arena_reset(struct arena *a);

static inline struct arena_mark arena_mark(const struct arena *a)
{
	return (struct arena_mark) {.at = a->at, .end = a->end, .newest = a->newest};
}

/* Frees what was allocated since the mark. */
void arena_rewind(struct arena *a, const struct arena_mark *mark);

/*
 * With the address sanitizer, a block is poisoned except for the bytes that were asked for, and each piece is
 * followed by a gap, so that a read one past its end is reported.
 */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#endif

#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
enum { ARENA_GAP = 16 };
/* A program that test/failing is linked to can refuse each piece, as if no block could be had. */
__attribute__((weak)) bool nomem_refuses(void);
#define ARENA_REFUSES() (nomem_refuses && nomem_refuses())
#else
enum { ARENA_GAP = 0 };
#define ARENA_REFUSES()                    false
#define ASAN_POISON_MEMORY_REGION(at, n)   ((void)(at), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(at, n) ((void)(at), (void)(n))
#endif

void *arena_more(struct arena *a, size_t n);

/* n bytes, aligned for any type and not cleared; NULL when out of memory or max is reached. */
static inline void *arena_alloc(struct arena *a, size_t n)
{
	size_t rounded = (n + 15 + (n == 0) + ARENA_GAP) & ~(size_t)15;
	char *p = a->at;

	if (rounded < n || ARENA_REFUSES())
		return NULL;
	if ((size_t)(a->end - p) < rounded)
		p = arena_more(a, rounded);
	else
		a->at = p + rounded;
	if (p)
		ASAN_UNPOISON_MEMORY_REGION(p, n);
	return p;
}

void *arena_zalloc(struct arena *a, size_t n);

/* A NUL-terminated copy. */
char *arena_copy(struct arena *a, const void *data, size_t n);

/* The same for a text; {NULL, 0} stays so. -ENOMEM. */
int arena_copy_text(struct arena *a, struct text from, struct text *to);
