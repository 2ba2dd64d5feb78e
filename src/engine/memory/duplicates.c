#include "engine/memory/duplicates.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "engine/memory/inner.h"
#include "search/fold.h"
#include "search/mix.h"
#include "store/store.h"

enum {
	TEXT_MAX = 2048, /* bytes; longer ones are no spellings of a fact */
	WORD_MAX = 64,   /* bytes of a word that count */
	OVERLAP_WORDS = 128,
	SAYS_SOMETHING = 2,
	SAYS_SOMETHING_IN_CHAT = 3, /* turns of a conversation are alike more easily */
};

static const int64_t day_ms = 24 * 3600 * 1000LL;

/* What a word is to a fact. */
enum sense {
	SAYS,      /* something */
	SMALL,     /* it matters, but says nothing alone */
	EMPHASIS,  /* it does not matter */
	SOME_TIME, /* it depends on the day */
};

static const struct {
	enum sense sense;
	const char *words;
} lists[] = {
	{EMPHASIS, "a an the is are am be s re m really very so quite also too much lot indeed "
		   "actually definitely absolutely totally truly certainly well oh ah yeah hey hi "
		   "hello please just"},
	{SMALL, "i you he she it we they me him her us them my your his its our their this that "
		"these those yes no not never nothing nobody did do does done doing have has had "
		"having was were been being will would can could should may might must shall to of "
		"in on at for with by from as and or but if then than there here what when where "
		"who how why which ok okay thanks thank sure right good great nice fine cool wow "
		"maybe up out off about into over again all any some one get got go went know "
		"think mean means see say said dont didnt doesnt isnt wasnt cant wont"},
	{SOME_TIME, "today yesterday tomorrow tonight now currently ago last next recently soon "
		    "later earlier morning afternoon evening night week weekend month year day "
		    "monday tuesday wednesday thursday friday saturday sunday"},
};

/* The words by their hash; at most half of the places are taken. */
static struct {
	uint64_t hash;
	enum sense sense;
} known[512];

static uint64_t hash_word(const char *word, size_t len)
{
	return mix_bytes(word, len, 1) | 1;
}

static unsigned place_of(uint64_t hash)
{
	unsigned at = (unsigned)(hash >> 32) % 512;

	while (known[at].hash != 0 && known[at].hash != hash)
		at = (at + 1) % 512;
	return at;
}

static void learn_words(void)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct text rest = text_of(lists[i].words);
		struct text word;

		while (text_next(&rest, ' ', &word)) {
			unsigned at = place_of(hash_word(word.data, word.len));

			known[at].hash = hash_word(word.data, word.len);
			known[at].sense = lists[i].sense;
		}
	}
}

static void learn_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, learn_words);
}

static enum sense sense_of(uint64_t hash)
{
	unsigned at = place_of(hash);

	return known[at].hash != 0 ? known[at].sense : SAYS;
}

/* ---- the words of a text ---- */

/* What two spellings have in common. */
struct gist {
	uint64_t hash;
	unsigned n_saying;
	bool of_a_day;
};

struct reader {
	const char *at, *end;
	char word[WORD_MAX + 4];
	size_t len;
};

static void add_char(struct reader *r, const uint32_t *folded, size_t n)
{
	for (size_t i = 0; i < n && r->len < WORD_MAX; i++) {
		uint32_t c = folded[i];

		if (c < 0x80) {
			r->word[r->len++] = (char)c;
			continue;
		}
		for (int shift = 0; shift < 24 && r->len < WORD_MAX; shift += 8)
			r->word[r->len++] = (char)(c >> shift & 0xff ?: 1);
	}
}

