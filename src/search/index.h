/*
 * The words of one scope's memories (a user's, a chat's, the common ones): who
 * says what, when, and in which order. It holds no text and does no I/O; whoever
 * owns the memories fills it, keeps it in step, and asks it through query.h.
 *
 * Threads: an index may be read (search_run) by several threads at once; adding
 * and removing need it alone. There is no lock inside: the caller's guards it. A
 * scratch belongs to one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

struct search_index;
struct search_scratch;

enum {
	SEARCH_CATEGORIES_MAX = 16,  /* categories are 0 to 15; what they mean is the caller's */
	SEARCH_WORDS_MAX = 65536,    /* of one text; what follows is not found */
	SEARCH_SUBJECTS_MAX = 64,    /* of one memory */
	SEARCH_DOCS_MAX = 1000000000 /* in one index */
};

struct search_index_opts {
	size_t max_bytes; /* 0: no bound */
	unsigned off;     /* enum words_off, for measuring */
};

/* One memory, as the index sees it. Nothing of it is kept but words and numbers. */
struct search_doc {
	uint64_t key; /* the caller's; adding one that is there replaces it */
	struct text text;
	const struct text *subjects; /* whom or what it is about, by name */
	size_t n_subjects;
	uint64_t chat;      /* search_hash of its name; 0: of no chat, has no neighbours */
	int64_t time_ms;    /* its own time, which orders it among its chat */
	int64_t expires_ms; /* 0: never */
	float importance;   /* 0 to 1 */
	uint8_t category;   /* below SEARCH_CATEGORIES_MAX */
	bool open;          /* nobody's secret: passes where only those are wanted */
};

/* NULL without memory. */
struct search_scratch *search_scratch_new(void);
void search_scratch_free(struct search_scratch *s);

/* opts may be NULL. NULL without memory. */
struct search_index *search_index_new(const struct search_index_opts *opts);
void search_index_free(struct search_index *ix);

/*
 * Adds a memory, or replaces the one of that key. Any order of times will do;
 * ascending is fastest.
 *
 * REFUSE_LIMIT when max_bytes would be passed, -ENOMEM without memory: then the
 * key is not in the index, and everything else is as it was.
 */
int search_index_add(struct search_index *ix, struct search_scratch *s,
		     const struct search_doc *doc);

/* False when there is no such key. */
bool search_index_remove(struct search_index *ix, uint64_t key);

bool search_index_has(const struct search_index *ix, uint64_t key);

/* Memories in it. */
size_t search_index_size(const struct search_index *ix);

/* Distinct words in it, names of subjects included. */
size_t search_index_words(const struct search_index *ix);

/* All the memory it holds, as asked of malloc. */
size_t search_index_bytes(const struct search_index *ix);

/*
 * A name as a number, for search_doc.chat and search_query.chat: never 0 unless
 * empty. Two names may meet in one number, so it orders and filters; it guards nothing.
 */
uint64_t search_hash(struct text name);
