/*
 * For client.c: bytes that came and were not used yet, and what they may cost. Incomplete
 * input is counted over all clients (limits.total_input_bytes) and must make progress: HTTP
 * has limits.read_timeout for a whole request, the others must bring limits.progress_bytes in
 * each such time.
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

/* input_take takes what came; input_keep, at the end of a turn, keeps what was not used. */
void input_take(struct client *s, const char *data, size_t len);
void input_keep(struct client *s);

void input_arm(struct client *s);
static inline void input_disarm(struct client *s)
{
	list_remove(&s->deadline_link);
}

/* At the end of a turn, after input_keep: counts what is held, and starts or stops its clock.
 * `reads`: more input could come and is waited for. */
void input_settle(struct client *s, bool reads);

/* Its time is over: true if enough came meanwhile; then it has as long again. */
bool input_went_on(struct client *s);

/* Drops all that is held, for a client that reads nothing more. */
void input_drop(struct client *s);
