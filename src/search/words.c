/* Text into words; see words.h. */
#include "search/words.h"

#include <stdlib.h>

#include <libstemmer.h>

#include "base/utf8.h"
#include "search/fold.h"
#include "search/mix.h"

enum { MEMO_SLOTS = 4096, MEMO_WORD_MAX = 22 };

/* A folded word and its result: most words of a text have been seen before. */
struct memo {
	char folded[MEMO_WORD_MAX];
	char term[MEMO_WORD_MAX];
	uint8_t folded_len; /* 0: free */
	uint8_t term_len;
	uint8_t flags;
	uint8_t off;
};

struct words {
	struct sb_stemmer *stemmer;
	struct lexicon *lexicon;
	struct memo *memos;
	const char *at;
	const char *end;
	unsigned off;
	bool extras;
	bool capital;
	size_t len; /* of folded */
	char folded[WORD_BYTES_MAX + 4];
	char term[WORD_BYTES_MAX + 4];
	char piece[8]; /* the previous character, if of a script without spaces */
	size_t piece_len;
	bool piece_paired;
	bool piece_due; /* comes on its own as the next word */
};

struct words *words_new(void)
{
	struct words *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->stemmer = sb_stemmer_new("porter", NULL);
	w->lexicon = lexicon_new();
	w->memos = calloc(MEMO_SLOTS, sizeof(*w->memos));
	if (!w->stemmer || !w->lexicon || !w->memos) {
		words_free(w);
		return NULL;
	}
	return w;
}

void words_free(struct words *w)
{
	if (!w)
		return;
	if (w->stemmer)
		sb_stemmer_delete(w->stemmer);
	lexicon_free(w->lexicon);
	free(w->memos);
	free(w);
}

void words_start(struct words *w, struct text text, unsigned off, bool extras)
{
	w->at = text.data;
	w->end = text.data ? text.data + text.len : NULL;
	w->off = off;
	w->extras = extras;
	w->piece_len = 0;
	w->piece_due = false;
}

static bool only(const char *s, size_t len, char first, char last)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] < first || s[i] > last)
			return false;
	}
	return true;
}

static bool is_year(struct text t)
{
	return t.len == 4 && (memcmp(t.data, "19", 2) == 0 || memcmp(t.data, "20", 2) == 0);
}

/* Stems words of English letters; any other word is its own term. */
static size_t stem(struct words *w, struct text word)
{
	const sb_symbol *stemmed;
	int len;

	memcpy(w->term, word.data, word.len);
	if (word.len < 3 || !only(word.data, word.len, 'a', 'z'))
		return word.len;
	stemmed = sb_stemmer_stem(w->stemmer, (const sb_symbol *)word.data, (int)word.len);
	len = stemmed ? sb_stemmer_length(w->stemmer) : 0;
	if (len <= 0 || len > WORD_BYTES_MAX)
		return word.len;
	memcpy(w->term, stemmed, (size_t)len);
	return (size_t)len;
}

static size_t make_term(struct words *w, struct text folded, unsigned off, uint8_t *flags)
{
	const struct lexicon_entry *known = lexicon_find(w->lexicon, folded.data, folded.len);

	*flags = known ? known->flags : 0;
	if (only(folded.data, folded.len, '0', '9'))
		*flags |= WORD_NUMBER | (is_year(folded) ? WORD_TIME : 0);
	if (known && known->base && !(off & WORDS_NO_IRREGULAR))
		folded = text_of(known->base);
	if (!(off & WORDS_NO_STEMS))
		return stem(w, folded);
	memcpy(w->term, folded.data, folded.len);
	return folded.len;
}

struct text words_term(struct words *w, struct text folded, unsigned off, uint8_t *ret_flags)
{
	size_t len = make_term(w, folded, off, ret_flags);

	return (struct text) {w->term, len};
}

/* The same for a word that is likely to come again. */
static struct text remembered_term(struct words *w, struct text folded, unsigned off,
				   uint8_t *ret_flags)
{
	size_t slot = (size_t)mix_bytes(folded.data, folded.len, 0) & (MEMO_SLOTS - 1);
	struct memo *memo = &w->memos[slot];
	size_t len;

	if (memo->folded_len == folded.len && memo->off == off &&
	    memcmp(memo->folded, folded.data, folded.len) == 0) {
		*ret_flags = memo->flags;
		memcpy(w->term, memo->term, MEMO_WORD_MAX);
		return (struct text) {w->term, memo->term_len};
	}
	len = make_term(w, folded, off, ret_flags);
	if (folded.len <= MEMO_WORD_MAX && len <= MEMO_WORD_MAX) {
		memcpy(memo->folded, folded.data, folded.len);
		memcpy(memo->term, w->term, len);
		memo->folded_len = (uint8_t)folded.len;
		memo->term_len = (uint8_t)len;
		memo->flags = *ret_flags;
		memo->off = (uint8_t)off;
	}
	return (struct text) {w->term, len};
}

/* Cuts at a character boundary. */
static size_t append(char *to, size_t len, const uint32_t *folded, size_t n)
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

static bool one_of(const char *s, size_t len, const char *const *list)
{
	for (; *list; list++) {
		if (strlen(*list) == len && memcmp(s, *list, len) == 0)
			return true;
	}
	return false;
}

/* "l'école" is two words; "don't" and "O'Brien" are one. */
static bool is_elision(const char *s, size_t len)
{
	static const char *const list[] = {"l", "d", "j", "m", "n", "s", "t", "c", "qu", NULL};

	return one_of(s, len, list);
}

/* "Alice's", "they're": the word is the part before it. */
static bool is_clitic(const char *s, size_t len)
{
	static const char *const list[] = {"s", "re", "ve", "ll", "d", "m", NULL};

	return one_of(s, len, list);
}

