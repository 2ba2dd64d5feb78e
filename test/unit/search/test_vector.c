/* Vectors in bytes: every kernel alike, and the nearest as a plain float scan finds them. */
#include "check.h"

#include <errno.h>
#include <math.h>

#include "base/error.h"
#include "search/vector.h"

enum { DIMS = 9 };

static const size_t dims[DIMS] = {1, 3, 31, 32, 33, 64, 100, 384, 1536};

/* xorshift: the same on every run. */
static uint64_t dice_state = 88172645463325252U;

static uint64_t dice(void)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return dice_state;
}

static float random_number(void)
{
	return (float)((double)(dice() % 2000001) / 1000000 - 1);
}

static void random_vector(float *v, size_t dim)
{
	do {
		for (size_t i = 0; i < dim; i++)
			v[i] = random_number();
	} while (!vector_normalise(v, dim));
}

static void random_bytes(int8_t *bytes, size_t dim)
{
	for (size_t i = 0; i < dim; i++)
		bytes[i] = (int8_t)((int)(dice() % 255) - 127);
}

TEST(all_kernels_give_the_same_number)
{
	int8_t a[1600];
	int8_t b[1600];

	for (unsigned round = 0; round < 2000; round++) {
		size_t dim = 1 + dice() % 1500;
		size_t shift = dice() % 64; /* no kernel may count on a boundary */
		int64_t want = 0;

		random_bytes(a, sizeof(a));
		random_bytes(b, sizeof(b));
		for (size_t i = 0; i < dim; i++)
			want += a[shift + i] * b[shift + i];
		for (size_t k = 0; vector_kernels[k]; k++) {
			if (vector_kernels[k]->works())
				assert_int_equal(vector_kernels[k]->dot(a + shift, b + shift, dim),
						 want);
		}
		assert_int_equal(vector_dot_bytes(a + shift, b + shift, dim), want);
	}
}

TEST(the_largest_numbers_do_not_overflow)
{
	static int8_t a[VECTOR_DIM_MAX];
	static int8_t b[VECTOR_DIM_MAX];
	const int32_t most = 127 * 127 * VECTOR_DIM_MAX;

	for (int sign = -1; sign <= 1; sign += 2) {
		memset(a, 127, sizeof(a));
		memset(b, sign * 127, sizeof(b));
		for (size_t k = 0; vector_kernels[k]; k++) {
			if (vector_kernels[k]->works()) {
				assert_int_equal(vector_kernels[k]->dot(a, b, sizeof(a)),
						 sign * most);
				assert_int_equal(vector_kernels[k]->dot(b, a, sizeof(a)),
						 sign * most);
			}
		}
	}
}

TEST(the_plain_kernel_is_always_there)
{
	size_t n = 0;

	while (vector_kernels[n])
		n++;
	assert_string_equal(vector_kernels[n - 1]->name, "plain");
	assert_true(vector_kernels[n - 1]->works());
}

TEST(bytes_are_near_the_numbers)
{
	float v[1536];
	int8_t bytes[1536];

	for (size_t d = 0; d < DIMS; d++) {
		float scale;

		random_vector(v, dims[d]);
		scale = vector_quantise(v, dims[d], bytes);
		for (size_t i = 0; i < dims[d]; i++) {
			assert_true(fabsf(bytes[i] * scale - v[i]) <= scale * 0.51f);
			assert_true(bytes[i] != -128);
		}
	}
}

TEST(what_has_no_direction_cannot_be_normalised)
{
	float zero[4] = {0};
	float strange[2] = {1, NAN};
	float endless[2] = {INFINITY, 1};
	float tiny[2] = {1e-19f, 0};
	float fine[2] = {3, 4};

	assert_false(vector_normalise(zero, 4));
	assert_false(vector_normalise(strange, 2));
	assert_false(vector_normalise(endless, 2));
	assert_true(vector_normalise(tiny, 2));
	assert_true(vector_normalise(fine, 2));
	assert_true(fabsf(fine[0] - 0.6f) < 1e-6f);
}

/* A block and the vectors it was filled with. */
struct filled {
	struct vector_block *block;
	float *vectors;
	size_t n;
	size_t dim;
};

static void put(struct filled *f, uint64_t key, const float *v)
{
	int8_t bytes[1536];
	float scale = vector_quantise(v, f->dim, bytes);

	assert_int_equal(vector_block_put(f->block, key, bytes, scale), 0);
}

static struct filled fill(size_t n, size_t dim)
{
	struct filled f = {.block = vector_block_new(dim, 0), .n = n, .dim = dim};

	f.vectors = calloc(n * dim, sizeof(float));
	for (size_t i = 0; i < n; i++) {
		random_vector(f.vectors + i * dim, dim);
		put(&f, i + 1, f.vectors + i * dim);
	}
	return f;
}

static void drop(struct filled *f)
{
	vector_block_free(f->block);
	free(f->vectors);
}

static size_t nearest_of_all(const struct filled *f, const float *q)
{
	size_t best = 0;

	for (size_t i = 1; i < f->n; i++) {
		if (vector_dot(f->vectors + i * f->dim, q, f->dim) >
		    vector_dot(f->vectors + best * f->dim, q, f->dim))
			best = i;
	}
	return best;
}

static size_t scan(const struct filled *f, const float *q, struct vector_hit *hits, size_t max)
{
	int8_t bytes[1536];
	float scale = vector_quantise(q, f->dim, bytes);
	size_t n = 0;

	vector_block_scan(f->block, bytes, scale, NULL, NULL, hits, max, &n, NULL);
	vector_sort(hits, n);
	return n;
}

