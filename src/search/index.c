/* The words of one scope's memories; see index.h and index_inner.h. */
#include "search/index.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "search/index_inner.h"
#include "search/mix.h"
#include "search/postings.h"

enum { LENS_EXACT = 64, LENS_PER_OCTAVE = 16, COMPACT_MIN = 64 };

uint64_t search_hash(struct text name)
{
	uint64_t hash = name.len > 0 ? mix_bytes(name.data, name.len, 0) : 0;

	return hash || name.len == 0 ? hash : 1;
}

int index_resize(struct search_index *ix, void *block, size_t old_size, size_t size)
{
	void **p = block;
	void *new;

	if (size == 0) {
		free(*p);
		*p = NULL;
		ix->bytes -= old_size;
		return 0;
	}
	if (ix->max_bytes && ix->bytes - old_size + size > ix->max_bytes)
		return REFUSE_LIMIT;
	new = realloc(*p, size);
	if (!new)
		return -ENOMEM;
	*p = new;
	ix->bytes = ix->bytes - old_size + size;
	return 0;
}

/* Small arrays grow by half; large ones by an eighth, since moving them needs no copy. */
static size_t grown(size_t n, size_t cap, size_t item)
{
	size_t more = cap * item > 1 << 20 ? cap / 8 : cap / 2;

	return cap + more > n ? cap + more : n < 4 ? 4 : n;
}

int index_grow(struct search_index *ix, void *array, size_t item, size_t n, size_t *cap)
{
	size_t to;
	int r;

	if (n <= *cap)
		return 0;
	to = grown(n, *cap, item);
	r = index_resize(ix, array, *cap * item, to * item);
	if (r == 0)
		*cap = to;
	return r;
}

uint8_t len_code(size_t n_words)
{
	double code;

	if (n_words < LENS_EXACT)
		return (uint8_t)n_words;
	code = LENS_EXACT + LENS_PER_OCTAVE * log2((double)n_words / LENS_EXACT);
	return code > UINT8_MAX ? UINT8_MAX : (uint8_t)code;
}

float len_of_code(uint8_t code)
{
	if (code < LENS_EXACT)
		return code;
	return LENS_EXACT * exp2f((float)(code - LENS_EXACT) / LENS_PER_OCTAVE);
}

struct search_index *search_index_new(const struct search_index_opts *opts)
{
	struct search_index *ix = calloc(1, sizeof(*ix));

	if (!ix)
		return NULL;
	ix->bytes = sizeof(*ix);
	ix->compact_at = COMPACT_MIN;
	if (getentropy(&ix->seed, sizeof(ix->seed)) != 0)
		ix->seed = (uint64_t)(uintptr_t)ix;
	if (opts) {
		ix->max_bytes = opts->max_bytes;
		ix->off = opts->off;
	}
	return ix;
}

/* Frees everything inside. */
static void index_done(struct search_index *ix)
{
	for (uint32_t i = 0; i < ix->n_chats; i++)
		free(ix->chats[i].runs);
	free(ix->chats);
	free(ix->chat_slots);
	free(ix->keys);
	free(ix->times);
	free(ix->expires);
	free(ix->links);
	free(ix->doc_chats);
	free(ix->doc_lens);
	free(ix->doc_marks);
	free(ix->doc_importance);
	free(ix->doc_traits);
	free(ix->key_slots);
	free(ix->terms);
	free(ix->term_slots);
	free(ix->names);
	free(ix->pool);
}

void search_index_free(struct search_index *ix)
{
	if (!ix)
		return;
	index_done(ix);
	free(ix);
}

size_t search_index_size(const struct search_index *ix)
{
	return ix->n_docs - ix->n_dead;
}

size_t search_index_words(const struct search_index *ix)
{
	return ix->n_terms;
}

size_t search_index_bytes(const struct search_index *ix)
{
	return ix->bytes;
}

/* The key's slot, or the free one where it would go. */
static uint32_t key_slot(const struct search_index *ix, uint64_t key)
{
	uint32_t mask = ix->n_key_slots - 1;
	uint32_t at = (uint32_t)mix_u64(key) & mask;

	while (ix->key_slots[at] && ix->keys[ix->key_slots[at] - 1] != key)
		at = (at + 1) & mask;
	return at;
}

