/* Text into words; see words.h. */
#include "search/words.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "search/apostrophe.h"
#include "search/compound.h"
#include "search/fold.h"
#include "search/mix.h"
#include "search/stems.h"

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

struct words *words_new(void)
{
	struct words *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->stems = stems_new();
	w->memos = calloc(MEMO_SLOTS, sizeof(*w->memos));
	if (!w->stems || !w->memos) {
		words_free(w);
		return NULL;
	}
	return w;
}

void words_free(struct words *w)
{
	if (!w)
		return;
	stems_free(w->stems);
	free(w->memos);
	free(w);
}

static bool only(const char *s, size_t len, char first, char last)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] < first || s[i] > last)
			return false;
	}
	return true;
}

static bool has_digit(struct text t)
{
	for (size_t i = 0; i < t.len; i++) {
		if (t.data[i] >= '0' && t.data[i] <= '9')
			return true;
	}
	return false;
}

static bool is_year(struct text t)
{
	return t.len == 4 && (memcmp(t.data, "19", 2) == 0 || memcmp(t.data, "20", 2) == 0);
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

/* Into w->term, without accents. */
static size_t fold_term(struct words *w, struct text t)
{
	const char *at = t.data;
	const char *end = t.data + t.len;
	size_t len = 0;

	while (at < end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;

		at += fold_next(at, end, &kind, folded, &n);
		len = append(w->term, len, folded, n);
	}
	return len;
}

static size_t keep_term(struct words *w, struct text t)
{
	memcpy(w->term, t.data, t.len);
	return t.len;
}

/* English stems words of English letters; other languages any word without digits. */
static size_t stem(struct words *w, enum language l, struct text word)
{
	struct text stemmed;

	if (l == LANGUAGE_ENGLISH) {
		if (word.len < STEM_MIN || !only(word.data, word.len, 'a', 'z'))
			return keep_term(w, word);
		stemmed = stems_of(w->stems, l, word);
		return keep_term(w, stemmed.len <= WORD_BYTES_MAX ? stemmed : word);
	}
	if (word.len < STEM_MIN || has_digit(word))
		return fold_term(w, word);
	stemmed = stems_of(w->stems, l, word);
	return fold_term(w, stemmed);
}

static uint32_t first_letter(struct text t)
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

/* By its script; among those of the Latin script, the text's. */
static enum language language_of(struct text folded, enum language of_text)
{
	uint32_t c = folded.len > 0 ? first_letter(folded) : 'a';
	enum language l = c < 0x80 ? LANGUAGE_ENGLISH : language_of_letter(c);

	return l == LANGUAGE_ENGLISH && c < 0x250 ? of_text : l;
}

/* The flags of English words mean something in English alone. */
static uint8_t flags_of(const struct lexicon_entry *known, struct text folded, enum language l)
{
	uint8_t flags = known ? known->flags : 0;

	if (l != LANGUAGE_ENGLISH) {
		flags &= WORD_TIME;
		if (known && known->small_in >> l & 1)
			flags |= WORD_STOP;
	}
	if (only(folded.data, folded.len, '0', '9'))
		flags |= WORD_NUMBER | (is_year(folded) ? WORD_TIME : 0);
	return flags;
}

/* `word` is the folded word, or what it is with its accents. */
static size_t make_term(struct words *w, struct text folded, struct text word, enum language l,
			unsigned off, uint8_t *flags)
{
	const struct lexicon_entry *known = lexicon_find(folded.data, folded.len);

	*flags = flags_of(known, folded, l);
	if (l == LANGUAGE_ENGLISH && known && known->base && !(off & WORDS_NO_IRREGULAR))
		word = text_of(known->base);
	if (off & WORDS_NO_STEMS)
		return keep_term(w, folded);
	return stem(w, l, word);
}

static enum language plain_language(struct text folded, unsigned off)
{
	return off & WORDS_OLD ? LANGUAGE_ENGLISH : language_of(folded, LANGUAGE_ENGLISH);
}

struct text words_term(struct words *w, struct text folded, unsigned off, uint8_t *ret_flags)
{
	size_t len = make_term(w, folded, folded, plain_language(folded, off), off, ret_flags);

	return (struct text) {w->term, len};
}

/* The same for a word that is likely to come again. */
static struct text remembered_term(struct words *w, struct text folded, struct text word,
				   enum language l, uint8_t *ret_flags)
{
	size_t slot = (size_t)mix_bytes(word.data, word.len, l) & (MEMO_SLOTS - 1);
	struct memo *memo = &w->memos[slot];
	size_t len;

	if (memo->word_len == word.len && memo->off == w->off && memo->language == l &&
	    memcmp(memo->word, word.data, word.len) == 0) {
		*ret_flags = memo->flags;
		memcpy(w->term, memo->term, MEMO_WORD_MAX);
		return (struct text) {w->term, memo->term_len};
	}
	len = make_term(w, folded, word, l, w->off, ret_flags);
	if (word.len <= MEMO_WORD_MAX && len <= MEMO_WORD_MAX) {
		memcpy(memo->word, word.data, word.len);
		memcpy(memo->term, w->term, len);
		memo->word_len = (uint8_t)word.len;
		memo->term_len = (uint8_t)len;
		memo->flags = *ret_flags;
		memo->off = (uint8_t)w->off;
		memo->language = (uint8_t)l;
	}
	return (struct text) {w->term, len};
}

/* "7th" is 7. */
static size_t without_ordinal(const char *s, size_t len)
{
	static const char *const list[] = {"st", "nd", "rd", "th"};

	if (len <= 2 || !only(s, len - 2, '0', '9'))
		return len;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (memcmp(s + len - 2, list[i], 2) == 0)
			return len - 2;
	}
	return len;
}

