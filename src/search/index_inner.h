/*
 * The parts of an index, for the files of this folder.
 *
 * Memories are numbered from 0 as they arrive. There is one array for each property of a
 * memory, so that a scan touches only what it reads. A removed memory keeps its number until a
 * quarter of them are gone; then the index is rebuilt from itself.
 */
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "search/file/image.h"
#include "search/index.h"
#include "search/words.h"

enum { NO_DOC = UINT32_MAX };

/* doc_marks: the category in the low bits, these above. */
enum doc_mark {
	MARK_CATEGORY = 0x0f,
	MARK_DEAD = 0x10,
	MARK_ASKS = 0x20, /* it is a question */
	MARK_TIME = 0x40, /* it speaks of time */
	MARK_OPEN = 0x80, /* see struct search_doc */
};

/* The neighbours of a memory in its chat, by time. */
struct links {
	uint32_t prev;
	uint32_t next;
};

/*
 * A word and where it occurs. The first occurrence is in here; from the second
 * on they are in chunks (see postings.h).
 */
struct term {
	uint32_t name; /* offset in names */
	uint32_t n_docs;
	uint32_t last_doc;
	uint32_t head; /* first chunk, in units of the pool; 0: none */
	uint32_t tail;
	uint8_t name_len;
	uint8_t max_count; /* in one memory */
	uint8_t min_len;   /* coded length of the shortest memory with it */
	uint8_t first_count;
};

struct term_slot {
	uint32_t hash;
	uint32_t term; /* + 1; 0: free */
};

/* A piece of a chat's sequence, so that a position in it is found without a full walk. */
struct posting_run {
	uint32_t first;
	uint32_t n;
};

struct index_chat {
	uint64_t id;
	struct posting_run *runs; /* ordered by time */
	uint32_t n_runs;
	uint32_t cap_runs;
	uint32_t last;
};

struct search_index {
	size_t max_bytes;
	size_t bytes;
	unsigned off;
	unsigned n_compacted; /* how often memories have got other numbers */
	uint64_t seed;        /* of the words' hashes */

	uint32_t n_docs; /* including dead ones */
	uint32_t n_dead;
	uint32_t compact_at; /* dead ones */
	uint32_t cap_docs;
	uint64_t total_len; /* words of the living */
	uint64_t *keys;
	int64_t *times;
	int64_t *expires;
	struct links *links;
	uint32_t *doc_chats; /* index in chats, + 1; 0: none */
	uint8_t *doc_lens;   /* coded, see len_code */
	uint8_t *doc_marks;
	uint8_t *doc_importance;
	uint8_t *doc_traits; /* enum trait */

	uint32_t *key_slots; /* doc + 1 */
	uint32_t n_key_slots;

	struct term *terms;
	uint32_t n_terms;
	uint32_t cap_terms;
	struct term_slot *term_slots;
	uint32_t n_term_slots;
	char *names;
	size_t names_len;
	size_t cap_names;

	uint64_t *pool; /* chunks of postings; unit 0 is not used */
	size_t pool_len;
	size_t cap_pool;

	struct index_chat *chats;
	uint32_t n_chats;
	uint32_t cap_chats;
	uint32_t *chat_slots; /* chat + 1 */
	uint32_t n_chat_slots;
};

/* Subjects are words in a namespace of their own: this prefix, then the folded word. */
enum { SUBJECT_MARK = 1, TERM_BYTES_MAX = WORD_BYTES_MAX + 1 };

/* So are languages other than English: each memory in one of them has its word, which is this
 * and the number of the language. */
enum { LANGUAGE_MARK = 2, LANGUAGE_BYTES = 2 };

static inline void language_name(enum language l, char ret_name[LANGUAGE_BYTES])
{
	ret_name[0] = LANGUAGE_MARK;
	ret_name[1] = (char)('A' + l);
}

/*
 * Memory that the index accounts for. Resizes the block to `size` bytes (0 frees it); on
 * failure it is unchanged.
 */
