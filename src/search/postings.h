/*
 * Where a word occurs: memories in ascending order, each with how often.
 *
 * They are packed as differences (a varint; its lowest bit says whether a count other than 1
 * follows) into linked chunks of up to 256 bytes. Each chunk starts again with an absolute
 * number, so that a chunk can be skipped by looking at the next one. Chunks grow with the
 * list: short lists waste little, and long ones need few hops.
 */
#pragma once

#include "search/index_inner.h"

struct chunk {
	uint32_t next; /* in units of the pool; 0: none */
	uint16_t used;
	uint16_t cap;
	uint8_t data[];
};

struct postings {
	const uint64_t *pool;
	const uint8_t *at;
	const uint8_t *end;
	uint32_t next; /* chunk */
	uint32_t doc;
	uint32_t count;
	bool single; /* the one inside the term has not been returned yet */
};

static inline const struct chunk *chunk_at(const uint64_t *pool, uint32_t unit)
{
	return (const struct chunk *)(pool + unit);
}

static inline uint32_t varint_read(const uint8_t **p)
{
	uint32_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = *(*p)++;
		value |= (uint32_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

static inline void postings_enter(struct postings *p, uint32_t unit)
{
	const struct chunk *chunk = chunk_at(p->pool, unit);

	p->at = chunk->data;
	p->end = chunk->data + chunk->used;
	p->next = chunk->next;
	p->doc = 0;
	__builtin_prefetch(p->pool + p->next);
}

static inline void postings_start(struct postings *p, const struct search_index *ix,
				  const struct term *term)
{
	*p = (struct postings) {.pool = ix->pool};
	if (term->head) {
		postings_enter(p, term->head);
		return;
	}
	p->single = term->n_docs > 0;
	p->doc = term->last_doc;
	p->count = term->first_count;
}

/* Sets doc and count; false at the end. */
static inline bool postings_next(struct postings *p)
{
	uint32_t step;

	if (p->at == p->end) {
		if (p->single) {
			p->single = false;
			return true;
		}
		if (!p->next)
			return false;
		postings_enter(p, p->next);
	}
	step = *p->at++;
	if (step & 0x80) {
		p->at--;
		step = varint_read(&p->at);
	}
	p->doc += step >> 1;
	p->count = step & 1 ? *p->at++ : 1;
	return true;
}

/* Skips chunks that end before doc. */
static inline void postings_skip(struct postings *p, uint32_t doc)
{
	while (p->next) {
		const uint8_t *first = chunk_at(p->pool, p->next)->data;

		if (varint_read(&first) >> 1 > doc)
			return;
		postings_enter(p, p->next);
	}
}

/* The memory must come after all that are in the list. On failure the list is unchanged. */
int postings_add(struct search_index *ix, uint32_t term, uint32_t doc, size_t count);
