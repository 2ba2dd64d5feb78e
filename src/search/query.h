/*
 * Finds the memories that answer a question, without any model.
 *
 * Words are scored by BM25 with the statistics of the indexes searched, and a memory's
 * neighbours in its chat count a little. The best are then reordered by the people and times
 * that the question names. Any text is accepted. The folder rank has how.
 */
#pragma once

#include "search/index.h"

struct word_table;

enum {
	SEARCH_TERMS_MAX = 64, /* words of a question that are used: the rarest */
	SEARCH_RERANK = 200,   /* memories that are examined closely */
	SEARCH_SAME_MAX = 64,  /* see search_same */
};

/* Steps to leave out, for measuring what each is worth. */
enum search_off {
	SEARCH_NO_STOPS = 1,        /* keep the words without meaning */
	SEARCH_NO_CONTEXT = 2,      /* a memory's neighbours count for it */
	SEARCH_NO_SUBJECTS = 4,     /* a named subject boosts memories about it */
	SEARCH_NO_DATES = 8,        /* a named date boosts memories from then */
	SEARCH_NO_TIME_WORDS = 16,  /* "when" boosts memories that refer to time */
	SEARCH_NO_ANSWERS = 32,     /* what follows a question inherits from it */
	SEARCH_NO_REPAIR = 64,      /* unknown words are repaired */
	SEARCH_NO_PRIORS = 128,     /* importance and recency */
	SEARCH_NO_WEAK = 256,       /* "kind", "name", "thing" weigh less than other words */
	SEARCH_NO_KINDS = 512,      /* "where" boosts memories with a place, and the like */
	SEARCH_NO_SELF = 1024,      /* who speaks of himself tells more */
	SEARCH_NO_ASKING = 2048,    /* memories that are questions tell less */
	SEARCH_NO_NEWER = 4096,     /* of two that say the same, the newer comes first */
	SEARCH_NO_ALIKE = 8192,     /* words that are used alike stand for each other, a little */
	SEARCH_NO_SYNONYMS = 16384, /* ... those of our own list */
};

struct search_tuning {
	unsigned off; /* enum search_off */
	float k1;     /* how soon repeating a word stops counting */
	float b;      /* how much long texts are penalised */
	/* Of the weight of a word that a memory lacks, for each neighbour that has it: */
	float before;
	float after;
	float around; /* at most so much of it */
	float answer; /* more, for one in a question that was just asked */
	float far;    /* of these parts, for a neighbour of another day */
	/* Of the weight of the question's rarest word: */
	float subject;      /* the memory is about a name of the question */
	float subject_text; /* the name is in the text, not among the subjects */
	float narrow_date;
	float wide_date;
	float kind;
	float time_words;
	float self;
	/* Of a word's own weight: */
	float about;     /* a name as a subject, beside known words */
	float mentions;  /* and as a word */
	float date_word; /* 7, May and 2023 as words */
	float weak;      /* "kind", "name": words that ask */
	float common;    /* "go", "make": words that say little */
	float repaired;
	float alike;          /* a similar word instead, for a cosine of one */
	float alike_least;    /* from that cosine on */
	float part;           /* a part of a word, or a character in one */
	float other_language; /* as another language than the question's has it */
	float surroundings;   /* a word around the question: see rank/prompt.h */
	/* Of a memory's score: */
	float order;  /* for the oldest or the newest, where one of these is asked for */
	float asking; /* it is a question */
	float newer; /* from here on an older one is not better than a newer one that says the same */
	float importance;
	float recency;
};

extern const struct search_tuning search_default_tuning;

enum { SEARCH_WHY_WORDS = 8, SEARCH_WHY_BYTES = 40 };

/* Why a memory was found: parts of its score, which add up to 1, and words that it has. */
struct search_why {
	uint64_t key;
	uint32_t index;
	float words;   /* the question's words in its text */
	float alike;   /* others in their place: see rank/alike.h */
	float context; /* words of its neighbours in its chat */
	float names;   /* it is about, or mentions, a name of the question */
	float dates;   /* it is of a time that the question names */
	float kind;    /* it looks like the kind of answer that is asked for */
	size_t n_matched;
	struct search_matched {
		char word[SEARCH_WHY_BYTES]; /* folded, as in the question */
		size_t len;
	} matched[SEARCH_WHY_WORDS]; /* heaviest first */
};

struct search_hit {
	uint64_t key;
	uint32_t index;   /* index among those searched */
	float similarity; /* above 0, at most 1; comparable within one answer */
	float score;      /* what it was made of: 1 for every word of the question, once */
	float own;        /* of that, what its own words make */
	float unit;       /* of that, what the question's rarest word is worth */
	uint64_t says;    /* equal where newer may replace older: see rank/settle.h; 0: never */
};

/* Hits that have the question's words and no others, in whatever order, the newest first. Others may
 * have been found before them: those that repeat a word, or are more important. */
struct search_same {
	struct search_hit hits[SEARCH_SAME_MAX];
	size_t n;
};

struct search_query {
	struct text text;
	struct word_table *words; /* which words are used alike; NULL: not known */
	int64_t now_ms;
	uint32_t categories; /* one bit per wanted category; 0: all */
	uint64_t chat;       /* only this one; 0: all */
	bool open;           /* only memories that are open, or of that chat */
	int64_t from_ms;     /* only from here ... */
	int64_t to_ms;       /* ... to before here; both 0: any time */
	bool include_expired;
	/* Of two that say the same the newer is put first before vectors add to the scores (near.h).
	 * search_settle then only looks for closer matches. */
	bool newer_first;
	/* NULL, or a final decision on each memory; may be called more than once for the same
	 * one. */
	bool (*accept)(void *arg, uint64_t key);
	void *arg;
	const struct search_tuning *tuning; /* NULL: the default */
	/* NULL, or room for as many as hits are wanted, and then for those of ret_same. */
	struct search_why *ret_error;
	struct search_same *ret_same; /* NULL, or an empty one */
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

/* Maps a hit's score to its similarity. */
float search_similarity(float score);

/* Whether the index has the key and the query's filters accept it. */
bool search_passes(const struct search_index *ix, const struct search_query *q, uint64_t key);

/*
 * The final order of the best hits, which depends on their texts. An index has the words of a
 * memory but not their order, so whoever has the texts calls this after search_run.
 */

/* The text of a hit and its time. */
struct search_said {
	struct text text;
	int64_t time_ms;
};

/*
 * Reorders hits whose scores are about equal and that share the question's content words: the
 * closer match comes first, then the newer one ("moved to Oslo", "moved to Bergen"). A match
 * is closer if it has more of the question's small words ("from", "in"), has them in the same
 * order, and is negated as the question is. If the question asks ("Is Bob allowed in?") only the
 * negation counts.
 *
 * A memory with the question's very characters comes first, then one with its very words. Otherwise
 * the order is stable.
 *
 * `hits` are the first n of an answer, best first. Scores stay in place, so that they still
 * descend. ret_from[i], of n, is where the hit that is now in place i was.
 */
void search_settle(struct search_scratch *s, const struct search_query *q, struct search_hit *hits,
		   const struct search_said *said, size_t n, size_t *ret_from);