int index_resize(struct search_index *ix, void *block, size_t old_size, size_t size);

/* Makes room for n items in a growing array and updates *cap. */
int index_grow(struct search_index *ix, void *array, size_t item, size_t n, size_t *cap);

/*
 * The arrays with one item for each memory; a new one is a row in index.c. Their members of struct
 * search_index are pointers.
 */
struct doc_column {
	size_t place; /* of the pointer */
	size_t item;
	bool derived; /* from the others: it is not kept in files */
};

enum { N_DOC_COLUMNS = 9 };

extern const struct doc_column doc_columns[N_DOC_COLUMNS];

static inline void **doc_column(const struct search_index *ix, size_t i)
{
	return (void **)((char *)ix + doc_columns[i].place);
}

/* Room for n memories at least. */
int docs_reserve(struct search_index *ix, size_t n);

/* The memory of another index, alive, with everything but its words. */
int doc_copy(struct search_index *to, const struct search_index *from, uint32_t doc,
	     uint32_t *ret_number);

/* How many must be dead before it is worth a compaction. */
uint32_t index_next_compaction(const struct search_index *ix);

/* Lengths are kept in a byte: exact up to 63, then within 5 percent. */
uint8_t len_code(size_t n_words);
float len_of_code(uint8_t code);

/* The memory's number, or NO_DOC. */
uint32_t key_find(const struct search_index *ix, uint64_t key);

/* The language of more than half of the memories; English when there is none. */
enum language index_language(const struct search_index *ix);

/* The word's number, or NO_DOC. */
uint32_t term_find(const struct search_index *ix, const char *name, size_t len);

/* The same, but adds a missing word. */
int term_get(struct search_index *ix, const char *name, size_t len, uint32_t *ret_term);

/* Puts the memory in its place within its chat. Its time and chat must be set. */
int chain_insert(struct search_index *ix, uint32_t doc);
void chain_remove(struct search_index *ix, uint32_t doc);

/* The chat's number; adds a missing chat. */
int chat_get(struct search_index *ix, uint64_t id, uint32_t *ret_chat);

/*
 * What a memory looks like: whether it names a place or a person, counts, quotes, gives a reason,
 * or speaks of its teller. A question that asks for one of these prefers memories that have it.
 *
 * They are guesses from English words, capitals and signs, good enough to decide between
 * memories that are otherwise about equal.
 */

enum trait {
	TRAIT_PLACE = 1,
	TRAIT_NAME = 2,   /* a capital inside a sentence, or somebody: "my uncle" */
	TRAIT_NUMBER = 4, /* digits or a number in letters */
	TRAIT_QUOTES = 8,
	TRAIT_REASON = 16,
	TRAIT_SELF = 32, /* I, my */
};

/* A set of enum trait. */
uint8_t traits_of(struct text text);

/* ---- what a thread needs to add and to search, kept between calls ---- */

/* What a search knows of a memory; all 0 between searches. */
struct tally {
	float score;    /* by its own words */
	uint32_t words; /* which of the question's it has: one bit each, for the heaviest */
};

struct search_scratch {
	struct words *words;
	uint32_t *ids; /* the words of a text being added */
	size_t n_ids;
	size_t cap_ids;
	struct tally *tallies; /* one for each memory searched */
	uint32_t *touched;
	size_t cap_tallies;
};

/* Makes room for n tallies, all 0. */
int scratch_tallies(struct search_scratch *s, size_t n);

/* ---- the blocks of an image, for file/ ---- */

_Static_assert(SEARCH_BLOCKS == N_DOC_COLUMNS + 5, "all columns but one, and six others");

/* The blocks' lengths; -EBADMSG when no index has such numbers. */
int image_lengths(const struct search_head *head, size_t lens[SEARCH_BLOCKS]);

void image_blocks(const struct search_index *ix, const size_t lens[SEARCH_BLOCKS], uint64_t *chats,
		  struct search_block blocks[SEARCH_BLOCKS]);
