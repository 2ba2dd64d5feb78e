/* "Did you mean": takes names one by one and keeps the one most like `wanted`. */
#pragma once

#include "base/text.h"

struct nearest {
	const char *wanted;
	char name[64];   /* "": nothing is close */
	unsigned within; /* only what is closer than this counts */
};

void nearest_init(struct nearest *n, const char *wanted);
void nearest_offer(struct nearest *n, struct text name);