/* "favourite" and "favorite", "organise" and "organize", "traveller" and "traveler". */
static void settle_spelling(struct reader *r)
{
	size_t n = 0;

	if (r->len < 6)
		return;
	for (size_t i = 0; i < r->len; i++) {
		bool has_next = i + 1 < r->len;

		if (r->word[i] == 'o' && i + 2 < r->len && memcmp(r->word + i, "our", 3) == 0) {
			r->word[n++] = 'o';
			i++;
		} else if (i > 2 && has_next && r->word[i - 1] == 'i' && r->word[i] == 's' &&
			   (r->word[i + 1] == 'e' || r->word[i + 1] == 'i')) {
			r->word[n++] = 'z';
		} else if (!(r->word[i] == 'l' && has_next && r->word[i + 1] == 'l')) {
			r->word[n++] = r->word[i];
		}
	}
	r->len = n;
}

/* "don't" is one word; "Ann's" is two, of which the second does not matter. */
static bool is_negation(const struct reader *r, size_t used)
{
	const char *next = r->at + used;

	return next < r->end && (*next == 't' || *next == 'T');
}

/* Letters and digits of ASCII, which are most of what is read, fold to themselves in small. */
static void add_plain(struct reader *r)
{
	while (r->at < r->end && r->len < WORD_MAX) {
		char c = *r->at;

		if (c >= 'A' && c <= 'Z')
			c = (char)(c + ('a' - 'A'));
		else if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
			return;
		r->word[r->len++] = c;
		r->at++;
	}
}

/* The next word, folded; characters of a script without spaces are words each. */
static bool next_word(struct reader *r)
{
	r->len = 0;
	while (add_plain(r), r->at < r->end) {
		uint32_t folded[FOLD_MAX];
		enum char_kind kind;
		size_t n;
		size_t used = fold_next(r->at, r->end, &kind, folded, &n);
		bool alone = kind == CHAR_PIECE || kind == CHAR_SIGN;
		bool gap = kind == CHAR_GAP || (kind == CHAR_APOSTROPHE && !is_negation(r, used));

		if (gap || (alone && r->len > 0)) {
			if (r->len > 0)
				break;
			r->at += used;
			continue;
		}
		r->at += used;
		add_char(r, folded, n);
		if (alone)
			break;
	}
	return r->len > 0;
}

static void add_word(struct gist *g, struct reader *r)
{
	enum sense sense = sense_of(hash_word(r->word, r->len));

	if (sense == EMPHASIS)
		return;
	settle_spelling(r);
	g->n_saying += sense == SAYS;
	g->of_a_day = g->of_a_day || sense == SOME_TIME;
	g->hash = mix_u64(g->hash ^ hash_word(r->word, r->len));
}

/* Signs that belong to a fact, unlike punctuation: "C" is not "C++", and 5 € are not 5 £. */
static bool is_sign(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} beyond_ascii[] = {{0xa2, 0xa5},     {0xb1, 0xb3},     {0xb9, 0xb9},
			    {0xbc, 0xbe},     {0xd7, 0xd7},     {0xf7, 0xf7},
			    {0x2030, 0x2031}, {0x2070, 0x20cf}, {0x2190, 0x22ff}};

	if (c < 0x80)
		return c != 0 && strchr("+#<>=%$&|*~^@\\/_[]{}", (int)c);
	for (size_t i = 0; i < sizeof(beyond_ascii) / sizeof(beyond_ascii[0]); i++) {
		if (c >= beyond_ascii[i].first && c <= beyond_ascii[i].last)
			return true;
	}
	return false;
}

/* -18 is not 18, and !done is not done. */
static bool is_negative(uint32_t c, bool begins, unsigned char next)
{
	return begins && ((c == '-' && isdigit(next)) || (c == '!' && isalnum(next)));
}

static uint64_t hash_signs(struct text t)
{
	enum { MINUS = 0x2212 };
	const char *end = t.data + t.len;
	uint64_t hash = 1;
	bool begins = true;

	for (const char *at = t.data; at < end;) {
		size_t n = (unsigned char)*at < 0x80 ? 1 : utf8_sequence(at, end) ?: 1;
		uint32_t c = n == 1 ? (unsigned char)*at : fold_lower(at, n);

		at += n;
		c = c == MINUS ? '-' : c;
		if (is_sign(c) || is_negative(c, begins, at < end ? (unsigned char)*at : 0))
			hash = mix_u64(hash ^ c);
		begins = c != 0 && c < 0x80 && strchr(" \t\n(", (int)c);
	}
	return hash;
}

