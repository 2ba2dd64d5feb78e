/*
 * Vectors of memories, and the nearest of them to a question's: a plain scan over
 * all, in bytes, which is exact in what it does and fast enough for a user's own.
 * Whoever wants more digits compares the best few again in float.
 *
 * Vectors are unit vectors in float. In a block each number is one byte, -127 to
 * 127, times a scale of its vector. Every kernel computes the same integers.
 *
 * A block may be read by several threads at once; changing it needs it alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VECTOR_DIM_MAX = 8192 };

/* Makes it one long. False when that cannot be: all zero, or not finite. */
bool vector_normalise(float *v, size_t dim);

float vector_dot(const float *a, const float *b, size_t dim);

/* Writes dim bytes and returns their scale. v is finite. */
float vector_quantise(const float *v, size_t dim, int8_t *ret_bytes);

/* The sum of products; both are dim bytes from -127 to 127. */
int32_t vector_dot_bytes(const int8_t *a, const int8_t *b, size_t dim);

struct vector_block;

/* NULL without memory, or for a dim of 0 or above the maximum. max_bytes 0: no bound. */
struct vector_block *vector_block_new(size_t dim, size_t max_bytes);
void vector_block_free(struct vector_block *b);

/* Adds one, or replaces the one of that key. REFUSE_LIMIT when max_bytes would be passed,
 * -ENOMEM without memory; then the block is as it was. */
int vector_block_put(struct vector_block *b, uint64_t key, const int8_t *bytes, float scale);

/* False when there is no such key. */
bool vector_block_remove(struct vector_block *b, uint64_t key);

size_t vector_block_dim(const struct vector_block *b);
size_t vector_block_size(const struct vector_block *b);
size_t vector_block_bytes(const struct vector_block *b);

struct vector_hit {
	uint64_t key;
	float score; /* about the cosine */
};

/* NULL, or whether a memory may be among the best; asked only of those that would be. */
typedef bool (*vector_accept_fn)(void *arg, uint64_t key);

/*
 * Goes on with a list of the best, which may hold some of other blocks: hits[0 .. *n] of at
 * most max, in no order until vector_sort. Of equals the smaller key stays.
 */
void vector_block_scan(const struct vector_block *b, const int8_t *query, float scale,
		       vector_accept_fn accept, void *arg, struct vector_hit *hits, size_t max,
		       size_t *n);

/* Best first. */
void vector_sort(struct vector_hit *hits, size_t n);

/* The kernels that this machine can run, best first, NULL-ended; for tests. */
struct vector_kernel {
	const char *name;
	int32_t (*dot)(const int8_t *a, const int8_t *b, size_t dim);
	bool (*works)(void);
};

extern const struct vector_kernel *const vector_kernels[];