static bool is_kind_at(const char *p, const char *end, bool digits)
{
	uint32_t folded[FOLD_MAX];
	enum char_kind kind;
	size_t n;

	if (p >= end)
		return false;
	fold_next(p, end, &kind, folded, &n);
	return kind == CHAR_LETTER || (digits && kind == CHAR_DIGIT);
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

/* Keeps the accents of a word beside it, from the first one on. */
static void note_lower(struct words *w, size_t took)
{
	uint32_t c = fold_lower(w->at, took);
	char bytes[4];
	size_t size = utf8_encode(bytes, c);

	if (took > 1 && w->lower_len == 0) {
		memcpy(w->lower, w->folded, w->len);
		w->lower_len = w->len;
	}
	if (took > 1)
		w->letters |= language_letter_bits(c);
	if (w->lower_len + size > LOWER_BYTES)
		return;
	memcpy(w->lower + w->lower_len, bytes, size);
	w->lower_len += size;
}

/* "parseHttp" has a seam before its H, "HTTPServer" one before its S. */
static void note_seam(struct words *w, const char *start)
{
	const char *p = w->at;
	bool upper = *p >= 'A' && *p <= 'Z';
	bool was_upper = p > start && p[-1] >= 'A' && p[-1] <= 'Z';
	bool was_lower = p > start && p[-1] >= 'a' && p[-1] <= 'z';
	size_t at = w->len;

	if (upper && !was_lower)
		return;
	if (!upper) {
		if (!was_upper || p - start < 2 || p[-2] < 'A' || p[-2] > 'Z')
			return;
		at--;
	}
	if (w->n_seams < SEAMS_MAX && at > 0 && at < WORD_BYTES_MAX)
		w->seams[w->n_seams++] = (uint8_t)at;
}

/* One more letter or digit of a word. */
static void take_letter(struct words *w, const char *start, size_t took, const uint32_t *folded,
			size_t n)
{
	bool old = w->off & WORDS_OLD;

	if (took == 1 && !old)
		note_seam(w, start);
	if ((took == 2 || w->lower_len > 0) && !old)
		note_lower(w, took);
	w->len = append(w->folded, w->len, folded, n);
}

static void cut_apostrophe(struct words *w, size_t at)
{
	struct text before = {w->folded, at};
	struct text after = {w->folded + at, w->len - at};

	if (at == 0)
		return;
	if (apostrophe_is_clitic(after) ||
	    (w->capital && !(w->off & WORDS_OLD) && apostrophe_is_turkish(before, after))) {
		w->len = at;
		/* The accents of a name are those before it; it is short of nothing else. */
		w->lower_len = 0;
	}
}

/* Reads the rest of a word that starts here, into w->folded. */
static void read_word(struct words *w)
{
	const char *start = w->at;
	size_t apostrophe = 0;

	w->len = 0;
	w->lower_len = 0;
	w->letters = 0;
	w->n_seams = 0;
	w->capital = fold_is_capital(w->at, w->end);
	while (w->at < w->end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;
		size_t took = fold_next(w->at, w->end, &kind, folded, &n);

		if (kind == CHAR_APOSTROPHE && is_kind_at(w->at + took, w->end, false)) {
			if (apostrophe_elides((struct text) {w->folded, w->len},
					      !(w->off & WORDS_OLD)))
				break;
			apostrophe = w->len;
		} else if (kind == CHAR_LETTER || kind == CHAR_DIGIT) {
			take_letter(w, start, took, folded, n);
		} else if (kind != CHAR_NOTHING && !is_thousands(w, w->at)) {
			break;
		}
		w->at += took;
	}
	cut_apostrophe(w, apostrophe);
	w->len = without_ordinal(w->folded, w->len);
}

/* What a language's stemmer wants: the word with its accents, where these make endings. */
static struct text to_stem(const struct words *w, enum language l)
{
	bool accents = l != LANGUAGE_ENGLISH && (l < LANGUAGES_LATIN || l == LANGUAGE_RUSSIAN);

	if (accents && w->lower_len > 0)
		return (struct text) {w->lower, w->lower_len};
	return (struct text) {w->folded, w->len};
}

static void give(struct words *w, bool extra, struct word *word)
{
	struct text folded = {w->folded, w->len};
	enum language l = w->off & WORDS_OLD ? LANGUAGE_ENGLISH : language_of(folded, w->language);

	word->folded = folded;
	word->extra = extra;
	word->joint = 0;
	word->term = remembered_term(w, folded, to_stem(w, l), l, &word->flags);
	if (w->capital)
		word->flags |= WORD_CAPITAL;
}

bool words_other(struct words *w, enum language l, struct text *ret_term)
{
	struct text folded = {w->folded, w->len};
	uint8_t flags;

	if (language_of(folded, LANGUAGES_LATIN) != LANGUAGES_LATIN)
		return false;
	*ret_term = remembered_term(w, folded, to_stem(w, l), l, &flags);
	return true;
}

/* One more word that comes after this one. */
static void owe(struct words *w, struct text folded)
{
	struct extra *extra = &w->extras[w->n_extras];

	if (w->n_extras == EXTRAS_MAX || folded.len == 0 || folded.len > WORD_BYTES_MAX)
		return;
	memcpy(extra->folded, folded.data, folded.len);
	extra->len = (uint8_t)folded.len;
	w->n_extras++;
}

/* The parts of a word with capitals inside. */
static void owe_parts(struct words *w)
{
	size_t from = 0;

	for (size_t i = 0; i <= w->n_seams && w->n_seams > 0; i++) {
		size_t to = i < w->n_seams ? w->seams[i] : w->len;

		if (to > w->len || to < from)
			to = w->len;
		if (to - from >= 2)
			owe(w, (struct text) {w->folded + from, to - from});
		from = to;
	}
}

static void owe_compound(struct words *w)
{
	struct text parts[COMPOUND_PARTS_MAX];
	struct text word = {w->folded, w->len};
	size_t n;

	if (w->language != LANGUAGE_GERMAN || word.len < COMPOUND_BYTES_MIN ||
	    !only(word.data, word.len, 'a', 'z'))
		return;
	n = compound_split(word, w->capital, parts);
	for (size_t i = 0; i < n; i++)
		owe(w, parts[i]);
}

/* Somebody may look for an accented word without its accents, which has another stem. */
static void owe_unaccented(struct words *w, const struct word *word)
{
	char term[WORD_BYTES_MAX];
	struct text folded = {w->folded, w->len};
	enum language l = language_of(folded, w->language);
	size_t len = word->term.len;
	uint8_t flags;

	if (w->of != WORDS_OF_MEMORY || w->lower_len == 0 || l == LANGUAGE_ENGLISH ||
	    l >= LANGUAGES_LATIN)
		return;
	memcpy(term, word->term.data, len);
	if (make_term(w, folded, folded, l, w->off, &flags) != len ||
	    memcmp(term, w->term, len) != 0)
		owe(w, folded);
	memcpy(w->term, term, len);
}

/* What joins this word to the one that follows; 0 if nothing does. */
static char joint_after(const struct words *w)
{
	const char *p = w->at;

	if (p >= w->end || !strchr("_-./:@\\", *p) || *p == 0)
		return 0;
	if (p + 1 < w->end && p[0] == ':' && p[1] == ':')
		p++;
	return is_kind_at(p + 1, w->end, true) ? *w->at : 0;
}

/* Dates and times are numbers, which are found one by one; 192.168.1.1 and 3.11.2 are names. */
static bool is_name(const struct joined *j)
{
	return j->n > 1 && (j->letters || (j->joint == '.' && j->n > 2));
}

static void join(struct words *w, struct word *word)
{
	struct joined *j = &w->joined;
	char next = joint_after(w);
	size_t n = w->len;

	word->joint = j->n > 0 ? j->joint : 0;
	if (j->n == 0 && !next)
		return;
	if (n > WORD_BYTES_MAX - j->len)
		n = WORD_BYTES_MAX - j->len;
	memcpy(j->folded + j->len, w->folded, n);
	j->len += n;
	j->n++;
	j->letters |= !only(w->folded, w->len, '0', '9');
	if (next) {
		j->joint = next;
		return;
	}
	if (is_name(j) && utf8_is_valid(j->folded, j->len))
		owe(w, (struct text) {j->folded, j->len});
	*j = (struct joined) {0};
}

/* A word as it stands, and what else it is found by. */
static void give_word(struct words *w, struct word *word)
{
	give(w, false, word);
	if (w->of == WORDS_OF_NAME || (w->off & WORDS_OLD))
		return;
	owe_parts(w);
	owe_unaccented(w, word);
	owe_compound(w);
	join(w, word);
}

static void give_extra(struct words *w, struct word *word)
{
	const struct extra *extra = &w->extras[w->extra++];

	memcpy(w->folded, extra->folded, extra->len);
	w->len = extra->len;
	w->lower_len = 0;
	w->capital = false;
	give(w, true, word);
}

/* Returns as a word the last character read of a run without spaces, after those before it. */
static void give_piece(struct words *w, const char *before, size_t before_len, bool extra,
		       struct word *word)
{
	if (before_len > 0)
		memcpy(w->folded, before, before_len);
	memcpy(w->folded + before_len, w->piece, w->piece_len);
	w->len = before_len + w->piece_len;
	w->lower_len = 0;
	w->capital = false;
	give(w, extra, word);
}

/* Chinese characters and Korean syllables are words by themselves; kana and Thai letters are
 * not. */
static bool is_word_alone(const char *piece, size_t len)
{
	uint32_t c = first_letter((struct text) {piece, len});

	return (c >= 0x2e80 && c <= 0x3007) || (c >= 0x3400 && c <= 0xd7a3) || c >= 0x20000 ||
	       (c >= 0xf900 && c <= 0xfaff);
}

static bool is_hiragana(const char *piece, size_t len)
{
	uint32_t c = len > 0 ? first_letter((struct text) {piece, len}) : 0;

	return c >= 0x3041 && c <= 0x309f;
}

/* Adds one more character of such a run; true when that completed a word. */
static bool take_piece(struct words *w, uint32_t c, struct word *word)
{
	char before[sizeof(w->piece)];
	size_t before_len = w->piece_len;
	bool grammar;

	memcpy(before, w->piece, sizeof(before));
	w->piece_len = utf8_encode(w->piece, c);
	if (before_len == 0) {
		w->piece_paired = false;
		return false;
	}
	if (w->of != WORDS_OF_NAME) {
		if (!w->piece_paired && is_word_alone(before, before_len))
			owe(w, (struct text) {before, before_len});
		if (is_word_alone(w->piece, w->piece_len))
			owe(w, (struct text) {w->piece, w->piece_len});
	}
	w->piece_paired = true;
	/* Two hiragana mostly are grammar; where they are not, they still count a little. */
	grammar = w->of == WORDS_OF_QUESTION && is_hiragana(before, before_len) &&
		  is_hiragana(w->piece, w->piece_len);
	give_piece(w, before, before_len, grammar, word);
	return true;
}

/* Ends a run: a character that was in no pair is a word. */
static bool end_pieces(struct words *w, struct word *word)
{
	bool lone = w->piece_len > 0 && !w->piece_paired;

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
	w->lower_len = 0;
	w->capital = false;
	give(w, false, word);
	return true;
}

bool words_knows_language(const struct words *w)
{
	return w->knows;
}

bool words_next(struct words *w, struct word *ret_word)
{
	if (w->extra < w->n_extras) {
		give_extra(w, ret_word);
		return true;
	}
	w->extra = 0;
	w->n_extras = 0;
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
			give_word(w, ret_word);
			return true;
		}
		if (kind == CHAR_PIECE && !(w->off & WORDS_OLD))
			took = fold_kana(w->at, w->end, took, &folded[0]);
		w->at += took;
		if (take_other(w, kind, folded, ret_word))
			return true;
	}
	return end_pieces(w, ret_word);
}

