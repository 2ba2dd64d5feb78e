/* Inside search/rank/ only: from a question to a plan, the scores, and what is found. */
#pragma once

#include <stdbool.h>

#include "base/text.h"
#include "search/dates.h"
#include "search/index_inner.h"
#include "search/query.h"
#include "search/vector/word_table.h"

/*
 * How English questions ask: for what kind of answer, and with which words that are not what is
 * asked for. All words are folded.
 */

enum ask_want {
	ASK_TRAITS = 0xff, /* enum trait */
	ASK_TIME = 0x100,
};

/* What two consecutive words ask for: "where" for a place, "how many" for a number. A set of
 * enum ask_want. */
unsigned ask_wants(struct text before, struct text word);

/*
 * "Tell me", "do you know": whether one of two consecutive words only frames the question.
 * ret_second says which.
 */
bool ask_frames(struct text before, struct text word, bool *ret_second);

enum ask_weight {
	ASK_FULL,
	ASK_COMMON, /* "go", "make" */
	ASK_WEAK,   /* "kind", "mention" */
};

enum ask_weight ask_weight(struct text word);

/* Words that ask for whatever there is: "What happened ...?" */
bool ask_is_vague(struct text folded);

/*
 * Where a long text asks. People and agents paste pages before their question: what is asked is
 * in the last sentences, or in the first one, and the rest is only context.
 */

enum {
	PROMPT_SHORT = 1000,   /* bytes: up to here, all of it is the question */
	PROMPT_ASKS_MAX = 600, /* bytes of one part that asks */
};

struct search_prompt {
	struct text first; /* asks before a long context; may be empty */
	struct text context;
	struct text last; /* the last sentences, unless only the first ask; a short text, whole */
};

struct search_prompt prompt_of(struct text text);

/*
 * Words that mean the same, or that are a kind of what is asked for, in everyday English: what
 * people say in other words than they ask. A short list of our own, for searches without a table
 * of word vectors, and beside one.
 */

enum { SYNONYMS_MAX = 24 }; /* of one word */

/* The words in the place of one that indexes call `term`, by their likeness. Any thread may call
 * it. */
size_t synonyms_find(struct words *w, struct text term, struct near_word ret_near[SYNONYMS_MAX]);

/*
 * What a question asks for, worked out before any memory is examined: its words with their
 * weights, and the subjects and dates that it names.
 */

enum {
	PLAN_WORDS_MAX = 1024, /* different words of a question that are considered */
	PLAN_CONTEXT_MAX =
		16, /* words used of what surrounds the question: see struct search_prompt */
	PLAN_SUBJECTS_MAX = 8,
	PLAN_LANGUAGE_RARE = 8, /* a language is rare if one of so many memories has it */
	PLAN_REPAIRS_MAX = 3,
	PLAN_DATE_WORDS_MAX = 256, /* words that are searched for dates */
	PLAN_BITS = 24,            /* words whose memories are known: see struct tally */
	PLAN_ALIKE_BITS = 8,       /* words for which there are similar ones: see alike.c */
};

struct plan_term {
	char name[TERM_BYTES_MAX];
	char folded[WORD_BYTES_MAX];
	uint8_t name_len;
	uint8_t folded_len;
	uint8_t flags;
	bool is_subject; /* its folded form is a subject's name */
	bool doubtful;   /* it was repaired, by a guess */
	bool absolute;   /* see struct date_word */
	bool numeric;    /* of a date in digits, whose three numbers weigh as much as one word */
	bool relative;
	bool orders; /* see struct date_word */
	bool ordered;
	bool context;        /* it is not in the part that asks */
	bool foreign;        /* of a question that is not in English */
	bool extra;          /* see struct word */
	uint32_t stands_for; /* term + 1 that this is in another language; 0: none */
	bool frames;         /* it frames the question, and is not asked for */
	uint8_t ask_weight;  /* enum ask_weight */
	uint16_t times;      /* in the part that asks, as a word of its own */
	uint32_t hash;
	uint64_t n_docs; /* in all indexes */
	uint64_t n_also; /* in all indexes, as it is in other languages */
	uint64_t n_said; /* for a subject: texts with its name; otherwise 0 */
	float weight;    /* from its own weight and its rarity; 0: not used */
};

struct search_plan {
	struct search_scratch *scratch;
	const struct search_index *const *indexes;
	size_t n_indexes;
	const struct search_query *query;
	struct search_tuning tuning;
	uint64_t n_docs;
	uint32_t languages; /* of the memories, as bits */
	enum language language;
	bool knows_language; /* of the question */
	float average_len;
	struct plan_term *terms; /* those used, heaviest first */
	size_t n_terms;
	size_t n_asked; /* with those that are in no memory, which come after them */
	size_t cap_terms;
	uint32_t *slots; /* while they are read: term + 1, by hash */
	uint32_t n_slots;
	struct plan_term subjects[PLAN_SUBJECTS_MAX];
	size_t n_subjects;
	struct date dates[DATES_MAX];
	size_t n_dates;
	struct date_order order;
	bool by_date;          /* it asks for nothing but dates */
	unsigned wants;        /* enum ask_want: what the answer looks like */
	size_t n_words;        /* of the question; 0 if only a part of the text is */
	float ideal;           /* the score of a memory with every word once */
	float rarest;          /* the weight of the heaviest word; above 0 */
	uint32_t subject_bits; /* terms that are subjects: see plan_bit */
	uint32_t name_bits;    /* terms that are their names as words */
};

/* All bits of terms; those above are of similar words. */
#define PLAN_WORD_BITS ((UINT32_C(1) << PLAN_BITS) - 1)

