/* Text into sentences; see recall.h. */
#include "agent/recall/recall.h"

#include <strings.h>

static bool sentence_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* Part of a word, in ASCII; everything beyond counts as letters. */
static bool is_wordly(char c)
{
	return is_upper(c) || is_lower(c) || is_digit(c) || (unsigned char)c >= 0x80;
}

/* Whether the word is in the list: words with one blank between and around them. */
static bool is_among(struct text word, const char *list)
{
	for (const char *at = list; *at;) {
		size_t n = strcspn(at, " ");

		if (n == word.len && strncasecmp(at, word.data, n) == 0)
			return true;
		at += n;
		at += *at == ' ';
	}
	return false;
}

/* ---- where a sentence ends ---- */

/* What precedes a full stop: "Dr", the "g" of "e.g", the "2" of a numbered line. */
static bool is_short_form(struct text before)
{
	size_t at = before.len;
	struct text word;

	while (at > 0 && is_wordly(before.data[at - 1]))
		at--;
	word = (struct text) {before.data + at, before.len - at};
	if (word.len == 0)
		return false;
	if (at == 0 && is_digit(word.data[0]))
		return true;
	if (at > 0 && before.data[at - 1] == '.')
		return true;
	if (word.len == 1 && is_upper(word.data[0]) && word.data[0] != 'I')
		return true;
	return is_among(word, "mr mrs ms dr prof st vs etc nr vol fig approx inc ltd");
}

static size_t skip_closing(struct text t, size_t at)
{
	while (at < t.len && memchr("\"')]*_`", t.data[at], 7))
		at++;
	return at;
}

/* The end of the sentence whose stop is at `at`; 0 if that is no stop. */
static size_t end_at_stop(struct text t, size_t at)
{
	size_t end = at + 1;

	while (end < t.len && memchr(".!?", t.data[end], 3))
		end++;
	end = skip_closing(t, end);
	if (end < t.len && !sentence_is_space(t.data[end]))
		return 0;
	if (t.data[at] != '.' || end >= t.len)
		return end;
	if (is_short_form((struct text) {t.data, at}))
		return 0;
	/* Hardly any sentence begins with a small letter. */
	for (size_t next = end; next < t.len && t.data[next] != '\n'; next++) {
		if (!sentence_is_space(t.data[next]))
			return is_lower(t.data[next]) ? 0 : end;
	}
	return end;
}

/* In scripts without spaces, the full stop stands right before the next sentence. */
static size_t wide_stop(struct text t)
{
	static const char *const stops[] = {"。", "！", "？", "｡"};

	for (unsigned i = 0; i < 4; i++) {
		if (text_begins(t, text_of(stops[i])))
			return strlen(stops[i]);
	}
	return 0;
}

/* The longest beginning that keeps words, or at least characters, whole. */
static size_t sentence_cut(struct text t)
{
	size_t at = SENTENCE_MAX;

	while (at > SENTENCE_MAX / 2 && !sentence_is_space(t.data[at]))
		at--;
	if (at > SENTENCE_MAX / 2)
		return at;
	for (at = SENTENCE_MAX;
	     at > SENTENCE_MAX - 4 && ((unsigned char)t.data[at] & 0xc0) == 0x80;)
		at--;
	return at;
}

static size_t sentence_end(struct text whole)
{
	/* A little more than may count, so that a line of nothing but stops is not searched
	 * again and again. */
	struct text t = {whole.data, whole.len < SENTENCE_MAX + 8 ? whole.len : SENTENCE_MAX + 8};

	for (size_t i = 0; i < t.len; i++) {
		size_t end = 0;

		if (i == SENTENCE_MAX)
			return sentence_cut(t);
		if (t.data[i] == '\n' || t.data[i] == '\r')
			return i;
		if (memchr(".!?", t.data[i], 3)) {
			end = end_at_stop(t, i);
		} else if ((unsigned char)t.data[i] >= 0x80) {
			size_t n = wide_stop((struct text) {t.data + i, t.len - i});

			end = n > 0 ? i + n : 0;
		}
		if (end > 0)
			return end <= SENTENCE_MAX ? end : sentence_cut(t);
	}
	return t.len;
}

bool sentence_next(struct text *rest, struct text *ret_sentence)
{
	struct text t = text_trim(*rest, TEXT_SPACE);
	size_t end;

	if (t.len == 0) {
		*rest = t;
		return false;
	}
	end = sentence_end(t);
	*ret_sentence = text_trim((struct text) {t.data, end}, TEXT_SPACE);
	*rest = (struct text) {t.data + end, t.len - end};
	return true;
}

/* ---- what a sentence does ---- */

/* The next word, without what follows an apostrophe: "what" of "what's". */
static struct text take_word(struct text *t)
{
	size_t at = 0;
	size_t end;
	struct text word;

	while (at < t->len && !is_wordly(t->data[at]))
		at++;
	for (end = at; end < t->len && is_wordly(t->data[end]);)
		end++;
	word = (struct text) {t->data + at, end - at};
	while (end < t->len && !sentence_is_space(t->data[end]))
		end++;
	*t = (struct text) {t->data + end, t->len - end};
	return word;
}

static bool is_asking_mark(struct text s)
{
	return text_ends(s, TEXT("?")) || text_ends(s, TEXT("？")) || text_ends(s, TEXT("؟"));
}

/* What may stand after the last word: quotes, brackets, more marks. */
static struct text without_closing(struct text s)
{
	while (s.len > 0 && memchr("\"')]*_`!", s.data[s.len - 1], 8))
		s.len--;
	return s;
}

/* "Hi, I am Alice" is more than a greeting. */
static bool is_greeting(struct text s)
{
	struct text hello = take_word(&s);
	struct text whom = take_word(&s);

	return is_among(hello, "hello hi hey greetings") &&
	       (whom.len == 0 ||
		(is_among(whom, "there koine all everyone") && text_trim(s, TEXT_SPACE).len == 0));
}

enum sentence_kind sentence_kind(struct text s)
{
	static const char fillers[] = "please and but so ok okay well now then also hey";
	static const char asking[] =
		"what when where who whom whose which why how is are was were do does did has "
		"have had will would can could should shall am";
	static const char wanting[] =
		"tell show write list give explain describe find summarize summarise say repeat "
		"remind translate compare draft compose create make generate print count quote "
		"recall search help continue define";
	struct text rest = s;
	struct text word = take_word(&rest);

	if (is_asking_mark(without_closing(s)))
		return SENTENCE_ASKS;
	if (is_greeting(s))
		return SENTENCE_GREETS;
	while (word.len > 0 && is_among(word, fillers))
		word = take_word(&rest);
	if (word.len > 0 && is_among(word, wanting))
		return SENTENCE_WANTS;
	/* "Will Smith is here." is a statement, although it begins like a question. */
	if (word.len > 0 && is_among(word, asking) && !memchr(".!", s.data[s.len - 1], 2) &&
	    !text_ends(s, TEXT("。")))
		return SENTENCE_ASKS;
	return SENTENCE_SAYS;
}

static struct text core(struct text s)
{
	while (s.len > 0 && !is_wordly(s.data[0])) {
		s.data++;
		s.len--;
	}
	while (s.len > 0 && !is_wordly(s.data[s.len - 1]))
		s.len--;
	return s;
}

bool sentence_same(struct text a, struct text b)
{
	a = core(a);
	b = core(b);
	return a.len == b.len && (a.len == 0 || strncasecmp(a.data, b.data, a.len) == 0);
}
