#include "search/vector.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/*
 * Rows are contiguous, each aligned to 32 bytes; a removed row is overwritten with the last
 * one. Keys are found with an open-addressing table, at most three quarters full.
 */
struct vector_block {
	size_t dim;
	size_t stride;
	size_t max_bytes;
	size_t n;
	size_t cap;
	uint64_t *keys;
	float *scales;
	int8_t *rows;
	uint32_t *slots; /* row + 1; 0: free */
	size_t n_slots;  /* a power of two */
};

enum { ALIGN = 32, FIRST_ROWS = 64 };

/* ---- one vector ---- */

bool vector_normalise(float *v, size_t dim)
{
	double sum = 0;
	double length;

	for (size_t i = 0; i < dim; i++)
		sum += (double)v[i] * v[i];
	length = sqrt(sum);
	if (!isfinite(length) || length < 1e-20)
		return false;
	for (size_t i = 0; i < dim; i++)
		v[i] = (float)(v[i] / length);
	return true;
}

float vector_dot(const float *a, const float *b, size_t dim)
{
	double sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += (double)a[i] * b[i];
	return (float)sum;
}

float vector_quantise(const float *v, size_t dim, int8_t *ret_bytes)
{
	float most = 0;

	for (size_t i = 0; i < dim; i++) {
		if (fabsf(v[i]) > most)
			most = fabsf(v[i]);
	}
	for (size_t i = 0; i < dim; i++)
		ret_bytes[i] = most > 0 ? (int8_t)lrintf(v[i] / most * 127) : 0;
	return most / 127;
}

static int32_t (*best_dot)(const int8_t *a, const int8_t *b, size_t dim);

static void choose_kernel(void)
{
	size_t i = 0;

	while (!vector_kernels[i]->works())
		i++;
	best_dot = vector_kernels[i]->dot;
}

static int32_t (*kernel(void))(const int8_t *a, const int8_t *b, size_t dim)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, choose_kernel);
	return best_dot;
}

int32_t vector_dot_bytes(const int8_t *a, const int8_t *b, size_t dim)
{
	return kernel()(a, b, dim);
}

/* ---- a block ---- */

struct vector_block *vector_block_new(size_t dim, size_t max_bytes)
{
	struct vector_block *b;

	if (dim == 0 || dim > VECTOR_DIM_MAX)
		return NULL;
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->dim = dim;
	b->stride = (dim + ALIGN - 1) / ALIGN * ALIGN;
	b->max_bytes = max_bytes;
	return b;
}

void vector_block_free(struct vector_block *b)
{
	if (!b)
		return;
	free(b->keys);
	free(b->scales);
	free(b->rows);
	free(b->slots);
	free(b);
}

size_t vector_block_dim(const struct vector_block *b)
{
	return b->dim;
}

size_t vector_block_size(const struct vector_block *b)
{
	return b->n;
}

static size_t bytes_for(const struct vector_block *b, size_t cap, size_t n_slots)
{
	return sizeof(*b) + cap * (b->stride + sizeof(b->keys[0]) + sizeof(b->scales[0])) +
	       n_slots * sizeof(b->slots[0]);
}

size_t vector_block_bytes(const struct vector_block *b)
{
	return bytes_for(b, b->cap, b->n_slots);
}

static size_t home_of(const struct vector_block *b, uint64_t key)
{
	return (size_t)(key * 0x9e3779b97f4a7c15U >> 20) & (b->n_slots - 1);
}

/* The key's slot, or the free one where it would go. The table is never full. */
static size_t find_slot(const struct vector_block *b, uint64_t key)
{
	size_t at = home_of(b, key);

	while (b->slots[at] && b->keys[b->slots[at] - 1] != key)
		at = (at + 1) & (b->n_slots - 1);
	return at;
}

