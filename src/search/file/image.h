/*
 * An index as bytes, to be kept and read again: a head of numbers, and blocks, which are its
 * arrays as they are in memory. Whoever keeps them does the I/O and guards them against damage by
 * chance. Bytes that are wrong in spite of that may cost hits, but are safe: everything that a
 * search or a change relies on is checked when they are read.
 *
 * An image is for the program that wrote it: see search_fingerprint.
 */
#pragma once

#include "search/index.h"

enum { SEARCH_BLOCKS = 14 };

struct search_block {
	void *data;
	size_t len;
};

struct search_head {
	uint64_t n_docs;
	uint64_t n_terms;
	uint64_t n_chats;
	uint64_t names_len;
	uint64_t pool_len;
	uint64_t n_key_slots;
	uint64_t n_term_slots;
	uint64_t seed;
};

/* The image of an index. The blocks are the index's own: it must stay unchanged until they are
 * written. The last one is returned separately: free it. -ENOMEM. */
int search_image(const struct search_index *ix, struct search_head *ret_head,
		 struct search_block ret_blocks[SEARCH_BLOCKS], uint64_t **ret_chats);

/*
 * What images depend on besides their head: how texts become words, and how both are laid out in
 * memory. It is found by indexing a few sentences, so a change of either is noticed wherever it
 * was made. 0 when out of memory.
 */
uint64_t search_fingerprint(struct search_scratch *s);

/* Numbers that say whether bytes have changed: feed pieces in order, all but the last one with a
 * multiple of 32 bytes. */
struct search_sum {
	uint64_t lanes[4];
};

void search_sum_init(struct search_sum *s);
void search_sum_add(struct search_sum *s, const void *data, size_t len);
uint64_t search_sum_end(const struct search_sum *s);

/* ---- reading ---- */

struct search_reading;

/*
 * An index to be read from blocks of n_bytes together. The caller fills ret_blocks, and then calls
 * search_reading_step until it is done.
 *
 * -EBADMSG when the head is not one of so many bytes, REFUSE_LIMIT when it exceeds opts->max_bytes,
 * -ENOMEM.
 */
int search_reading_new(const struct search_head *head, uint64_t n_bytes,
		       const struct search_index_opts *opts, struct search_reading **ret_reading,
		       struct search_block ret_blocks[SEARCH_BLOCKS]);
void search_reading_free(struct search_reading *r); /* accepts NULL */

/* Checks about `budget` memories, or as many places where a word occurs. -EBADMSG: it is not an
 * image. */
int search_reading_step(struct search_reading *r, size_t budget, bool *ret_done);

/* Frees the reading, and hands over what was read. It must be done. */
struct search_index *search_reading_take(struct search_reading *r);