uint32_t key_find(const struct search_index *ix, uint64_t key)
{
	uint32_t slot = ix->n_key_slots ? ix->key_slots[key_slot(ix, key)] : 0;

	return slot ? slot - 1 : NO_DOC;
}

bool search_index_has(const struct search_index *ix, uint64_t key)
{
	return key_find(ix, key) != NO_DOC;
}

static int key_slots_reserve(struct search_index *ix, size_t n_keys)
{
	uint32_t n_old = ix->n_key_slots;
	uint64_t n = n_old ? n_old : 8;
	uint32_t *old = ix->key_slots;
	uint32_t *slots = NULL;
	int r;

	while ((uint64_t)n_keys * 4 >= n * 3)
		n *= 2;
	if (n == n_old)
		return 0;
	r = index_resize(ix, &slots, 0, n * sizeof(*slots));
	if (r != 0)
		return r;
	memset(slots, 0, n * sizeof(*slots));
	ix->key_slots = slots;
	ix->n_key_slots = (uint32_t)n;
	for (uint32_t i = 0; i < n_old; i++) {
		if (old[i])
			slots[key_slot(ix, ix->keys[old[i] - 1])] = old[i];
	}
	index_resize(ix, &old, n_old * sizeof(*old), 0);
	return 0;
}

/* Closes the gap, so that no search for another key ends there. */
static void key_remove(struct search_index *ix, uint64_t key)
{
	uint32_t mask = ix->n_key_slots - 1;
	uint32_t hole = key_slot(ix, key);
	uint32_t at = hole;

	for (;;) {
		uint32_t home;

		at = (at + 1) & mask;
		if (!ix->key_slots[at])
			break;
		home = (uint32_t)mix_u64(ix->keys[ix->key_slots[at] - 1]) & mask;
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		ix->key_slots[hole] = ix->key_slots[at];
		hole = at;
	}
	ix->key_slots[hole] = 0;
}

#define COLUMN(member)                                                                             \
	offsetof(struct search_index, member), sizeof(*((struct search_index *)0)->member)

const struct doc_column doc_columns[N_DOC_COLUMNS] = {
	{COLUMN(keys)},       {COLUMN(times)},
	{COLUMN(expires)},    {COLUMN(links), .derived = true},
	{COLUMN(doc_chats)},  {COLUMN(doc_lens)},
	{COLUMN(doc_marks)},  {COLUMN(doc_importance)},
	{COLUMN(doc_traits)},
};

int docs_reserve(struct search_index *ix, size_t n)
{
	size_t i;
	int r = 0;

	if (n <= ix->cap_docs)
		return 0;
	for (i = 0; i < N_DOC_COLUMNS && r == 0; i++)
		r = index_resize(ix, doc_column(ix, i), ix->cap_docs * doc_columns[i].item,
				 n * doc_columns[i].item);
	if (r == 0) {
		ix->cap_docs = (uint32_t)n;
		return 0;
	}
	/* Arrays that have grown stay so, but only the size common to all is counted. */
	for (size_t k = 0; k + 1 < i; k++)
		ix->bytes -= (n - ix->cap_docs) * doc_columns[k].item;
	return r;
}

/* One more row, with nothing in it yet. */
static int docs_grow(struct search_index *ix)
{
	if (ix->n_docs == SEARCH_DOCS_MAX)
		return REFUSE_LIMIT;
	if (ix->n_docs < ix->cap_docs)
		return 0;
	return docs_reserve(ix, grown((size_t)ix->n_docs + 1, ix->cap_docs, 8));
}

static int row_new(struct search_index *ix, uint64_t chat, uint32_t *ret_chat)
{
	int r = docs_grow(ix) ?: key_slots_reserve(ix, (size_t)ix->n_docs - ix->n_dead);

	*ret_chat = 0;
	if (r != 0 || !chat)
		return r;
	r = chat_get(ix, chat, ret_chat);
	*ret_chat += 1;
	return r;
}

