/*
 * For client.c: bytes that came and were not used, and what they may cost. What waits for its
 * rest is counted over all clients (limits.total_input_bytes), and must go on: HTTP has
 * limits.read_timeout for a request in all, the others limits.progress_bytes in each such time.
 */
#pragma once

#include "call/client.h"

static inline struct text input_window(const struct client *s)
{
	if (s->fresh.data)
		return s->fresh;
	if (!s->in.data)
		return (struct text) {0};
	return (struct text) {.data = s->in.data + s->in_start, .len = s->in.len - s->in_start};
}

static inline void input_advance(struct client *s, size_t n)
{
	if (s->fresh.data) {
		s->fresh.data += n;
		s->fresh.len -= n;
	} else {
		s->in_start += n;
	}
}

/* Takes what came; keeps, at the end of a turn, what was not used of it. */
void input_take(struct client *s, const char *data, size_t len);
void input_keep(struct client *s);

void input_arm(struct client *s);
static inline void input_disarm(struct client *s)
{
	list_remove(&s->deadline_link);
}

/* At the end of a turn, behind input_keep: counts what is held, and whether time runs for it.
 * `reads`: more could come, and is waited for. */
void input_settle(struct client *s, bool reads);

/* Its time is over: true if enough came meanwhile, and it has as long again. */
bool input_went_on(struct client *s);

/* All that is held, for a client that reads nothing more. */
void input_drop(struct client *s);