/* The bit of a term in struct tally; 0 for the light ones beyond. */
static inline uint32_t plan_bit(size_t term)
{
	return term < PLAN_BITS ? UINT32_C(1) << term : 0;
}

static inline uint32_t plan_alike_bit(size_t group)
{
	return UINT32_C(1) << (PLAN_BITS + group);
}

/* On success the caller owns it. */
int plan_init(struct search_plan *p, struct search_scratch *s,
	      const struct search_index *const *indexes, size_t n_indexes,
	      const struct search_query *q);
void plan_done(struct search_plan *p);

/* In how many memories of all indexes it occurs. */
uint64_t plan_count(const struct search_plan *p, const char *name, size_t len);

/* The weight of a word that is in so many of them. */
float plan_rarity(const struct search_plan *p, uint64_t n_docs);

/*
 * The known word that is one letter away from an unknown one: words with the same first letter
 * are preferred, then those that fingers mistype, then the more frequent. False when there is
 * none. Words of three letters are left alone unless short_too is set.
 */
bool plan_repair(const struct search_plan *p, struct plan_term *term, bool short_too);

/* The same for the name of a subject: the term becomes its name as a word. */
bool plan_repair_name(struct search_plan *p, struct plan_term *term, bool short_too);

/*
 * A search in progress: scores of memories by their own words.
 *
 * They are in one array of the scratch, one tally for each memory of each index, and 0 for
 * those without any of the words; `touched` lists the others.
 */

enum { LENS = 256 }; /* codes of lengths */

struct candidate {
	uint32_t place; /* in tallies */
	uint32_t index;
	uint32_t doc;
	uint32_t words; /* see struct tally */
	float base;     /* by its own words */
	float score;
};

struct search {
	struct search_plan plan;
	struct tally *tallies;
	uint32_t *touched;
	size_t n_touched;
	size_t *starts; /* start of each index in tallies; one more than there are indexes */
	struct candidate *candidates;
	size_t n_candidates;
	size_t n_best;     /* candidates by their own words: a heap while they are being chosen */
	float norms[LENS]; /* k1 * length, by coded length */
	float bound;       /* no score exceeds it */
	uint32_t raised;   /* words that are noted only for memories with others: see plan_bit */
	bool has_dates;    /* scores above 0 contain what the named dates are worth */
	struct {
		float least, most; /* by its own words */
		uint32_t words;    /* that it has */
		uint8_t len;       /* coded */
		uint32_t places[SEARCH_SAME_MAX];
		size_t n;
	} same;            /* memories with the question's words and no others: see search_same */
	bool oldest_first; /* of what answers equally well */
};

/* Scores each memory that has a word of the plan; `max` of them are wanted. */
void search_score(struct search *s, size_t max);

/*
 * A score that about `max` memories reach, and never fewer (0 when there are fewer): found by
 * counting how many have which score.
 */
float search_score_of(const struct search *s, size_t max);

/*
 * Words that are used alike: a memory that lacks a word of the question may have another one in
 * its place, which counts for a part of its weight. A table says which words these are
 * (search/vector/word_table.h); without one nothing happens here.
 */

/*
 * Adds them to the scores, after search_score. For each word of the question a memory gets credit
 * for one word at most, the most similar that it has. Names, numbers and dates are like no others.
 */
void search_score_alike(struct search *s);

/*
 * Which memories are examined closely: the best by their own words that pass the filters, and
 * the neighbours of the first of them in their chats.
 */

enum {
	REACH = 3,        /* neighbours on each side that count */
	SPREAD_FROM = 64, /* best candidates whose neighbours become candidates */
	CANDIDATES_MORE = 2 * REACH * SPREAD_FROM + SEARCH_SAME_MAX,
};

/*
 * Adds what the named dates are worth, so that memories of them become candidates. The newest
 * memories of a named day are scored whatever they say, so that "picnic on 7 May" also finds what
 * else happened on that day. Those of a longer time are scored only where the question has no
 * words ("What happened last month?"), or no memory with its words is of that time.
 */
void choose_dated(struct search *s, size_t max);

/* Fills the candidates, which must have room for `max` and CANDIDATES_MORE. */
void choose_candidates(struct search *s, size_t max);

/* Moves the best to the front, best first; returns how many they are, at most `limit`. */
size_t choose_first(struct search *s, size_t limit);

/*
 * What a memory's neighbours in its chat are worth to it.
 *
 * A turn of a conversation leaves out what was just said. So a memory gets a part of the weight
 * of each of the question's words that it lacks and a neighbour has; what it says itself is
 * not counted again.
 */

float context_credit(const struct search *s, const struct candidate *c);

/*
 * What is added to a memory's score besides its words: that it is about somebody whom the
 * question names, of a time that it names, or looks like the kind of answer it asks for.
 *
 * All are in units of the question's rarest word, so that they weigh the same in few memories
 * and in many.
 */

float lift_by_names(const struct search *s, const struct candidate *c);

/* What the dates that the question names are worth to a memory of a time. */
float lift_by_time(const struct search_plan *plan, int64_t time_ms);

/* A place for "where", a number for "how many". */
float lift_by_kind(const struct search *s, const struct candidate *c);

/* What the sum is multiplied with: importance, recency, and that questions tell little. */
float lift_factor(const struct search *s, const struct candidate *c);

/* "The first time", "latest": among those that answer well, the older or the newer. */
void lift_by_order(struct search *s);

/* Why a memory was found: what its score consists of, worked out again for those that are shown. */

void why_fill(const struct search *s, const struct candidate *c, struct search_why *ret_error);
