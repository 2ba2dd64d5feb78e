/*
 * The words of one scope's memories (a user's, a chat's, the common ones): who says what,
 * when, and in which order. It holds no text and does no I/O. Whoever owns the memories fills
 * it, keeps it up to date, and searches it through query.h.
 *
 * Threads: several threads may read an index (search_run) at once; adding and removing need
 * exclusive access. It has no lock of its own: the caller must lock it. A scratch belongs to
 * one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct search_index;
struct search_scratch;

enum {
	SEARCH_CATEGORIES_MAX = 16,  /* categories are 0 to 15; the caller defines their meaning */
	SEARCH_WORDS_MAX = 1 << 26,  /* of one text: more than any message holds */
	SEARCH_SUBJECTS_MAX = 64,    /* of one memory */
	SEARCH_DOCS_MAX = 1000000000 /* in one index */
};

struct search_index_opts {
	size_t max_bytes; /* 0: no limit */
	unsigned off;     /* enum words_off, for measuring */
};

/* One memory, as the index sees it. Only its words and numbers are kept. */
struct search_doc {
	uint64_t key; /* the caller's; adding an existing one replaces it */
	struct text text;
	const struct text *subjects; /* names of whom or what it is about */
	size_t n_subjects;
	uint64_t chat;      /* search_hash of its name; 0: no chat, and no neighbours */
	int64_t time_ms;    /* its own time, which orders it within its chat */
	int64_t expires_ms; /* 0: never */
	float importance;   /* 0 to 1 */
	uint8_t category;   /* below SEARCH_CATEGORIES_MAX */
	bool open;          /* not private: matches where only such memories are wanted */
};

/* NULL when out of memory. */
struct search_scratch *search_scratch_new(void);
void search_scratch_free(struct search_scratch *s);

/* opts may be NULL. NULL when out of memory. */
struct search_index *search_index_new(const struct search_index_opts *opts);
void search_index_free(struct search_index *ix);

/*
 * Adds a memory, or replaces the one with that key. Times may come in any order; ascending is
 * fastest.
 *
 * REFUSE_LIMIT when max_bytes would be exceeded, -ENOMEM when out of memory: then the key is
 * not in the index, and everything else is unchanged.
 */
int search_index_add(struct search_index *ix, struct search_scratch *s,
		     const struct search_doc *doc);

/* False when there is no such key. */
bool search_index_remove(struct search_index *ix, uint64_t key);

bool search_index_has(const struct search_index *ix, uint64_t key);

/* How many memories it contains. */
size_t search_index_size(const struct search_index *ix);

/* How many distinct words it contains, including names of subjects. */
size_t search_index_words(const struct search_index *ix);

/* All the memory it holds, as requested from malloc. */
size_t search_index_bytes(const struct search_index *ix);

/*
 * A name as a number, for search_doc.chat and search_query.chat: never 0 unless empty. Two
 * names may have the same number, so use it to order and filter, not to protect anything.
 */
uint64_t search_hash(struct text name);

/*
 * A copy of an index without what was removed from it, made in steps. Between two steps the index
 * may change: what is added after the first step is not in the copy, and what is removed may be.
 * So it has everything that was in the index at the first step, and whoever knows what changed
 * since can bring it up to date.
 */

struct search_copy;

/* NULL when out of memory. */
struct search_copy *search_copy_new(void);
void search_copy_free(struct search_copy *c); /* accepts NULL */

/*
 * Copies about `budget` memories, or as many places where a word occurs. Nobody may change the
 * index meanwhile. -ESTALE: its memories have got other numbers since the last step, and the copy
 * must be begun anew. -ENOMEM.
 */
int search_copy_step(struct search_copy *c, const struct search_index *ix, size_t budget,
		     bool *ret_done);

/* Frees the copying, and hands over what was made. It must be done. */
struct search_index *search_copy_take(struct search_copy *c);
