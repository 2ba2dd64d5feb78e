/* The parts of a struct words, for the files of this folder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"
#include "base/utf8.h"
#include "search/language.h"
#include "search/words.h"

/*
 * Stems of words, in several languages. A struct stems belongs to one thread; a language's
 * stemmer is made when its first word comes.
 */

struct stems;

/* NULL when out of memory. */
struct stems *stems_new(void);
void stems_free(struct stems *s);

/*
 * The stem of a word in lower case; valid until the next one. It is the word itself where the
 * language has no stemmer, or when out of memory.
 */
struct text stems_of(struct stems *s, enum language l, struct text word);

enum {
	MEMO_SLOTS = 4096,
	MEMO_WORD_MAX = 22,
	EXTRAS_MAX = 12,  /* for one word */
	SEAMS_MAX = 7,    /* in one word: camelCase has one */
	GUESS_WORDS = 32, /* of a text, to guess its language */
	LOWER_BYTES = 2 * WORD_BYTES_MAX,
	STEM_MIN = 3,
};

/* A word before stemming and its result: most words of a text have been seen before. */
struct memo {
	char word[MEMO_WORD_MAX];
	char term[MEMO_WORD_MAX];
	uint8_t word_len; /* 0: free */
	uint8_t term_len;
	uint8_t flags;
	uint8_t off;
	uint8_t language;
};

struct extra {
	char folded[WORD_BYTES_MAX];
	uint8_t len;
};

/* Words that are joined: src/main.c, snake_case, e-mail. */
struct joined {
	char folded[WORD_BYTES_MAX + 4];
	size_t len;
	size_t n;
	char joint; /* the last */
	bool letters;
};

struct words {
	struct stems *stems;
	struct memo *memos;
	const char *at;
	const char *end;
	unsigned off;
	enum words_of of;
	enum language language; /* of those words of the text that are in the Latin script */
	enum language script;   /* of most words; English: Latin, or one that is not known */
	enum language leaning;  /* the same, where one word is enough to say so */
	bool knows;             /* some words say so */
	bool capital;
	size_t len; /* of folded */
	char folded[WORD_BYTES_MAX + 4];
	char term[WORD_BYTES_MAX + 4];
	char lower[LOWER_BYTES + 4]; /* the same with accents, where it has some */
	size_t lower_len;            /* 0: it has none */
	uint32_t letters;            /* languages, as bits, that its letters are of */
	uint8_t seams[SEAMS_MAX];
	size_t n_seams;
	struct joined joined;
	struct extra extras[EXTRAS_MAX];
	size_t n_extras;
	size_t extra;  /* the next one to give */
	char piece[8]; /* the previous character, if of a script without spaces */
	size_t piece_len;
	bool piece_paired;
};

static inline bool word_has_only(const char *s, size_t len, char first, char last)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] < first || s[i] > last)
			return false;
	}
	return true;
}

/* The first character of a word, which is valid UTF-8. */
static inline uint32_t word_letter(struct text t)
{
	uint32_t c = (unsigned char)t.data[0];
	size_t n;

	if (c < 0x80)
		return c;
	n = utf8_sequence(t.data, t.data + t.len);
	c &= 0xffU >> (n + 1);
	for (size_t i = 1; i < n; i++)
		c = c << 6 | ((unsigned char)t.data[i] & 0x3f);
	return c;
}

/* Appends characters to a word of WORD_BYTES_MAX; cuts at a character boundary. */
static inline size_t word_append(char *to, size_t len, const uint32_t *folded, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char bytes[4];
		size_t size = utf8_encode(bytes, folded[i]);

		if (len + size > WORD_BYTES_MAX)
			return len;
		memcpy(to + len, bytes, size);
		len += size;
	}
	return len;
}

/* By its script; among those of the Latin script, the text's. */
enum language word_language(struct text folded, enum language of_text);

/* The term of a folded word; `word` is what it is with its accents. Returns its length. */
size_t word_term(struct words *w, struct text folded, struct text word, enum language l,
		 unsigned off, uint8_t *flags);

/* Whether a letter is here, or a digit. */
bool word_goes_on(const char *p, const char *end, bool digits);

/* Returns the word in w->folded. */
void word_give(struct words *w, bool extra, struct word *word);

/* One more word that comes after this one. */
void word_owe(struct words *w, struct text folded);

/* Whatever else the word in w->folded is found by; `word` is how it was returned. */
void word_owe_others(struct words *w, struct word *word);

/*
 * German compounds: "Krankenversicherungskarte" is a card, an insurance, and for the ill.
 *
 * A word is taken apart around the parts that the lexicon knows, and after endings that only
 * occur inside of compounds ("ungs", "heits"). The other side of a known part is taken for a
 * part as well.
 */

enum { COMPOUND_PARTS_MAX = 6, COMPOUND_BYTES_MIN = 7 };

/*
 * The parts of a folded word, and longer pieces of several; all point into it. A word that is no
 * noun, as its small first letter says, is only taken apart where both sides are known.
 */
size_t compound_split(struct text word, bool noun, struct text ret_parts[COMPOUND_PARTS_MAX]);
