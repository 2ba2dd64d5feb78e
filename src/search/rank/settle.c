/* The final order of the best hits; see query.h. */
#include "search/query.h"

#include <pthread.h>
#include <string.h>

#include "search/index_inner.h"
#include "search/mix.h"
#include "search/words.h"

enum {
	NEWER_MAX = 8,     /* first hits whose order may change by their time */
	QUESTION_MAX = 64, /* words; a longer question has no closer match */
	SAID_MAX = 256,    /* words of a memory that are read */
	PHRASE_MIN = 3,    /* words of a question from which their order counts */
};

/* How a memory has the words of a question, the closest last. */
enum match {
	MATCH_SOME,
	MATCH_IN_ORDER,
	MATCH_PHRASE,
	MATCH_VERBATIM,
};

/* The words of a text, small ones included. */
struct said_words {
	uint64_t words[SAID_MAX];
	size_t n;
	bool cut;
	bool negated;
};

struct close {
	bool is_read;
	struct said_words said;
	enum match match;
	unsigned n_words; /* different words of the question */
};

struct settling {
	struct words *reader;
	struct text asked;
	struct said_words question;
	const struct search_said *said;
	struct close close[NEWER_MAX]; /* of the first of `said` */
	float newer;
	bool asks;
	bool by_time;
};

/* Folded words that negate. Two negations in one text cancel each other. */
static const char *const negations[] = {
	"aint",    "aldri",   "aldrig", "arent",    "aucun",   "aucune",  "bez",       "cannot",
	"cant",    "couldnt", "degil",  "didnt",    "doesnt",  "dont",    "geen",      "hadnt",
	"hasnt",   "havent",  "ikke",   "ingen",    "inte",    "intet",   "isnt",      "jamais",
	"jamas",   "kein",    "keine",  "keinem",   "keinen",  "keiner",  "keines",    "mai",
	"mustnt",  "nada",    "nadie",  "nao",      "ne",      "neednt",  "neither",   "nem",
	"nessuna", "nessuno", "net",    "never",    "nicht",   "nichts",  "niciodata", "nie",
	"niemals", "niemand", "niet",   "nikogda",  "ningun",  "ninguna", "no",        "nobody",
	"non",     "none",    "nooit",  "nor",      "not",     "nothing", "nowhere",   "nu",
	"nunca",   "ohne",    "pas",    "personne", "rien",    "sans",    "senza",     "shouldnt",
	"sin",     "soha",    "wasnt",  "werent",   "without", "wont",    "wouldnt",   "yok",
	"zonder",  "не",      "нет",    "ни",       "никогда", "без",     "δεν",       "όχι",
	"δε",      "لا",      "ليس",    "لم",       "नहीं"};

/* Their numbers, in open addressing; 0 is free. */
enum { SLOTS = 256 };
static uint64_t learnt[SLOTS];

static uint64_t settle_number_of(struct text folded)
{
	return mix_bytes(folded.data, folded.len, 0);
}

static void learn_negations(void)
{
	for (size_t i = 0; i < sizeof(negations) / sizeof(negations[0]); i++) {
		size_t at = settle_number_of(text_of(negations[i]));

		while (learnt[at % SLOTS])
			at++;
		learnt[at % SLOTS] = settle_number_of(text_of(negations[i]));
	}
}

/* "Not" in scripts whose words are pairs of characters. */
static bool begins_with_sign(struct text folded)
{
	static const char *const signs[] = {"不", "没", "沒", "未", "無", "非"};

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		if (folded.len >= 3 && memcmp(folded.data, signs[i], 3) == 0)
			return true;
	}
	return false;
}

static bool negates(struct text folded, uint64_t number)
{
	for (size_t at = number; learnt[at % SLOTS]; at++) {
		if (learnt[at % SLOTS] == number)
			return true;
	}
	return folded.len > 0 && (unsigned char)folded.data[0] >= 0x80 && begins_with_sign(folded);
}

/* As they stand: nobody asks for their stems. */
static void start_words(struct words *reader, struct text text)
{
	words_start(reader, text, WORDS_NO_STEMS | WORDS_NO_IRREGULAR, WORDS_OF_NAME);
}

static void read_words(struct words *reader, struct text text, struct said_words *ret)
{
	struct word word;

	ret->n = 0;
	ret->cut = false;
	ret->negated = false;
	start_words(reader, text);
	while (!ret->cut && words_next(reader, &word)) {
		uint64_t number = settle_number_of(word.folded);

		ret->negated ^= negates(word.folded, number);
		ret->words[ret->n++] = number;
		ret->cut = ret->n == SAID_MAX;
	}
}

static bool has_word(const struct said_words *said, uint64_t word)
{
	for (size_t i = 0; i < said->n; i++) {
		if (said->words[i] == word)
			return true;
	}
	return false;
}

static bool has_phrase(const struct said_words *said, const struct said_words *phrase)
{
	for (size_t i = 0; i + phrase->n <= said->n; i++) {
		if (memcmp(said->words + i, phrase->words, phrase->n * sizeof(uint64_t)) == 0)
			return true;
	}
	return false;
}

static bool has_in_order(const struct said_words *said, const struct said_words *words)
{
	size_t n = 0;

	for (size_t i = 0; i < said->n && n < words->n; i++)
		n += said->words[i] == words->words[n];
	return n == words->n;
}

static enum match match_of(const struct said_words *question, const struct said_words *said)
{
	bool phrase = question->n > 0 && has_phrase(said, question);