TEST(the_true_nearest_is_among_the_best_forty)
{
	static const size_t sizes[] = {1, 39, 40, 41, 2000};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		for (size_t d = 2; d < 8; d++) {
			struct filled f = fill(sizes[s], dims[d]);
			struct vector_hit hits[40];

			for (unsigned round = 0; round < 10; round++) {
				float q[1536];
				bool found = false;
				size_t best;
				size_t n;

				random_vector(q, f.dim);
				best = nearest_of_all(&f, q);
				n = scan(&f, q, hits, 40);
				assert_int_equal(n, f.n < 40 ? f.n : 40);
				for (size_t i = 0; i < n; i++) {
					const float *v = f.vectors + (hits[i].key - 1) * f.dim;

					found |= hits[i].key == best + 1;
					assert_true(fabsf(hits[i].score - vector_dot(v, q, f.dim)) <
						    0.02f);
					assert_true(i == 0 || hits[i - 1].score >= hits[i].score);
				}
				assert_true(found);
			}
			drop(&f);
		}
	}
}

static bool accept_even(void *arg, uint64_t key)
{
	unsigned *n = arg;

	(*n)++;
	return key % 2 == 0;
}

TEST(filters_apply_before_the_limit)
{
	struct filled f = fill(1000, 64);
	struct vector_hit hits[40];
	int8_t bytes[64];
	unsigned asked = 0;
	float q[64];
	size_t n = 0;
	float scale;

	random_vector(q, 64);
	scale = vector_quantise(q, 64, bytes);
	vector_block_scan(f.block, bytes, scale, accept_even, &asked, hits, 40, &n, NULL);
	assert_int_equal(n, 40);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(hits[i].key % 2, 0);
	assert_in_range(asked, 40, 999);
	drop(&f);
}

TEST(two_blocks_give_one_list)
{
	struct filled f = fill(300, 64);
	struct filled g = {.block = vector_block_new(64, 0), .dim = 64};
	struct vector_hit together[40];
	struct vector_hit apart[40];
	int8_t bytes[64];
	float q[64];
	size_t n = 0;
	float scale;

	random_vector(q, 64);
	scale = vector_quantise(q, 64, bytes);
	scan(&f, q, together, 40);
	for (uint64_t key = 1; key <= 300; key += 2) {
		put(&g, key, f.vectors + (key - 1) * 64);
		assert_true(vector_block_remove(f.block, key));
	}
	vector_block_scan(f.block, bytes, scale, NULL, NULL, apart, 40, &n, NULL);
	vector_block_scan(g.block, bytes, scale, NULL, NULL, apart, 40, &n, NULL);
	vector_sort(apart, n);
	assert_int_equal(n, 40);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(apart[i].key, together[i].key);
		assert_true(apart[i].score == together[i].score);
	}
	drop(&g);
	drop(&f);
}

TEST(of_equals_the_smaller_key_comes_first)
{
	struct filled f = {.block = vector_block_new(3, 0), .dim = 3};
	const float v[3] = {1, 0, 0};
	struct vector_hit hits[2];

	put(&f, 9, v);
	put(&f, 2, v);
	put(&f, 5, v);
	assert_int_equal(scan(&f, v, hits, 2), 2);
	assert_int_equal(hits[0].key, 2);
	assert_int_equal(hits[1].key, 5);
	drop(&f);
}

/* Random puts, replacements and removals beside a plain table. */
TEST(keys_come_and_go)
{
	enum { KEYS = 500 };
	struct filled f = {.block = vector_block_new(8, 0), .dim = 8};
	static float known[KEYS][8];
	static bool there[KEYS];
	size_t n = 0;

	for (unsigned round = 0; round < 20000; round++) {
		size_t k = dice() % KEYS;
		uint64_t key = (k + 1) * 0x100000001U; /* many meet in the table */

		if (dice() % 3 == 0) {
			assert_int_equal(vector_block_remove(f.block, key), there[k]);
			n -= there[k];
			there[k] = false;
		} else {
			random_vector(known[k], 8);
			put(&f, key, known[k]);
			n += !there[k];
			there[k] = true;
		}
		assert_int_equal(vector_block_size(f.block), n);
	}
	for (size_t k = 0; k < KEYS; k++) {
		struct vector_hit hit;

		if (!there[k])
			continue;
		assert_int_equal(scan(&f, known[k], &hit, 1), 1);
		assert_int_equal(hit.key, (k + 1) * 0x100000001U);
	}
	drop(&f);
}

TEST(a_block_keeps_within_its_bytes)
{
	struct filled f = {.block = vector_block_new(384, 200000), .dim = 384};
	int8_t bytes[384] = {1};
	uint64_t n = 0;
	int r;

	while ((r = vector_block_put(f.block, n + 1, bytes, 1)) == 0)
		n++;
	assert_int_equal(r, REFUSE_LIMIT);
	assert_in_range(n, 200, 500);
	assert_int_equal(vector_block_size(f.block), n);
	assert_true(vector_block_bytes(f.block) <= 200000);
	/* What is there may still change. */
	assert_int_equal(vector_block_put(f.block, 1, bytes, 1), 0);
	assert_true(vector_block_remove(f.block, 2));
	assert_int_equal(vector_block_put(f.block, 999, bytes, 1), 0);
	drop(&f);
}

TEST(strange_dimensions_make_no_block)
{
	assert_null(vector_block_new(0, 0));
	assert_null(vector_block_new(VECTOR_DIM_MAX + 1, 0));
}