static struct gist gist_of_text(struct text t)
{
	struct reader r = {.at = t.data, .end = t.data + t.len};
	struct gist g = {.hash = hash_signs(t)};

	while (next_word(&r))
		add_word(&g, &r);
	return g;
}

/* The words that say something, each once. */
struct word_set {
	uint64_t hashes[OVERLAP_WORDS];
	unsigned n;
};

static bool has_word(const struct word_set *s, uint64_t hash)
{
	for (unsigned i = 0; i < s->n; i++) {
		if (s->hashes[i] == hash)
			return true;
	}
	return false;
}

static void read_words(struct text t, struct word_set *ret)
{
	struct reader r = {.at = t.data, .end = t.data + t.len};

	ret->n = 0;
	while (ret->n < OVERLAP_WORDS && next_word(&r)) {
		enum sense sense = sense_of(hash_word(r.word, r.len));
		uint64_t hash;

		if (sense == EMPHASIS || sense == SMALL)
			continue;
		settle_spelling(&r);
		hash = hash_word(r.word, r.len);
		if (!has_word(ret, hash))
			ret->hashes[ret->n++] = hash;
	}
}

double duplicates_overlap(struct text a, struct text b)
{
	struct word_set of_a;
	struct word_set of_b;
	unsigned common = 0;

	learn_once();
	read_words(a, &of_a);
	read_words(b, &of_b);
	for (unsigned i = 0; i < of_a.n; i++)
		common += has_word(&of_b, of_a.hashes[i]);
	return of_a.n + of_b.n > 0 ? 2.0 * common / (of_a.n + of_b.n) : 0;
}

/* ---- memories ---- */

/* In any order. */
static uint64_t hash_subjects(struct text subjects)
{
	uint64_t sum = 0;
	struct text subject;

	while (member_next_line(&subjects, &subject))
		sum += gist_of_text(subject).hash;
	return sum;
}

static uint64_t hash_owner(const struct memory *m)
{
	enum memory_scope scope = memory_scope_of(m);
	struct text name = {0};

	if (scope == MEMORY_PERSONAL)
		name = m->owner;
	else if (scope == MEMORY_GROUP)
		name = m->chat;
	else if (scope == MEMORY_PROJECT)
		name = m->project;
	return mix_bytes(name.data ? name.data : "", name.len, scope);
}

static bool asks(struct text t)
{
	t = text_trim(t, TEXT_SPACE);
	return t.len > 0 && t.data[t.len - 1] == '?';
}

/* Equal for spellings of one fact; 0: it is none. */
static uint64_t key_of(const struct memory *m)
{
	struct gist g;
	uint64_t key;

	if (m->content.len > TEXT_MAX || asks(m->content))
		return 0;
	g = gist_of_text(m->content);
	if (g.n_saying < (m->chat.data ? SAYS_SOMETHING_IN_CHAT : SAYS_SOMETHING))
		return 0;
	key = mix_u64(g.hash + hash_subjects(m->subjects)) ^ hash_owner(m);
	if (g.of_a_day)
		key ^= mix_u64((uint64_t)(m->created_ms / day_ms));
	return key | 1;
}

static bool is_newer(const struct memory *a, const struct memory *b)
{
	return a->created_ms != b->created_ms ? a->created_ms > b->created_ms : a->seq > b->seq;
}

/* ---- an answer ---- */

struct answer {
	struct memory *rows;
	uint64_t *keys;
	unsigned *heads; /* the row that stands for it */
	unsigned n;
};

