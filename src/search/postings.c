/* Where a word occurs; see postings.h. */
#include "search/postings.h"

#include "base/error.h"

enum { CHUNK_MIN = 8, CHUNK_MAX = 248 };

/* doc<<1 must fit the varint's 32 bits. */
_Static_assert(SEARCH_DOCS_MAX < (1U << 31), "a difference and a bit fit");

static size_t posting_write(uint8_t *to, uint32_t step, size_t count)
{
	uint32_t value = step << 1 | (count != 1);
	size_t n = 0;

	while (value >= 0x80) {
		to[n++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	to[n++] = (uint8_t)value;
	if (count != 1)
		to[n++] = (uint8_t)count;
	return n;
}

static struct chunk *chunk_of(struct search_index *ix, uint32_t unit)
{
	return (struct chunk *)(ix->pool + unit);
}

/* A third of what the list already has: little waste, few hops. */
static size_t chunk_size(uint32_t n_docs)
{
	size_t size = (size_t)(n_docs / 3 + 7) & ~(size_t)7;

	return size < CHUNK_MIN ? CHUNK_MIN : size > CHUNK_MAX ? CHUNK_MAX : size;
}

static int chunk_new(struct search_index *ix, struct term *term)
{
	size_t size = chunk_size(term->n_docs);
	size_t units = (sizeof(struct chunk) + size) / 8;
	struct chunk *chunk;
	uint32_t unit;
	int r;

	if (ix->pool_len + units + 1 > UINT32_MAX)
		return REFUSE_LIMIT;
	r = index_grow(ix, &ix->pool, 8, ix->pool_len + units + 1, &ix->cap_pool);
	if (r != 0)
		return r;
	if (ix->pool_len == 0)
		ix->pool[ix->pool_len++] = 0;
	unit = (uint32_t)ix->pool_len;
	ix->pool_len += units;
	chunk = chunk_of(ix, unit);
	/* All of it: the pool is also kept in files, which should have nothing else in them. */
	memset(chunk, 0, units * 8);
	chunk->cap = (uint16_t)size;
	if (term->head)
		chunk_of(ix, term->tail)->next = unit;
	else
		term->head = unit;
	term->tail = unit;
	return 0;
}

static int posting_put(struct search_index *ix, struct term *term, uint32_t doc, size_t count)
{
	uint8_t bytes[8];
	struct chunk *chunk;
	size_t n = posting_write(bytes, doc - term->last_doc, count);
	int r;

	if (!term->head || chunk_of(ix, term->tail)->used + n > chunk_of(ix, term->tail)->cap) {
		n = posting_write(bytes, doc, count);
		r = chunk_new(ix, term);
		if (r != 0)
			return r;
	}
	chunk = chunk_of(ix, term->tail);
	memcpy(chunk->data + chunk->used, bytes, n);
	chunk->used = (uint16_t)(chunk->used + n);
	return 0;
}

int postings_add(struct search_index *ix, uint32_t number, uint32_t doc, size_t count)
{
	struct term *term = &ix->terms[number];
	int r = 0;

	if (count > UINT8_MAX)
		count = UINT8_MAX;
	if (term->n_docs == 0)
		term->first_count = (uint8_t)count;
	/* The first posting moves out of the term when a second arrives. */
	if (term->n_docs == 1 && !term->head)
		r = posting_put(ix, term, term->last_doc, term->first_count);
	if (r == 0 && term->n_docs >= 1)
		r = posting_put(ix, term, doc, count);
	if (r != 0)
		return r;
	term->last_doc = doc;
	term->n_docs++;
	if (count > term->max_count)
		term->max_count = (uint8_t)count;
	if (ix->doc_lens[doc] < term->min_len)
		term->min_len = ix->doc_lens[doc];
	return 0;
}
