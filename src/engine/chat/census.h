/*
 * How much there is in all, as it was when the log's last event was kept: who asks again before
 * anything has changed costs no thread and no query.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chat;

struct census {
	bool taken;
	int64_t as_of; /* the last event there was */
	int64_t conversations;
	int64_t messages;
	int64_t tool_calls;
	int64_t memories;
};

/* On the loop: false when it has to be taken (again). */
bool census_at_hand(const struct chat *chat, struct census *ret);

/* On a reader's thread. */
int census_take(struct chat *chat, int lane, struct census *ret);

/* On the loop: the one that was taken. */
void census_keep(struct chat *chat, const struct census *c);
