/* When a notifier may speak: not in its quiet hours, and not too often. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/why.h"

struct zone;

enum { RATE_MAX = 60 }; /* messages a minute that a notifier can be allowed at most */

struct quiet {
	bool is;
	int from, until;   /* minutes of the day; until may be before from: over midnight */
	struct zone *zone; /* NULL: the machine's */
};

/* "22:00-07:00"; "" for none. An empty zone is the machine's. */
int quiet_parse(const char *hours, const char *zone, struct quiet *ret, struct why *why);
void quiet_done(struct quiet *q);

/* 0: it may speak; otherwise milliseconds until it may. */
int64_t quiet_left(const struct quiet *q, int64_t now_ms);

/* The times of its last messages, on a steady clock. */
struct rate {
	unsigned per_minute; /* 0: any number */
	uint64_t last[RATE_MAX];
	unsigned at;
};

int64_t rate_left(const struct rate *r, uint64_t now_ms);
void rate_note(struct rate *r, uint64_t now_ms);
