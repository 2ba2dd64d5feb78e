/*
 * A table of word vectors: which words are used alike (job, work; nurse, doctor). It is data, read
 * once and never changed, and search works without it.
 *
 * The file, with all numbers little-endian:
 *
 *	 0   8  "koinewrd"
 *	 8   4  version: 1
 *	12   4  numbers of a vector
 *	16   4  words
 *	20   4  bytes of all names together
 *	24   8  checksum of everything that follows (word_table_checksum)
 *	32      a scale for each word (a float)
 *	        where its name ends (a number of 4 bytes, from the start of the names)
 *	        its vector: unit length, each number a byte from -127 to 127, to be multiplied
 *	        with the scale
 *	        the names: small English letters, in ascending order
 *	        zeros, up to a multiple of 8
 *
 * Names are words as people write them. What an index calls them (their stems) is worked out here,
 * so a table outlives a change of the stemmer. word_table.py writes it.
 *
 * Several threads may use a table at once.
 */
#pragma once

#include "base/error.h"
#include "search/words.h"

enum {
	WORD_TABLE_BYTES_MAX = 64 << 20,
	WORD_TABLE_WORDS_MAX = 1 << 18,
	WORD_TABLE_DIM_MAX = 512,
	WORD_TABLE_NEAR_MAX = 48, /* similar words that are kept for a word */
};

struct word_table;

/*
 * Reads the bytes of a file, which must stay as long as the table. REFUSE_PARSE when they are not
 * what is described above, and error says how; -ENOMEM.
 */
int word_table_read(struct text file, struct word_table **ret_table, struct error *error);
void word_table_free(struct word_table *t); /* accepts NULL */

/* How many words it has. */
size_t word_table_size(const struct word_table *t);

uint64_t word_table_checksum(const char *data, size_t len);

/* Whether it has the folded word. */
bool word_table_has(const struct word_table *t, struct text folded);

struct near_word {
	float cosine;
	uint8_t len;
	char term[WORD_BYTES_MAX]; /* as indexes call it */
};

/*
 * The words that are most like a folded one, or where the table lacks it, like another form of what
 * indexes call `term` ("": none), the most similar first, without other forms of the
 * word itself and without words that say nothing. The first question about a word compares it with
 * all others; the answer is kept with the table. 0 when the word is unknown, or when out of memory.
 */
size_t word_table_near(struct word_table *t, struct words *w, struct text folded, struct text term,
		       struct near_word ret_near[WORD_TABLE_NEAR_MAX]);

/* The file with the table of word vectors, in memory; see search/vector/word_table.h. */

struct word_file;
struct word_table;

/*
 * Reads it. REFUSE_NOT_FOUND when there is none; REFUSE_PARSE when it is something else,
 * REFUSE_UNAVAILABLE when it cannot be read: error names the file. On success the caller owns it.
 */
int word_file_open(const char *path, struct word_file **ret_file, struct error *error);
void word_file_close(struct word_file *f); /* accepts NULL */

/* All accept NULL: there is none. */
struct word_table *word_file_table(const struct word_file *f);
struct text word_file_path(const struct word_file *f); /* {NULL, 0}: there is none */
size_t word_file_words(const struct word_file *f);     /* how many it has */
