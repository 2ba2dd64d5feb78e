/*
 * The total counts, as of the log's last event: asking again before anything has changed needs
 * neither a thread nor a query.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct chat;

struct census {
	bool taken;
	int64_t as_of; /* the last event at that time */
	int64_t conversations;
	int64_t messages;
	int64_t tool_calls;
	int64_t memories;
};

/* Runs on the loop. Returns false if the census must be taken (again). */
bool census_at_hand(const struct chat *chat, struct census *ret);

/* Runs on a reader's thread. */
int census_take(struct chat *chat, int lane, struct census *ret);

/* Runs on the loop. Remembers the census that was taken. */
void census_keep(struct chat *chat, const struct census *c);