/* Adds a row for the memory, dead until all its words are in. */
static int doc_new(struct search_index *ix, const struct search_doc *doc, uint32_t *ret_number)
{
	float importance = doc->importance;
	uint32_t number = ix->n_docs;
	uint32_t chat;
	int r = row_new(ix, doc->chat, &chat);

	if (r != 0)
		return r;
	importance = importance > 0 ? importance < 1 ? importance : 1 : 0;
	ix->keys[number] = doc->key;
	ix->times[number] = doc->time_ms;
	ix->expires[number] = doc->expires_ms;
	ix->links[number] = (struct links) {NO_DOC, NO_DOC};
	ix->doc_chats[number] = chat;
	ix->doc_lens[number] = 0;
	ix->doc_marks[number] =
		(doc->category & MARK_CATEGORY) | MARK_DEAD | (doc->open ? MARK_OPEN : 0);
	ix->doc_importance[number] = (uint8_t)(importance * 255 + 0.5f);
	ix->doc_traits[number] = 0;
	ix->n_docs++;
	ix->n_dead++;
	*ret_number = number;
	return 0;
}

static int ids_push(struct search_scratch *s, uint32_t id)
{
	if (s->n_ids == s->cap_ids) {
		size_t cap = s->cap_ids ? s->cap_ids * 2 : 128;
		uint32_t *ids = realloc(s->ids, cap * sizeof(*ids));

		if (!ids)
			return -ENOMEM;
		s->ids = ids;
		s->cap_ids = cap;
	}
	s->ids[s->n_ids++] = id;
	return 0;
}

/* A question's words are looked up in each language that some memory is in. */
static int language_word(struct search_index *ix, struct search_scratch *s, enum language l)
{
	char name[LANGUAGE_BYTES];
	uint32_t id;

	if (l == LANGUAGE_ENGLISH)
		return 0;
	language_name(l, name);
	return term_get(ix, name, sizeof(name), &id) ?: ids_push(s, id);
}

enum language index_language(const struct search_index *ix)
{
	for (unsigned l = 1; l < LANGUAGES_LATIN; l++) {
		char name[LANGUAGE_BYTES];
		uint32_t id;

		language_name(l, name);
		id = term_find(ix, name, sizeof(name));
		if (id != NO_DOC && ix->terms[id].n_docs > ix->n_docs / 2)
			return l;
	}
	return LANGUAGE_ENGLISH;
}

/* Puts the numbers of the text's words into the scratch; also its length, and whether it has
 * time words. */
static int text_words(struct search_index *ix, struct search_scratch *s, struct text text,
		      size_t *ret_len, bool *ret_time)
{
	struct word word;
	size_t n = 0;

	words_start(s->words, text, ix->off, WORDS_OF_MEMORY);
	if (!words_knows_language(s->words))
		words_assume(s->words, index_language(ix));
	while (n < SEARCH_WORDS_MAX && words_next(s->words, &word)) {
		uint32_t id;
		int r = term_get(ix, word.term.data, word.term.len, &id) ?: ids_push(s, id);

		if (r != 0)
			return r;
		n++;
		*ret_len += !word.extra;
		*ret_time |= (word.flags & WORD_TIME) != 0;
	}
	return language_word(ix, s, words_language(s->words));
}

