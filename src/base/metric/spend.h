/*
 * What agents used, counted by their names: tokens, money, how their turns ended. There are few
 * names, those of the settings; SPEND_MAX bounds them anyway, and the rest counts as "other".
 */
#pragma once

#include <stdint.h>

#include "base/text.h"

enum { SPEND_MAX = 64, SPEND_NAME_MAX = 64 };

enum spend_outcome { SPEND_DONE, SPEND_FAILED, SPEND_CANCELLED, N_SPEND_OUTCOMES };

/* What one turn used; negative: not known, and not counted. */
struct spent {
	int64_t input; /* tokens; everything that was read, cached or not */
	int64_t output;
	int64_t cache_read;
	int64_t cache_written;
	int64_t micro_usd;
	enum spend_outcome outcome;
};

struct spend_row {
	char name[SPEND_NAME_MAX];
	uint64_t input;
	uint64_t output;
	uint64_t cache_read;
	uint64_t cache_written;
	uint64_t micro_usd;
	uint64_t n[N_SPEND_OUTCOMES];
};

struct spend {
	unsigned n;
	struct spend_row *rows[SPEND_MAX]; /* made with their first use */
	struct spend_row other;
};

void spend_add(struct spend *s, struct text agent, const struct spent *what);
void spend_done(struct spend *s);
