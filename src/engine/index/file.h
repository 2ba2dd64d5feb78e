/*
 * An index in a file, written and read in steps of a few milliseconds, on any thread but the
 * loop's.
 *
 * Its name is a token, drawn when it is written; the store says whose it is (store/index/kept.h).
 * It appears under its name once it is complete and on disk. Everything in it has a sum, and what
 * was written by another version of the program, or is not what its head says, is refused. The
 * folder is made with the first file, and must be ours, as each file must be; links are not
 * followed.
 *
 * A file is read, not mapped: what was checked is then nobody else's to change or to cut.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "search/index.h"
#include "store/index/kept.h"

/* "TOKEN.index", and ".part" after it until the file is complete. */
enum { INDEX_FILE_NAME = STORE_TOKEN_LEN + 16 };

/* ---- writing ---- */

struct index_writing;

/* The index must not change until it is written. -errno. */
int index_writing_new(const char *folder, const struct search_index *index, uint64_t fingerprint,
		      const struct store_position *position, struct index_writing **ret_writing);

/* Removes what is not complete. Accepts NULL. */
void index_writing_free(struct index_writing *w);

/* *ret_done: it is on disk, under its name. */
int index_writing_step(struct index_writing *w, bool *ret_done);

const char *index_writing_token(const struct index_writing *w);
uint64_t index_writing_bytes(const struct index_writing *w);

/* ---- reading ---- */

struct index_reading;

/* -ENOENT where there is no such file, -EBADMSG where it cannot be used, REFUSE_LIMIT where it
 * does not fit into opts->max_bytes. */
int index_reading_new(const char *folder, const struct store_kept *kept, uint64_t fingerprint,
		      const struct search_index_opts *opts, struct index_reading **ret_reading);
void index_reading_free(struct index_reading *r); /* accepts NULL */
int index_reading_step(struct index_reading *r, bool *ret_done);

/* Frees the reading, which must be done. */
struct search_index *index_reading_take(struct index_reading *r);

/* ---- removing ---- */

bool index_file_exists(const char *folder, const char *token);
void index_file_remove(const char *folder, const char *token);

/* Removes every file of ours that `wanted` does not want: tokens in any order. Other names stay. */
void index_files_sweep(const char *folder, const char (*wanted)[STORE_TOKEN_LEN + 1], size_t n);