static int subject_words(struct search_index *ix, struct search_scratch *s,
			 const struct search_doc *doc)
{
	struct word word;

	for (size_t i = 0; i < doc->n_subjects && i < SEARCH_SUBJECTS_MAX; i++) {
		words_start(s->words, doc->subjects[i], ix->off, WORDS_OF_NAME);
		for (size_t n = 0; n < SEARCH_SUBJECTS_MAX && words_next(s->words, &word); n++) {
			char name[TERM_BYTES_MAX] = {SUBJECT_MARK};
			uint32_t id;
			int r;

			memcpy(name + 1, word.folded.data, word.folded.len);
			r = term_get(ix, name, word.folded.len + 1, &id) ?: ids_push(s, id);
			if (r != 0)
				return r;
		}
	}
	return 0;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a;
	uint32_t y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void ids_sort(uint32_t *ids, size_t n)
{
	if (n > 64) {
		qsort(ids, n, sizeof(*ids), by_number);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		uint32_t id = ids[i];
		size_t k = i;

		for (; k > 0 && ids[k - 1] > id; k--)
			ids[k] = ids[k - 1];
		ids[k] = id;
	}
}

static int put_words(struct search_index *ix, struct search_scratch *s, uint32_t doc)
{
	ids_sort(s->ids, s->n_ids);
	for (size_t i = 0; i < s->n_ids;) {
		size_t n = 1;
		int r;

		while (i + n < s->n_ids && s->ids[i + n] == s->ids[i])
			n++;
		r = postings_add(ix, s->ids[i], doc, n);
		if (r != 0)
			return r;
		i += n;
	}
	return 0;
}

/* From here on the memory can be found. */
static void doc_live(struct search_index *ix, uint32_t doc)
{
	ix->doc_marks[doc] &= (uint8_t)~MARK_DEAD;
	ix->n_dead--;
	ix->key_slots[key_slot(ix, ix->keys[doc])] = doc + 1;
	ix->total_len += (uint64_t)len_of_code(ix->doc_lens[doc]);
}

int doc_copy(struct search_index *to, const struct search_index *from, uint32_t doc,
	     uint32_t *ret_number)
{
	uint32_t number = to->n_docs;
	uint32_t chat = from->doc_chats[doc];
	int r = row_new(to, chat ? from->chats[chat - 1].id : 0, &chat);

	if (r != 0)
		return r;
	for (size_t i = 0; i < N_DOC_COLUMNS; i++) {
		size_t item = doc_columns[i].item;

		memcpy((char *)*doc_column(to, i) + number * item,
		       (const char *)*doc_column(from, i) + doc * item, item);
	}
	to->doc_chats[number] = chat;
	to->n_docs++;
	to->n_dead++;
	r = chain_insert(to, number);
	if (r != 0)
		return r;
	doc_live(to, number);
	*ret_number = number;
	return 0;
}

int search_index_add(struct search_index *ix, struct search_scratch *s,
		     const struct search_doc *doc)
{
	uint32_t number;
	size_t len = 0;
	bool time = false;
	int r;

	search_index_remove(ix, doc->key);
	r = doc_new(ix, doc, &number);
	if (r != 0)
		return r;
	s->n_ids = 0;
	r = text_words(ix, s, doc->text, &len, &time) ?: subject_words(ix, s, doc);
	ix->doc_lens[number] = len_code(len);
	if (r == 0)
		r = put_words(ix, s, number);
	if (r == 0)
		r = chain_insert(ix, number);
	if (r != 0)
		return r;
	if (time)
		ix->doc_marks[number] |= MARK_TIME;
	if (words_ask(s->words, doc->text))
		ix->doc_marks[number] |= MARK_ASKS;
	ix->doc_traits[number] = traits_of(doc->text);
	doc_live(ix, number);
	return 0;
}

uint32_t index_next_compaction(const struct search_index *ix)
{
	uint32_t quarter = ix->n_docs / 4;

	return quarter < COMPACT_MIN ? COMPACT_MIN : quarter;
}

/*
 * Rebuilds the index without its dead, which needs room for both meanwhile. When out of memory
 * it stays as it is, and is tried again when as many more have gone.
 */
static void compact(struct search_index *ix)
{
	struct search_copy *copy = search_copy_new();
	struct search_index *fresh;
	bool done;
	int r = copy ? search_copy_step(copy, ix, SIZE_MAX, &done) : -ENOMEM;

	if (r != 0) {
		search_copy_free(copy);
		ix->compact_at = ix->n_dead + index_next_compaction(ix);
		return;
	}
	fresh = search_copy_take(copy);
	fresh->max_bytes = ix->max_bytes;
	fresh->n_compacted = ix->n_compacted + 1;
	index_done(ix);
	*ix = *fresh;
	free(fresh);
}

bool search_index_remove(struct search_index *ix, uint64_t key)
{
	uint32_t doc = key_find(ix, key);

	if (doc == NO_DOC)
		return false;
	key_remove(ix, key);
	chain_remove(ix, doc);
	ix->doc_marks[doc] |= MARK_DEAD;
	ix->n_dead++;
	ix->total_len -= (uint64_t)len_of_code(ix->doc_lens[doc]);
	if (ix->n_dead >= ix->compact_at && ix->n_dead > ix->n_docs / 4)
		compact(ix);
	return true;
}