/* Notes one word of the Latin script, for what it says about the language. */
static void note_word(struct words *w, struct language_guess *g)
{
	/* Single letters are names and units as often as words. */
	const struct lexicon_entry *known =
		w->len > 1 || w->folded[0] == 'i' ? lexicon_find(w->folded, w->len) : NULL;

	language_note(g, known ? known->small_in : 0, w->letters);
}

static bool is_spanish_mark(const char *p, size_t took)
{
	return took == 2 && (memcmp(p, "\xc2\xbf", 2) == 0 || memcmp(p, "\xc2\xa1", 2) == 0);
}

/* Reads some words to see which language they are in, and which script most of them have. */
static void guess(struct words *w)
{
	struct language_guess g = {0};
	uint8_t scripts[LANGUAGES] = {0};

	w->script = LANGUAGE_ENGLISH;
	for (size_t n = 0; n < GUESS_WORDS && w->at < w->end;) {
		uint32_t folded[FOLD_MAX];
		enum language l;
		enum char_kind kind;
		size_t n_folded;
		size_t took = fold_next(w->at, w->end, &kind, folded, &n_folded);

		if (is_spanish_mark(w->at, took))
			language_note(&g, 1U << LANGUAGE_SPANISH, 0);
		if (kind != CHAR_LETTER && kind != CHAR_PIECE) {
			w->at += took;
			continue;
		}
		n++;
		l = language_of_letter(folded[0]);
		if (++scripts[l] > scripts[w->script])
			w->script = l;
		if (kind == CHAR_PIECE) {
			w->at += took;
			continue;
		}
		read_word(w);
		note_word(w, &g);
		if (language_is_clearly_english(&g))
			break;
	}
	w->language = language_best(&g);
	w->knows = g.points[w->language] > 0 || w->script != LANGUAGE_ENGLISH;
}

void words_start(struct words *w, struct text text, unsigned off, enum words_of of)
{
	w->at = text.data;
	w->end = text.data ? text.data + text.len : NULL;
	w->off = off;
	w->of = of;
	w->piece_len = 0;
	w->n_extras = 0;
	w->extra = 0;
	w->joined = (struct joined) {0};
	w->language = LANGUAGE_ENGLISH;
	w->script = LANGUAGE_ENGLISH;
	w->knows = false;
	if (of == WORDS_OF_NAME || (off & (WORDS_OLD | WORDS_NO_STEMS)))
		return;
	guess(w);
	w->at = text.data;
}

enum language words_language(const struct words *w)
{
	return w->script == LANGUAGE_ENGLISH ? w->language : w->script;
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
	words_start(w, text, 0, WORDS_OF_NAME);
	return words_next(w, &word) && (word.flags & WORD_QUESTION);
}
