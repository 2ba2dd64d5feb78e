#include "search/vector.h"

const struct vector_kernel *const vector_kernels[] = {
	&vector_kernel_plain,
	NULL,
};
