/*
 * Vectors of memories, and the nearest of them to a question's: a plain scan over all, in
 * bytes, which is exact for those bytes and fast enough for one user's memories. Callers that
 * want more precision compare the best few again in float.
 *
 * Vectors are unit vectors in float. In a block each number is one byte, -127 to 127, times a
 * scale for the whole vector. Every kernel computes the same integers.
 *
 * Several threads may read a block at once; changing it needs exclusive access.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VECTOR_DIM_MAX = 8192 };

/* Normalises it to length one. False if that is impossible: all zero, or not finite. */
bool vector_normalise(float *v, size_t dim);

float vector_dot(const float *a, const float *b, size_t dim);

/* Writes dim bytes and returns their scale. v must be finite. */
float vector_quantise(const float *v, size_t dim, int8_t *ret_bytes);

/* The dot product; both are dim bytes from -127 to 127. */
int32_t vector_dot_bytes(const int8_t *a, const int8_t *b, size_t dim);

struct vector_block;

/* NULL when out of memory, or for a dim of 0 or above the maximum. max_bytes 0: no limit. */
struct vector_block *vector_block_new(size_t dim, size_t max_bytes);
void vector_block_free(struct vector_block *b);

/* Adds a vector, or replaces the one with that key. REFUSE_LIMIT when max_bytes would be
 * exceeded, -ENOMEM when out of memory; the block is then unchanged. */
int vector_block_put(struct vector_block *b, uint64_t key, const int8_t *bytes, float scale);

/* False when there is no such key. */
bool vector_block_remove(struct vector_block *b, uint64_t key);

size_t vector_block_dim(const struct vector_block *b);
size_t vector_block_size(const struct vector_block *b);
size_t vector_block_bytes(const struct vector_block *b);

struct vector_hit {
	uint64_t key;
	float score; /* approximately the cosine */
};

/* NULL, or whether a memory may be among the best; called only for those that would be. */
typedef bool (*vector_accept_fn)(void *arg, uint64_t key);

/* Of the scores of all vectors, whether accepted or not. */
struct vector_sums {
	size_t n;
	double sum;
	double squares;
};

/*
 * Continues a list of the best, which may contain some of other blocks: hits[0 .. *n] of at
 * most max, unsorted until vector_sort. Among equals the smaller key stays. `sums` (may be NULL) is
 * continued, too.
 */
void vector_block_scan(const struct vector_block *b, const int8_t *query, float scale,
		       vector_accept_fn accept, void *arg, struct vector_hit *hits, size_t max,
		       size_t *n, struct vector_sums *sums);

/* The same score for one of them; false when there is no such key. */
bool vector_block_cosine(const struct vector_block *b, uint64_t key, const int8_t *query,
			 float scale, float *ret_cosine);

/* Best first. */
void vector_sort(struct vector_hit *hits, size_t n);

/* The kernels that this machine can run, best first, NULL-terminated; for tests. */
struct vector_kernel {
	const char *name;
	int32_t (*dot)(const int8_t *a, const int8_t *b, size_t dim);
	bool (*works)(void);
};

extern const struct vector_kernel *const vector_kernels[];

/* One file each, compiled for its processor; Meson chooses which are built. */

extern const struct vector_kernel vector_kernel_plain;
extern const struct vector_kernel vector_kernel_avx2;
extern const struct vector_kernel vector_kernel_neon;
