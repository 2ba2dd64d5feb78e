/* Every 64-bit ARM processor supports it. */
#include <arm_neon.h>

#include "search/vector.h"

static int32_t dot(const int8_t *a, const int8_t *b, size_t dim)
{
	int32x4_t sums = vdupq_n_s32(0);
	int32_t sum;
	size_t i = 0;

	for (; i + 16 <= dim; i += 16) {
		int8x16_t x = vld1q_s8(a + i);
		int8x16_t y = vld1q_s8(b + i);

		sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(x), vget_low_s8(y)));
		sums = vpadalq_s16(sums, vmull_s8(vget_high_s8(x), vget_high_s8(y)));
	}
	sum = vaddvq_s32(sums);
	for (; i < dim; i++)
		sum += a[i] * b[i];
	return sum;
}

static bool works(void)
{
	return true;
}

const struct vector_kernel vector_kernel_neon = {"neon", dot, works};
