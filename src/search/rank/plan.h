/*
 * What a question asks for, worked out before any memory is examined: its words with their
 * weights, and the subjects and dates that it names.
 */
#pragma once

#include "search/dates.h"
#include "search/index_inner.h"
#include "search/query.h"
#include "search/scratch.h"

enum {
	PLAN_WORDS_MAX = 1024, /* different words of a question that are considered */
	PLAN_CONTEXT_MAX = 16, /* words used of what surrounds the question: see prompt.h */
	PLAN_SUBJECTS_MAX = 8,
	PLAN_LANGUAGE_RARE = 8, /* a language is rare if one of so many memories has it */
	PLAN_REPAIRS_MAX = 3,
	PLAN_DATE_WORDS_MAX = 256, /* words that are searched for dates */
	PLAN_BITS = 24,            /* words whose memories are known: see struct tally */
	PLAN_ALIKE_BITS = 8,       /* words for which there are similar ones: see alike.h */
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

struct plan {
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
int plan_init(struct plan *p, struct search_scratch *s, const struct search_index *const *indexes,
	      size_t n_indexes, const struct search_query *q);
void plan_done(struct plan *p);

/* In how many memories of all indexes it occurs. */
uint64_t plan_count(const struct plan *p, const char *name, size_t len);

/* The weight of a word that is in so many of them. */
float plan_rarity(const struct plan *p, uint64_t n_docs);

/*
 * The known word that is one letter away from an unknown one: words with the same first letter
 * are preferred, then those that fingers mistype, then the more frequent. False when there is
 * none. Words of three letters are left alone unless short_too is set.
 */
bool plan_repair(const struct plan *p, struct plan_term *term, bool short_too);

/* The same for the name of a subject: the term becomes its name as a word. */
bool plan_repair_name(struct plan *p, struct plan_term *term, bool short_too);
