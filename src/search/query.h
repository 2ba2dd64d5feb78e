/*
 * Finds the memories that answer a question, without any model.
 *
 * Words are compared by BM25 with the statistics of the indexes asked; what
 * surrounds a memory in its chat counts a little; the best are then ordered
 * anew by whom and which time the question names. Any text is accepted.
 */
#pragma once

#include "search/index.h"

enum {
	SEARCH_TERMS_MAX = 64, /* words of a question that are used: the rarest */
	SEARCH_RERANK = 200,   /* memories that are looked at closely */
};

/* Steps to leave out; for measuring what each is worth. */
enum search_off {
	SEARCH_NO_STOPS = 1,       /* keep the words that say nothing */
	SEARCH_NO_CONTEXT = 2,     /* a memory's neighbours count for it */
	SEARCH_NO_SUBJECTS = 4,    /* a subject named lifts what is about it */
	SEARCH_NO_DATES = 8,       /* a date named lifts what is of it */
	SEARCH_NO_TIME_WORDS = 16, /* "when" lifts what speaks of time */
	SEARCH_NO_ANSWERS = 32,    /* what follows a question inherits from it */
	SEARCH_NO_REPAIR = 64,     /* unknown words are mended */
	SEARCH_NO_PRIORS = 128,    /* importance and recency */
};

struct search_tuning {
	unsigned off; /* enum search_off */
	float k1;     /* how soon repeating a word stops counting */
	float b;      /* how much long texts pay for their length */
	float context;
	float answer;
	float subject;
	float subject_text; /* the name is in the text, not among the subjects */
	float about;        /* weight of a name as a subject, beside words that are known */
	float mentions;     /* and as a word */
	float narrow_date;
	float wide_date;
	float date_word; /* weight of 7, May and 2023 as words */
	float time_words;
	float repaired; /* weight of a mended word */
	float importance;
	float recency;
};

extern const struct search_tuning search_default_tuning;

struct search_query {
	struct text text;
	int64_t now_ms;
	uint32_t categories; /* a bit for each wanted; 0: all */
	uint64_t chat;       /* only this one; 0: all */
	bool open;           /* only what is open, and what is of that chat */
	int64_t from_ms;     /* only from here ... */
	int64_t to_ms;       /* ... to before here; both 0: any time */
	bool include_expired;
	/* NULL, or a last word on each memory; may be asked more than once for one. */
	bool (*accept)(void *arg, uint64_t key);
	void *arg;
	const struct search_tuning *tuning; /* NULL: the default */
};

struct search_hit {
	uint64_t key;
	uint32_t index;   /* which of those asked */
	float similarity; /* above 0, at most 1; comparable within one answer */
};

/*
 * Searches several indexes as one. Filters apply before the limit. Hits come
 * best first; of equals the newer, then the smaller key. At most `limit` are
 * written; *ret_n says how many. A key in two indexes is two hits.
 *
 * -ENOMEM is the only failure.
 */
int search_run(struct search_scratch *s, const struct search_index *const *indexes,
	       size_t n_indexes, const struct search_query *q, struct search_hit *ret_hits,
	       size_t limit, size_t *ret_n);

/* Whether the index has the key and the query's filters let it through. */
bool search_passes(const struct search_index *ix, const struct search_query *q, uint64_t key);