/* "7th" is 7. */
static size_t without_ordinal(const char *s, size_t len)
{
	static const char *const list[] = {"st", "nd", "rd", "th", NULL};

	if (len > 2 && only(s, len - 2, '0', '9') && one_of(s + len - 2, 2, list))
		return len - 2;
	return len;
}

static bool is_letter_at(const char *p, const char *end)
{
	uint32_t folded[FOLD_MAX];
	enum char_kind kind;
	size_t n;

	if (p >= end)
		return false;
	fold_next(p, end, &kind, folded, &n);
	return kind == CHAR_LETTER;
}

/* "1,000" is 1000: a comma between digits, followed by exactly three. */
static bool is_thousands(const struct words *w, const char *comma)
{
	const char *p = comma + 1;
	size_t n = 0;

	if (*comma != ',' || !only(w->folded, w->len, '0', '9'))
		return false;
	while (p + n < w->end && n < 4 && p[n] >= '0' && p[n] <= '9')
		n++;
	return n == 3;
}

/* Reads the rest of a word that starts here, into w->folded. */
static void read_word(struct words *w)
{
	size_t apostrophe = 0;

	w->len = 0;
	w->capital = *w->at >= 'A' && *w->at <= 'Z';
	while (w->at < w->end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;
		size_t took = fold_next(w->at, w->end, &kind, folded, &n);

		if (kind == CHAR_APOSTROPHE && is_letter_at(w->at + took, w->end)) {
			if (is_elision(w->folded, w->len))
				break;
			apostrophe = w->len;
		} else if (kind == CHAR_LETTER || kind == CHAR_DIGIT) {
			w->len = append(w->folded, w->len, folded, n);
		} else if (kind != CHAR_NOTHING && !is_thousands(w, w->at)) {
			break;
		}
		w->at += took;
	}
	if (apostrophe > 0 && is_clitic(w->folded + apostrophe, w->len - apostrophe))
		w->len = apostrophe;
	w->len = without_ordinal(w->folded, w->len);
}

static void give(struct words *w, bool extra, struct word *word)
{
	word->folded = (struct text) {w->folded, w->len};
	word->extra = extra;
	word->term = remembered_term(w, word->folded, w->off, &word->flags);
	if (w->capital)
		word->flags |= WORD_CAPITAL;
}

/* Returns as a word the last character read of a run without spaces, after those before it. */
static void give_piece(struct words *w, const char *before, size_t before_len, bool extra,
		       struct word *word)
{
	if (before_len > 0)
		memcpy(w->folded, before, before_len);
	memcpy(w->folded + before_len, w->piece, w->piece_len);
	w->len = before_len + w->piece_len;
	w->capital = false;
	give(w, extra, word);
}

/* Adds one more character of such a run; true when that completed a word. */
static bool take_piece(struct words *w, uint32_t c, struct word *word)
{
	char before[sizeof(w->piece)];
	size_t before_len = w->piece_len;

	memcpy(before, w->piece, sizeof(before));
	w->piece_len = utf8_encode(w->piece, c);
	w->piece_paired = before_len > 0;
	w->piece_due = w->piece_paired && w->extras;
	if (!w->piece_paired && !w->extras)
		return false;
	give_piece(w, before, before_len, false, word);
	return true;
}

/* Ends a run: a character that was in no pair is a word. */
static bool end_pieces(struct words *w, struct word *word)
{
	bool lone = w->piece_len > 0 && !w->piece_paired && !w->extras;

	if (lone)
		give_piece(w, NULL, 0, false, word);
	w->piece_len = 0;
	return lone;
}

/* Handles a character that does not start a plain word. */
static bool take_other(struct words *w, enum char_kind kind, const uint32_t *folded,
		       struct word *word)
{
	if (kind == CHAR_PIECE)
		return take_piece(w, folded[0], word);
	if (kind != CHAR_SIGN)
		return false;
	w->len = append(w->folded, 0, folded, 1);
	w->capital = false;
	give(w, false, word);
	return true;
}

bool words_next(struct words *w, struct word *ret_word)
{
	if (w->piece_due) {
		w->piece_due = false;
		give_piece(w, NULL, 0, true, ret_word);
		return true;
	}
	while (w->at < w->end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;
		size_t took = fold_next(w->at, w->end, &kind, folded, &n);

		if (kind != CHAR_PIECE && kind != CHAR_NOTHING && end_pieces(w, ret_word))
			return true;
		if (kind == CHAR_LETTER || kind == CHAR_DIGIT) {
			read_word(w);
			if (w->len == 0)
				continue;
			give(w, false, ret_word);
			return true;
		}
		w->at += took;
		if (take_other(w, kind, folded, ret_word))
			return true;
	}
	return end_pieces(w, ret_word);
}

/* The last character that is neither white space nor a closing quote. */
static bool ends_with(struct text t, const char *const *marks)
{
	while (t.len > 0 && strchr(" \t\r\n\"')", t.data[t.len - 1]))
		t.len--;
	for (; *marks; marks++) {
		size_t n = strlen(*marks);

		if (t.len >= n && memcmp(t.data + t.len - n, *marks, n) == 0)
			return true;
	}
	return false;
}

bool words_ask(struct words *w, struct text text)
{
	static const char *const asking[] = {"?", "\xef\xbc\x9f", "\xd8\x9f", "\xcd\xbe", NULL};
	static const char *const telling[] = {".", "!", "\xe3\x80\x82", NULL};
	struct word word;

	if (text.len == 0)
		return false;
	if (ends_with(text, asking))
		return true;
	if (ends_with(text, telling))
		return false;
	words_start(w, text, 0, false);
	return words_next(w, &word) && (word.flags & WORD_QUESTION);
}
