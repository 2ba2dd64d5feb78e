/* What every cmocka program here includes, in the order cmocka wants. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* How often something is tried: few times every day, all of them where there is time (./dev soak). */
static inline int rounds(int few, int all)
{
	return getenv("KOINE_SOAK") ? all : few;
}
