/*
 * Any bytes as text: its words are short, valid UTF-8, the same each time, and few for each that
 * was written.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "search/fold.h"
#include "search/mix.h"
#include "search/words.h"

enum { EXTRAS_MAX = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check(struct words *w, const struct word *word)
{
	struct text other;

	require(word->term.len > 0 && word->term.len <= WORD_BYTES_MAX);
	require(word->folded.len > 0 && word->folded.len <= WORD_BYTES_MAX);
	require(utf8_is_valid(word->term.data, word->term.len));
	require(utf8_is_valid(word->folded.data, word->folded.len));
	if (words_other(w, word->term.len % LANGUAGES_LATIN, &other))
		require(other.len > 0 && other.len <= WORD_BYTES_MAX);
}

/* All the words as one number. */
static uint64_t read_all(struct words *w, struct text text, unsigned off, enum words_of of)
{
	struct word word;
	uint64_t sum = 0;
	size_t extras = 0;

	words_start(w, text, off, of);
	while (words_next(w, &word)) {
		sum = mix_bytes(word.term.data, word.term.len, sum + word.extra);
		extras = word.extra ? extras + 1 : 0;
		require(extras <= EXTRAS_MAX || of == WORDS_OF_QUESTION);
		require(of != WORDS_OF_NAME || !word.extra);
		check(w, &word);
	}
	require(!words_next(w, &word));
	return sum;
}

static void check_folds(const char *at, const char *end)
{
	while (at < end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;
		size_t took = fold_next(at, end, &kind, folded, &n);

		require(took > 0 && took <= (size_t)(end - at) && n <= FOLD_MAX);
		fold_is_capital(at, end);
		if (kind == CHAR_LETTER)
			fold_lower(at, took);
		if (kind == CHAR_PIECE)
			took = fold_kana(at, end, took, &folded[0]);
		require(took > 0 && took <= (size_t)(end - at));
		at += took;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct words *w;
	struct text text = {(const char *)data, size};

	if (!w)
		w = words_new();
	if (!w)
		return 0;
	check_folds(text.data, text.data + size);
	for (unsigned of = WORDS_OF_NAME; of <= WORDS_OF_QUESTION; of++) {
		unsigned off = of == WORDS_OF_NAME ? size % 8 : 0;

		require(read_all(w, text, off, of) == read_all(w, text, off, of));
	}
	words_ask(w, text);
	return 0;
}
