/*
 * Reading an image: the arrays are as they were, and everything in them that points somewhere is
 * looked at, once.
 *
 * The pool is a sequence of chunks without gaps. A bit for each says that no list has it yet: two
 * lists that shared one would write into each other later.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "search/index_inner.h"
#include "search/postings.h"

enum { CHUNK_MIN = 8, CHUNK_MAX = 248, LARGE_BYTES = 4 << 20 };

enum stage { TILES, TERMS, TERM_SLOTS, CHATS, DOCS, KEY_SLOTS, CHAINS, DONE };

struct search_reading {
	struct search_index *index;
	uint64_t *chats; /* their ids */
	uint32_t n_chats;
	uint64_t *free_chunks; /* a bit for each unit where a chunk begins that no list has */
	uint64_t *unseen;      /* a bit for each living memory whose key is in no slot */
	uint64_t n_lens[256];  /* living memories with a coded length */
	uint64_t n_used;       /* slots */
	uint32_t *order;       /* the living, by time; NULL: their numbers are in order */
	enum stage stage;
	size_t at;
};

/* ---- start and end ---- */

static int table_make(struct search_index *ix, void *table, size_t size)
{
	return size > 0 ? index_resize(ix, table, 0, size) : 0;
}

static int reserve(struct search_index *ix, const struct search_head *head)
{
	size_t cap = ix->cap_terms;
	int r;

	/* A little more, since memories may be added. */
	r = docs_reserve(ix, head->n_docs + head->n_docs / 64 + 1)
		    ?: index_grow(ix, &ix->terms, sizeof(*ix->terms), head->n_terms + 1, &cap);
	if (r != 0)
		return r;
	ix->cap_terms = (uint32_t)cap;
	return index_grow(ix, &ix->names, 1, head->names_len + 1, &ix->cap_names)
		       ?: index_grow(ix, &ix->pool, 8, head->pool_len + 1, &ix->cap_pool)
		       ?: table_make(ix, &ix->key_slots, head->n_key_slots * sizeof(*ix->key_slots))
		       ?: table_make(ix, &ix->term_slots, head->n_term_slots * sizeof(*ix->term_slots));
}

/* Most of the time of reading goes into pages that are touched for the first time: have fewer. */
static void use_large_pages(const struct search_block blocks[SEARCH_BLOCKS])
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < SEARCH_BLOCKS; i++) {
		uintptr_t from = ((uintptr_t)blocks[i].data + page - 1) & ~(page - 1);

		if (blocks[i].len > LARGE_BYTES)
			(void)madvise((void *)from, (blocks[i].len - page) & ~(page - 1),
				      MADV_HUGEPAGE);
	}
}

static int reading_make(struct search_reading *r, const struct search_head *head,
			const struct search_index_opts *opts)
{
	int result;

	r->index = search_index_new(opts);
	r->chats = malloc((head->n_chats + 1) * sizeof(*r->chats));
	r->free_chunks = calloc(head->pool_len / 64 + 1, sizeof(*r->free_chunks));
	r->unseen = calloc(head->n_docs / 64 + 1, sizeof(*r->unseen));
	if (!r->index || !r->chats || !r->free_chunks || !r->unseen)
		return -ENOMEM;
	result = reserve(r->index, head);
	if (result != 0)
		return result;
	r->index->n_docs = (uint32_t)head->n_docs;
	r->index->n_terms = (uint32_t)head->n_terms;
	r->index->names_len = head->names_len;
	r->index->pool_len = head->pool_len;
	r->index->n_key_slots = (uint32_t)head->n_key_slots;
	r->index->n_term_slots = (uint32_t)head->n_term_slots;
	r->index->seed = head->seed;
	return 0;
}

int search_reading_new(const struct search_head *head, uint64_t n_bytes,
		       const struct search_index_opts *opts, struct search_reading **ret_reading,
		       struct search_block ret_blocks[SEARCH_BLOCKS])
{
	struct search_reading *r;
	size_t lens[SEARCH_BLOCKS];
	uint64_t n = 0;
	int result = image_lengths(head, lens);

	if (result != 0)
		return result;
	for (size_t i = 0; i < SEARCH_BLOCKS; i++)
		n += lens[i];
	if (n != n_bytes)
		return -EBADMSG;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	result = reading_make(r, head, opts);
	if (result != 0) {
		search_reading_free(r);
		return result;
	}
	image_blocks(r->index, lens, r->chats, ret_blocks);
	use_large_pages(ret_blocks);
	r->n_chats = (uint32_t)head->n_chats;
	*ret_reading = r;
	return 0;
}

void search_reading_free(struct search_reading *r)
{
	if (!r)
		return;
	search_index_free(r->index);
	free(r->chats);
	free(r->free_chunks);
	free(r->unseen);
	free(r->order);
	free(r);
}

