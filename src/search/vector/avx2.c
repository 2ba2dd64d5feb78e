/* Compiled with -mavx2, and called only where the processor has it. */
#include <immintrin.h>

#include "search/vector.h"

/*
 * The processor multiplies unsigned bytes with signed ones, so the signs of a are moved to b.
 * Two products and their sum stay below 2^15, since no byte is -128.
 */
static __m256i products(__m256i a, __m256i b)
{
	__m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));

	return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

static int32_t sum_of(__m256i v)
{
	__m128i four = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
	__m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, _MM_SHUFFLE(1, 0, 3, 2)));
	__m128i one = _mm_add_epi32(two, _mm_shuffle_epi32(two, _MM_SHUFFLE(2, 3, 0, 1)));

	return _mm_cvtsi128_si32(one);
}

static int32_t dot(const int8_t *a, const int8_t *b, size_t dim)
{
	__m256i first = _mm256_setzero_si256();
	__m256i second = _mm256_setzero_si256();
	int32_t sum;
	size_t i = 0;

	for (; i + 64 <= dim; i += 64) {
		first = _mm256_add_epi32(first,
					 products(_mm256_loadu_si256((const __m256i *)(a + i)),
						  _mm256_loadu_si256((const __m256i *)(b + i))));
		second = _mm256_add_epi32(
			second, products(_mm256_loadu_si256((const __m256i *)(a + i + 32)),
					 _mm256_loadu_si256((const __m256i *)(b + i + 32))));
	}
	for (; i + 32 <= dim; i += 32)
		first = _mm256_add_epi32(first,
					 products(_mm256_loadu_si256((const __m256i *)(a + i)),
						  _mm256_loadu_si256((const __m256i *)(b + i))));
	sum = sum_of(_mm256_add_epi32(first, second));
	for (; i < dim; i++)
		sum += a[i] * b[i];
	return sum;
}

static bool works(void)
{
	return __builtin_cpu_supports("avx2");
}

const struct vector_kernel vector_kernel_avx2 = {"avx2", dot, works};
