/* The file with the table of word vectors, in memory; see search/vector/word_table.h. */
#pragma once

#include "base/why.h"

struct word_file;
struct word_table;

/*
 * Reads it. REFUSE_NOT_FOUND when there is none; REFUSE_PARSE when it is something else,
 * REFUSE_UNAVAILABLE when it cannot be read: why names the file. On success the caller owns it.
 */
int word_file_open(const char *path, struct word_file **ret_file, struct why *why);
void word_file_close(struct word_file *f); /* accepts NULL */

/* All accept NULL: there is none. */
struct word_table *word_file_table(const struct word_file *f);
struct text word_file_path(const struct word_file *f); /* {NULL, 0}: there is none */
size_t word_file_words(const struct word_file *f);     /* how many it has */
