/*
 * Finds the memories that answer a question, without any model.
 *
 * Words are scored by BM25 with the statistics of the indexes searched, and a memory's
 * neighbours in its chat count a little. The best are then reordered by the people and times
 * that the question names. Any text is accepted. The folder rank has how.
 */
#pragma once

#include "search/index.h"

enum {
	SEARCH_TERMS_MAX = 64, /* words of a question that are used: the rarest */
	SEARCH_RERANK = 200,   /* memories that are examined closely */
};

/* Steps to leave out, for measuring what each is worth. */
enum search_off {
	SEARCH_NO_STOPS = 1,       /* keep the words without meaning */
	SEARCH_NO_CONTEXT = 2,     /* a memory's neighbours count for it */
	SEARCH_NO_SUBJECTS = 4,    /* a named subject boosts memories about it */
	SEARCH_NO_DATES = 8,       /* a named date boosts memories from then */
	SEARCH_NO_TIME_WORDS = 16, /* "when" boosts memories that refer to time */
	SEARCH_NO_ANSWERS = 32,    /* what follows a question inherits from it */
	SEARCH_NO_REPAIR = 64,     /* unknown words are repaired */
	SEARCH_NO_PRIORS = 128,    /* importance and recency */
};

struct search_tuning {
	unsigned off; /* enum search_off */
	float k1;     /* how soon repeating a word stops counting */
	float b;      /* how much long texts are penalised */
	float context;
	float answer;
	float subject;
	float subject_text; /* the name is in the text, not among the subjects */
	float about;        /* weight of a name as a subject, beside known words */
	float mentions;     /* and as a word */
	float narrow_date;
	float wide_date;
	float date_word; /* weight of 7, May and 2023 as words */
	float time_words;
	float repaired;     /* weight of a repaired word */
	float surroundings; /* weight of a word around the question: see rank/prompt.h */
	float importance;
	float recency;
};

extern const struct search_tuning search_default_tuning;

struct search_query {
	struct text text;
	int64_t now_ms;
	uint32_t categories; /* one bit per wanted category; 0: all */
	uint64_t chat;       /* only this one; 0: all */
	bool open;           /* only memories that are open, or of that chat */
	int64_t from_ms;     /* only from here ... */
	int64_t to_ms;       /* ... to before here; both 0: any time */
	bool include_expired;
	/* NULL, or a final decision on each memory; may be called more than once for the same
	 * one. */
	bool (*accept)(void *arg, uint64_t key);
	void *arg;
	const struct search_tuning *tuning; /* NULL: the default */
};

struct search_hit {
	uint64_t key;
	uint32_t index;   /* index among those searched */
	float similarity; /* above 0, at most 1; comparable within one answer */
};

/*
 * Searches several indexes as one. Filters apply before the limit. Hits come best first; among
 * equals the newer, then the smaller key. At most `limit` are written; *ret_n says how many. A
 * key in two indexes gives two hits.
 *
 * -ENOMEM is the only failure.
 */
int search_run(struct search_scratch *s, const struct search_index *const *indexes,
	       size_t n_indexes, const struct search_query *q, struct search_hit *ret_hits,
	       size_t limit, size_t *ret_n);

/* Whether the index has the key and the query's filters accept it. */
bool search_passes(const struct search_index *ix, const struct search_query *q, uint64_t key);
