#include "base/set/lately.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 4, WORDS = LATELY_BITS / 64 };

int lately_init(struct lately *l, uint64_t period_ms, uint64_t now_ms)
{
	uint64_t *both = malloc(2 * WORDS * sizeof(both[0]));

	if (!both)
		return -ENOMEM;
	/* What was before us is not known, so that anything may have been. */
	memset(both, 0xff, WORDS * sizeof(both[0]));
	memset(both + WORDS, 0, WORDS * sizeof(both[0]));
	*l = (struct lately) {
		.period_ms = period_ms, .turned_ms = now_ms, .before = both, .now = both + WORDS};
	pthread_mutex_init(&l->lock, NULL);
	return 0;
}

void lately_done(struct lately *l)
{
	if (!l->now)
		return;
	free(l->now < l->before ? l->now : l->before);
	pthread_mutex_destroy(&l->lock);
	*l = (struct lately) {0};
}

static void clear(uint64_t *words)
{
	memset(words, 0, WORDS * sizeof(words[0]));
}

/* A new period begins with the first call in it. */
static void turn(struct lately *l, uint64_t now_ms)
{
	uint64_t *old = l->before;

	if (now_ms < l->turned_ms + l->period_ms)
		return;
	if (now_ms >= l->turned_ms + 2 * l->period_ms)
		clear(l->now);
	l->before = l->now;
	l->now = old;
	clear(l->now);
	l->turned_ms = now_ms;
}

/* The number is mixed first: who chooses it may choose many alike. */
static uint64_t mix(uint64_t n)
{
	n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9U;
	n = (n ^ (n >> 27)) * 0x94d049bb133111ebU;
	return n ^ (n >> 31);
}

static bool has(const uint64_t *words, uint64_t mixed)
{
	for (int i = 0; i < PROBES; i++) {
		uint64_t bit = (mixed + (uint64_t)i * ((mixed >> 32) | 1)) % LATELY_BITS;

		if (!(words[bit / 64] >> (bit % 64) & 1))
			return false;
	}
	return true;
}

void lately_add(struct lately *l, uint64_t number, uint64_t now_ms)
{
	uint64_t mixed = mix(number);

	pthread_mutex_lock(&l->lock);
	turn(l, now_ms);
	for (int i = 0; i < PROBES; i++) {
		uint64_t bit = (mixed + (uint64_t)i * ((mixed >> 32) | 1)) % LATELY_BITS;

		l->now[bit / 64] |= UINT64_C(1) << (bit % 64);
	}
	pthread_mutex_unlock(&l->lock);
}

bool lately_may_have(struct lately *l, uint64_t number, uint64_t now_ms)
{
	uint64_t mixed = mix(number);
	bool found;

	pthread_mutex_lock(&l->lock);
	turn(l, now_ms);
	found = has(l->now, mixed) || has(l->before, mixed);
	pthread_mutex_unlock(&l->lock);
	return found;
}
