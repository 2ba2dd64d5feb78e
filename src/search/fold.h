/*
 * Letters without case and diacritics: "Ångström" and "angstrom" are one word.
 *
 * It uses no locale and no ICU: a table for Latin, Greek, Cyrillic and Armenian, and a few
 * ranges for the rest. Bytes that are not UTF-8 merely separate words.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum char_kind {
	CHAR_GAP,    /* between words */
	CHAR_LETTER, /* letters, and vowel signs that are part of a word */
	CHAR_DIGIT,
	CHAR_PIECE,      /* of a script without spaces: pairs of these are words */
	CHAR_SIGN,       /* emoji: each is a word */
	CHAR_NOTHING,    /* a combining mark, a joiner: ignored */
	CHAR_APOSTROPHE, /* a gap, unless within a word */
};

enum { FOLD_MAX = 3 };

/*
 * Decodes one character at p, which is before end, and folds it: its kind, and
 * up to FOLD_MAX code points (none unless letter, digit, piece or sign).
 * Returns the bytes taken, at least 1.
 */
size_t fold_next(const char *p, const char *end, enum char_kind *ret_kind,
		 uint32_t ret_folded[FOLD_MAX], size_t *ret_n);

/* The character at p, of `took` bytes as fold_next returned them, in lower case but with its
 * diacritics. Latin and Cyrillic only; others stay as they are. */
uint32_t fold_lower(const char *p, size_t took);

/* Whether it starts with a capital letter of Latin, Greek or Cyrillic. */
bool fold_is_capital(const char *p, const char *end);

/*
 * Half-width kana as wide ones, and a kana with the sound mark that follows it as one
 * character: ｶﾞ is ガ. *c is the character at p; returns the bytes taken.
 */
size_t fold_kana(const char *p, const char *end, size_t took, uint32_t *c);
