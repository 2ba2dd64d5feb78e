#include "search/vector/kernel.h"

static int32_t dot(const int8_t *a, const int8_t *b, size_t dim)
{
	int32_t sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += a[i] * b[i];
	return sum;
}

static bool works(void)
{
	return true;
}

const struct vector_kernel vector_kernel_plain = {"plain", dot, works};