static int grow_slots(struct vector_block *b, size_t n_slots)
{
	uint32_t *slots = calloc(n_slots, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(b->slots);
	b->slots = slots;
	b->n_slots = n_slots;
	for (size_t i = 0; i < b->n; i++)
		b->slots[find_slot(b, b->keys[i])] = (uint32_t)i + 1;
	return 0;
}

static int grow_array(void *array, size_t item, size_t cap)
{
	void **block = array;
	void *p = realloc(*block, cap * item);

	if (!p)
		return -ENOMEM;
	*block = p;
	return 0;
}

/* realloc does not guarantee an alignment of 32. */
static int grow_rows(struct vector_block *b, size_t cap)
{
	int8_t *rows = aligned_alloc(ALIGN, cap * b->stride);

	if (!rows)
		return -ENOMEM;
	if (b->n > 0)
		memcpy(rows, b->rows, b->n * b->stride);
	free(b->rows);
	b->rows = rows;
	return 0;
}

static int vector_make_room(struct vector_block *b)
{
	size_t cap = b->cap ? b->cap + b->cap / 2 : FIRST_ROWS;
	size_t n_slots = b->n_slots ? b->n_slots : 2 * FIRST_ROWS;
	int r;

	if (b->n < b->cap)
		return 0;
	while (n_slots * 3 < cap * 4)
		n_slots *= 2;
	if (cap >= UINT32_MAX || (b->max_bytes && bytes_for(b, cap, n_slots) > b->max_bytes))
		return REFUSE_LIMIT;
	r = n_slots > b->n_slots ? grow_slots(b, n_slots) : 0;
	if (r == 0)
		r = grow_array(&b->keys, sizeof(b->keys[0]), cap);
	if (r == 0)
		r = grow_array(&b->scales, sizeof(b->scales[0]), cap);
	if (r == 0)
		r = grow_rows(b, cap);
	if (r == 0)
		b->cap = cap;
	return r;
}

int vector_block_put(struct vector_block *b, uint64_t key, const int8_t *bytes, float scale)
{
	size_t row;
	size_t slot;
	int r;

	if (b->n_slots > 0 && b->slots[slot = find_slot(b, key)]) {
		row = b->slots[slot] - 1;
	} else {
		r = vector_make_room(b);
		if (r != 0)
			return r;
		row = b->n;
		slot = find_slot(b, key);
		b->keys[row] = key;
		b->slots[slot] = (uint32_t)row + 1;
		b->n++;
	}
	memcpy(b->rows + row * b->stride, bytes, b->dim);
	memset(b->rows + row * b->stride + b->dim, 0, b->stride - b->dim);
	b->scales[row] = scale;
	return 0;
}

/* Closes the gap: entries that were pushed past it move back, as far as their home allows. */
static void free_slot(struct vector_block *b, size_t gap)
{
	size_t mask = b->n_slots - 1;

	b->slots[gap] = 0;
	for (size_t at = (gap + 1) & mask; b->slots[at]; at = (at + 1) & mask) {
		size_t home = home_of(b, b->keys[b->slots[at] - 1]);

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		b->slots[gap] = b->slots[at];
		b->slots[at] = 0;
		gap = at;
	}
}

bool vector_block_remove(struct vector_block *b, uint64_t key)
{
	size_t slot = b->n_slots > 0 ? find_slot(b, key) : 0;
	size_t row;
	size_t last;

	if (b->n_slots == 0 || !b->slots[slot])
		return false;
	row = b->slots[slot] - 1;
	free_slot(b, slot);
	last = --b->n;
	if (row == last)
		return true;
	b->slots[find_slot(b, b->keys[last])] = (uint32_t)row + 1;
	b->keys[row] = b->keys[last];
	b->scales[row] = b->scales[last];
	memcpy(b->rows + row * b->stride, b->rows + last * b->stride, b->stride);
	return true;
}

/* ---- the nearest ---- */

static bool is_worse(const struct vector_hit *a, const struct vector_hit *b)
{
	return a->score < b->score || (a->score == b->score && a->key > b->key);
}

/* The worst is at the top of the heap. */
static void sift_down(struct vector_hit *hits, size_t n, size_t at)
{
	for (;;) {
		size_t child = 2 * at + 1;
		struct vector_hit moved = hits[at];

		if (child + 1 < n && is_worse(&hits[child + 1], &hits[child]))
			child++;
		if (child >= n || !is_worse(&hits[child], &hits[at]))
			return;
		hits[at] = hits[child];
		hits[child] = moved;
		at = child;
	}
}

static void sift_up(struct vector_hit *hits, size_t at)
{
	while (at > 0 && is_worse(&hits[at], &hits[(at - 1) / 2])) {
		struct vector_hit moved = hits[at];

		hits[at] = hits[(at - 1) / 2];
		hits[(at - 1) / 2] = moved;
		at = (at - 1) / 2;
	}
}

static void vector_keep(struct vector_hit *hits, size_t max, size_t *n,
			const struct vector_hit *hit)
{
	if (*n < max) {
		hits[*n] = *hit;
		sift_up(hits, (*n)++);
	} else {
		hits[0] = *hit;
		sift_down(hits, *n, 0);
	}
}

void vector_block_scan(const struct vector_block *b, const int8_t *query, float scale,
		       vector_accept_fn accept, void *arg, struct vector_hit *hits, size_t max,
		       size_t *n, struct vector_sums *sums)
{
	int32_t (*dot)(const int8_t *, const int8_t *, size_t) = kernel();
	double all = 0;
	double squares = 0;

	if (max == 0)
		return;
	for (size_t i = 0; i < b->n; i++) {
		int32_t sum = dot(b->rows + i * b->stride, query, b->dim);
		struct vector_hit hit = {.key = b->keys[i],
					 .score = (float)sum * b->scales[i] * scale};

		all += hit.score;
		squares += (double)hit.score * hit.score;
		if (*n == max && !is_worse(&hits[0], &hit))
			continue;
		if (!accept || accept(arg, hit.key))
			vector_keep(hits, max, n, &hit);
	}
	if (!sums)
		return;
	sums->n += b->n;
	sums->sum += all;
	sums->squares += squares;
}

bool vector_block_cosine(const struct vector_block *b, uint64_t key, const int8_t *query,
			 float scale, float *ret_cosine)
{
	size_t slot = b->n_slots > 0 ? find_slot(b, key) : 0;
	size_t row;

	if (b->n_slots == 0 || !b->slots[slot])
		return false;
	row = b->slots[slot] - 1;
	*ret_cosine =
		(float)kernel()(b->rows + row * b->stride, query, b->dim) * b->scales[row] * scale;
	return true;
}

static int by_score(const void *a, const void *b)
{
	return is_worse(a, b) ? 1 : is_worse(b, a) ? -1 : 0;
}

void vector_sort(struct vector_hit *hits, size_t n)
{
	if (n > 0)
		qsort(hits, n, sizeof(*hits), by_score);
}

static int32_t plain_dot(const int8_t *a, const int8_t *b, size_t dim)
{
	int32_t sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += a[i] * b[i];
	return sum;
}

static bool plain_works(void)
{
	return true;
}

const struct vector_kernel vector_kernel_plain = {"plain", plain_dot, plain_works};
