/* One file each, compiled for its processor; Meson chooses which are built. */
#pragma once

#include "search/vector.h"

extern const struct vector_kernel vector_kernel_plain;
extern const struct vector_kernel vector_kernel_avx2;
extern const struct vector_kernel vector_kernel_neon;