	if (phrase && said->n == question->n)
		return MATCH_VERBATIM;
	if (question->n < PHRASE_MIN)
		return MATCH_SOME;
	if (phrase)
		return MATCH_PHRASE;
	return has_in_order(said, question) ? MATCH_IN_ORDER : MATCH_SOME;
}

/* Compares a memory's words with the question's. They are read when they are first asked for, which
 * most are not. */
static const struct close *close_of(struct settling *g, size_t i)
{
	const struct said_words *question = &g->question;
	struct close *c = &g->close[i];

	if (c->is_read)
		return c;
	c->is_read = true;
	c->match = MATCH_SOME;
	c->n_words = 0;
	read_words(g->reader, g->said[i].text, &c->said);
	if (g->asks || question->n > QUESTION_MAX)
		return c;
	c->match = match_of(question, &c->said);
	for (size_t k = 0; k < question->n; k++)
		c->n_words += has_word(&c->said, question->words[k]);
	return c;
}

/* Whether they share two words in three of the shorter one. */
static bool are_alike(const struct said_words *a, const struct said_words *b)
{
	const struct said_words *shorter = a->n < b->n ? a : b;
	const struct said_words *longer = a->n < b->n ? b : a;
	size_t n = 0;

	for (size_t i = 0; i < shorter->n; i++)
		n += has_word(longer, shorter->words[i]);
	return 3 * n >= 2 * shorter->n && longer->n <= 2 * shorter->n;
}

/* Whether b, which is behind a, belongs before it. A question in a chat also finds texts that
 * negate something else; only those that are alike can be each other's negation. */
static bool is_before(struct settling *g, size_t at, size_t behind)
{
	const struct close *a = close_of(g, at), *b = close_of(g, behind);

	if (a->said.negated != b->said.negated && (!g->asks || are_alike(&a->said, &b->said)))
		return b->said.negated == g->question.negated;
	if (a->match != b->match)
		return b->match > a->match;
	if (a->n_words != b->n_words)
		return b->n_words > a->n_words;
	return g->by_time && g->said[behind].time_ms > g->said[at].time_ms;
}

/* The hit in place `from` moves up to place `to`; scores stay in place. */
static void move_up(struct search_hit *hits, size_t *from, size_t at, size_t to)
{
	for (; at > to; at--) {
		struct search_hit was = hits[at];
		size_t was_from = from[at];

		hits[at] = hits[at - 1];
		hits[at].score = was.score;
		hits[at].similarity = was.similarity;
		was.score = hits[at - 1].score;
		was.similarity = hits[at - 1].similarity;
		hits[at - 1] = was;
		from[at] = from[at - 1];
		from[at - 1] = was_from;
	}
}

static bool say_the_same(const struct settling *g, const struct search_hit *a,
			 const struct search_hit *b)
{
	return a->says != 0 && a->says == b->says && b->score >= a->score * g->newer;
}

static void settle_same(struct settling *g, struct search_hit *hits, size_t n, size_t *from)
{
	for (size_t i = 0; i < NEWER_MAX; i++)
		g->close[i].is_read = false;
	for (size_t i = 1; i < n && i < NEWER_MAX; i++) {
		for (size_t k = i; k > 0 && say_the_same(g, &hits[k - 1], &hits[k]); k--) {
			if (!is_before(g, from[k - 1], from[k]))
				break;
			move_up(hits, from, k, k - 1);
		}
	}
}

/* Most texts differ in their first word. */
static bool is_verbatim(struct settling *g, struct text text)
{
	const struct said_words *question = &g->question;
	struct word word;
	size_t n = 0;

	start_words(g->reader, text);
	while (words_next(g->reader, &word)) {
		if (n == question->n || settle_number_of(word.folded) != question->words[n])
			return false;
		n++;
	}
	return n > 0 && n == question->n;
}

/* The same characters, so that "C" is not "C++". */
static bool is_exact(struct settling *g, struct text text)
{
	return text_equal(text_trim(text, TEXT_SPACE), g->asked);
}

/* Of several the first stays the first. Returns how many are in front now. */
static size_t put_first(struct settling *g, struct search_hit *hits, size_t n, size_t *from,
			size_t n_first, bool (*fits)(struct settling *g, struct text text))
{
	for (size_t i = n_first; i < n; i++) {
		if (fits(g, g->said[from[i]].text))
			move_up(hits, from, i, n_first++);
	}
	return n_first;
}

static void settle_verbatim(struct settling *g, struct search_hit *hits, size_t n, size_t *from)
{
	size_t n_first = put_first(g, hits, n, from, 0, is_exact);

	if (!g->question.cut)
		(void)put_first(g, hits, n, from, n_first, is_verbatim);
}

void search_settle(struct search_scratch *s, const struct search_query *q, struct search_hit *hits,
		   const struct search_said *said, size_t n, size_t *ret_from)
{
	const struct search_tuning *t = q->tuning ? q->tuning : &search_default_tuning;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct settling g;

	pthread_once(&once, learn_negations);
	g.reader = s->words;
	g.newer = t->newer;
	g.by_time = !q->newer_first;
	g.said = said;
	g.asked = text_trim(q->text, TEXT_SPACE);
	g.asks = words_ask(s->words, q->text);
	read_words(s->words, q->text, &g.question);
	for (size_t i = 0; i < n; i++)
		ret_from[i] = i;
	settle_same(&g, hits, n, ret_from);
	settle_verbatim(&g, hits, n, ret_from);
}