/* How many stand behind others. */
static unsigned find_heads(struct answer *all)
{
	unsigned n = 0;

	for (unsigned i = 0; i < all->n; i++) {
		all->keys[i] = key_of(&all->rows[i]);
		all->heads[i] = i;
		for (unsigned j = 0; all->keys[i] != 0 && j < i; j++) {
			if (all->keys[j] != all->keys[i])
				continue;
			all->heads[i] = all->heads[j];
			n++;
			break;
		}
	}
	return n;
}

/* The newest of those that a head stands for; `ids` has room for the others. */
static void gather(const struct answer *all, unsigned head, struct text *ids, struct memory *ret)
{
	unsigned newest = head, n = 0;

	for (unsigned i = head; i < all->n; i++) {
		if (all->heads[i] == head && is_newer(&all->rows[i], &all->rows[newest]))
			newest = i;
	}
	for (unsigned i = head; i < all->n; i++) {
		if (all->heads[i] != head)
			continue;
		for (unsigned k = 0; k < all->rows[i].duplicates.n; k++)
			ids[n++] = all->rows[i].duplicates.items[k];
		if (i != newest)
			ids[n++] = all->rows[i].id;
	}
	*ret = all->rows[newest];
	ret->similarity = all->rows[head].similarity;
	ret->duplicates = (struct texts) {.items = ids, .n = n};
}

static int collapse(struct arena *a, struct answer *all, unsigned n_behind, unsigned *ret_n)
{
	struct memory *out = arena_alloc(a, all->n * sizeof(*out));
	struct text *ids;
	unsigned n = 0, n_ids = n_behind;

	for (unsigned i = 0; i < all->n; i++)
		n_ids += all->rows[i].duplicates.n;
	ids = arena_alloc(a, n_ids * sizeof(*ids));
	if (!out || !ids)
		return -ENOMEM;
	for (unsigned i = 0; i < all->n; i++) {
		if (all->heads[i] != i)
			continue;
		gather(all, i, ids, &out[n]);
		ids += out[n++].duplicates.n;
	}
	memcpy(all->rows, out, n * sizeof(*out));
	*ret_n = n;
	return 0;
}

bool duplicates_same(struct text a, struct text b)
{
	learn_once();
	return text_equal(a, b) || (a.len <= TEXT_MAX && b.len <= TEXT_MAX &&
				    gist_of_text(a).hash == gist_of_text(b).hash);
}

int duplicates_collapse(struct arena *a, struct memory *rows, unsigned *n)
{
	struct answer all = {
		.rows = rows,
		.keys = arena_alloc(a, *n * sizeof(*all.keys)),
		.heads = arena_alloc(a, *n * sizeof(*all.heads)),
		.n = *n,
	};
	unsigned n_behind;

	if (!all.keys || !all.heads)
		return -ENOMEM;
	learn_once();
	n_behind = find_heads(&all);
	return n_behind > 0 ? collapse(a, &all, n_behind, n) : 0;
}

/* ---- the same once more, within seconds ---- */

void memory_note_content(struct memories *m, struct text content)
{
	if (m->shared)
		lately_add(&m->contents, (uint64_t)store_memory_hash(content), clock_steady_ms());
}

/* Nobody has stored this content lately. Asking a server about each takes longer than all the rest. */
static bool is_new_content(struct memories *m, const struct memory_new *in, struct text content)
{
	return m->shared && !in->once &&
	       !lately_may_have(&m->contents, (uint64_t)store_memory_hash(content),
				clock_steady_ms());
}

int memory_find_first(struct memories *m, const struct memory_new *in, const struct memory *new,
		      struct arena *a, struct memory *ret_first, bool *ret_found)
{
	struct memory like = *new;

	*ret_found = false;
	if (is_new_content(m, in, new->content))
		return 0;
	like.created_ms = in->once ? 0 : in->created_ms;
	return store_memory_find_same(store_writer(m->store), &like,
				      in->once ? 0 : new->stored_ms - MEMORY_SAME_WITHIN_MS, a,
				      ret_first, ret_found);
}