struct search_index *search_reading_take(struct search_reading *r)
{
	struct search_index *ix = r->index;

	r->index = NULL;
	ix->compact_at = ix->n_dead + index_next_compaction(ix);
	search_reading_free(r);
	return ix;
}

static void next_stage(struct search_reading *r)
{
	r->stage++;
	r->at = 0;
	r->n_used = 0;
}

/* ---- chunks ---- */

static bool is_chunk(const struct search_index *ix, size_t unit)
{
	const struct chunk *chunk = chunk_at(ix->pool, (uint32_t)unit);

	return chunk->cap >= CHUNK_MIN && chunk->cap <= CHUNK_MAX && chunk->cap % 8 == 0 &&
	       chunk->used > 0 && chunk->used <= chunk->cap &&
	       unit + 1 + chunk->cap / 8 <= ix->pool_len;
}

static int step_tiles(struct search_reading *r, size_t *budget)
{
	const struct search_index *ix = r->index;

	if (r->at == 0)
		r->at = 1;
	for (; *budget > 0 && r->at < ix->pool_len; *budget -= 1) {
		if (!is_chunk(ix, r->at))
			return -EBADMSG;
		r->free_chunks[r->at / 64] |= 1ULL << r->at % 64;
		r->at += 1 + chunk_at(ix->pool, (uint32_t)r->at)->cap / 8;
	}
	if (r->at >= ix->pool_len)
		next_stage(r);
	return 0;
}

/* True once for each chunk. */
static bool take_chunk(struct search_reading *r, uint32_t unit)
{
	uint64_t bit = 1ULL << unit % 64;

	if (unit >= r->index->pool_len || !(r->free_chunks[unit / 64] & bit))
		return false;
	r->free_chunks[unit / 64] &= ~bit;
	return true;
}

/* ---- words ---- */

struct list_check {
	uint64_t doc; /* the last one; n_seen 0: none */
	uint32_t n_seen;
};

static bool varint_check(const uint8_t **p, const uint8_t *end, uint32_t *ret_value)
{
	uint64_t value = 0;

	for (unsigned shift = 0; *p < end && shift < 35; shift += 7) {
		uint8_t byte = *(*p)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*ret_value = (uint32_t)value;
			return value <= UINT32_MAX;
		}
	}
	return false;
}

/* Numbers ascend, and are those of memories. */
static bool check_chunk(const struct search_index *ix, const struct chunk *chunk,
			struct list_check *list)
{
	const uint8_t *at = chunk->data;
	const uint8_t *end = at + chunk->used;
	uint64_t doc = 0;
	bool first = true;

	while (at < end) {
		uint32_t step = *at;

		if (step & 0x80) {
			if (!varint_check(&at, end, &step))
				return false;
		} else {
			at++;
		}
		doc += step >> 1;
		if (step & 1 && at++ >= end)
			return false;
		if (doc >= ix->n_docs || (!first && step >> 1 == 0) ||
		    (first && list->n_seen > 0 && doc <= list->doc))
			return false;
		first = false;
		list->n_seen++;
		list->doc = doc;
	}
	return true;
}

static bool check_list(struct search_reading *r, const struct term *term)
{
	const struct search_index *ix = r->index;
	struct list_check list = {0};
	uint32_t last = 0;

	if (!term->head)
		return term->n_docs <= 1 && (term->n_docs == 0 || term->last_doc < ix->n_docs);
	for (uint32_t unit = term->head; unit; unit = chunk_at(ix->pool, unit)->next) {
		if (!take_chunk(r, unit) || !check_chunk(ix, chunk_at(ix->pool, unit), &list))
			return false;
		last = unit;
	}
	return last == term->tail && list.n_seen == term->n_docs && list.doc == term->last_doc;
}

static int step_terms(struct search_reading *r, size_t *budget)
{
	const struct search_index *ix = r->index;

	while (*budget > 0 && r->at < ix->n_terms) {
		const struct term *term = &ix->terms[r->at];

		if (term->name_len > TERM_BYTES_MAX ||
		    (uint64_t)term->name + term->name_len > ix->names_len || !check_list(r, term))
			return -EBADMSG;
		*budget -= *budget > term->n_docs ? term->n_docs + 1 : *budget;
		r->at++;
	}
	if (r->at == ix->n_terms)
		next_stage(r);
	return 0;
}

/* A search ends at a free slot, and compares names: so what is in the others is a word at least. */
static int step_term_slots(struct search_reading *r, size_t *budget)
{
	const struct search_index *ix = r->index;
	size_t end = ix->n_term_slots - r->at < *budget ? ix->n_term_slots : r->at + *budget;

	*budget -= end - r->at;
	for (; r->at < end; r->at++) {
		uint32_t term = ix->term_slots[r->at].term;

		if (term > ix->n_terms)
			return -EBADMSG;
		r->n_used += term > 0;
	}
	if (r->at < ix->n_term_slots)
		return 0;
	if (r->n_used != ix->n_terms || (r->n_used > 0 && r->n_used >= ix->n_term_slots))
		return -EBADMSG;
	next_stage(r);
	return 0;
}

/* ---- memories ---- */

static int step_chats(struct search_reading *r, size_t *budget)
{
	for (; *budget > 0 && r->at < r->n_chats; *budget -= 1, r->at++) {
		uint32_t chat;
		int result =
			r->chats[r->at] ? chat_get(r->index, r->chats[r->at], &chat) : -EBADMSG;

		if (result != 0)
			return result;
		if (chat != r->at)
			return -EBADMSG;
	}
	if (r->at == r->n_chats)
		next_stage(r);
	return 0;
}

static int step_docs(struct search_reading *r, size_t *budget)
{
	struct search_index *ix = r->index;

	for (; *budget > 0 && r->at < ix->n_docs; *budget -= 1, r->at++) {
		if (ix->doc_chats[r->at] > ix->n_chats)
			return -EBADMSG;
		ix->links[r->at] = (struct links) {NO_DOC, NO_DOC};
		if (ix->doc_marks[r->at] & MARK_DEAD) {
			ix->n_dead++;
			continue;
		}
		r->unseen[r->at / 64] |= 1ULL << r->at % 64;
		r->n_lens[ix->doc_lens[r->at]]++;
	}
	if (r->at < ix->n_docs)
		return 0;
	for (unsigned i = 0; i < 256; i++)
		ix->total_len += r->n_lens[i] * (uint64_t)len_of_code((uint8_t)i);
	next_stage(r);
	return 0;
}

/* Each living memory is in one slot, and nobody else is: what is removed twice would break its
 * chat. */
static int step_key_slots(struct search_reading *r, size_t *budget)
{
	const struct search_index *ix = r->index;

	for (; *budget > 0 && r->at < ix->n_key_slots; *budget -= 1, r->at++) {
		uint32_t doc = ix->key_slots[r->at] - 1;

		if (!ix->key_slots[r->at])
			continue;
		if (doc >= ix->n_docs || !(r->unseen[doc / 64] >> doc % 64 & 1))
			return -EBADMSG;
		r->unseen[doc / 64] &= ~(1ULL << doc % 64);
		r->n_used++;
	}
	if (r->at < ix->n_key_slots)
		return 0;
	if (r->n_used != ix->n_docs - ix->n_dead ||
	    (ix->n_key_slots > 0 && r->n_used >= ix->n_key_slots))
		return -EBADMSG;
	next_stage(r);
	return 0;
}

/* ---- the order within chats ---- */

static bool is_ordered(const struct search_index *ix)
{
	for (uint32_t i = 1; i < ix->n_docs; i++) {
		if (ix->times[i - 1] > ix->times[i])
			return false;
	}
	return true;
}

static int by_time(const void *a, const void *b, void *index)
{
	const struct search_index *ix = index;
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	if (ix->times[x] != ix->times[y])
		return ix->times[x] < ix->times[y] ? -1 : 1;
	return (ix->keys[x] > ix->keys[y]) - (ix->keys[x] < ix->keys[y]);
}

/* Inserting is fastest in order of time. */
static int sort_docs(struct search_reading *r)
{
	const struct search_index *ix = r->index;

	if (is_ordered(ix))
		return 0;
	r->order = malloc((size_t)ix->n_docs * sizeof(*r->order));
	if (!r->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < ix->n_docs; i++)
		r->order[i] = i;
	qsort_r(r->order, ix->n_docs, sizeof(*r->order), by_time, r->index);
	return 0;
}

static int step_chains(struct search_reading *r, size_t *budget)
{
	struct search_index *ix = r->index;
	int result = r->at == 0 ? sort_docs(r) : 0;

	for (; result == 0 && *budget > 0 && r->at < ix->n_docs; *budget -= 1, r->at++) {
		uint32_t doc = r->order ? r->order[r->at] : (uint32_t)r->at;

		if (!(ix->doc_marks[doc] & MARK_DEAD))
			result = chain_insert(ix, doc);
	}
	if (result == 0 && r->at == ix->n_docs)
		next_stage(r);
	return result;
}

int search_reading_step(struct search_reading *r, size_t budget, bool *ret_done)
{
	static int (*const steps[DONE])(struct search_reading * r, size_t * budget) = {
		[TILES] = step_tiles,   [TERMS] = step_terms, [TERM_SLOTS] = step_term_slots,
		[CHATS] = step_chats,   [DOCS] = step_docs,   [KEY_SLOTS] = step_key_slots,
		[CHAINS] = step_chains,
	};
	int result = 0;

	while (result == 0 && budget > 0 && r->stage != DONE)
		result = steps[r->stage](r, &budget);
	*ret_done = r->stage == DONE;
	return result;
}
