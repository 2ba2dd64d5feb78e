/*
 * Which numbers were seen lately, in a fixed room: two Bloom filters, one of the period under way and
 * one of the period before it. What was added is found for at least a period; something else is
 * rarely taken for it, and nothing else is ever wrong. Any thread may call these functions.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* For a hundred thousand numbers in a period one other in a thousand is found by mistake. */
enum { LATELY_BITS = 1 << 21 };

struct lately {
	pthread_mutex_t lock;
	uint64_t period_ms;
	uint64_t turned_ms; /* when the period under way began */
	uint64_t *now, *before;
};

/* Free it with lately_done. -ENOMEM. */
int lately_init(struct lately *l, uint64_t period_ms, uint64_t now_ms);
void lately_done(struct lately *l); /* also accepts one that is all zero */

/* Times are those of a steady clock. */
void lately_add(struct lately *l, uint64_t number, uint64_t now_ms);
/* Whether it may have been added within the last period. Before one has passed since
 * lately_init everything may have been. */
bool lately_may_have(struct lately *l, uint64_t number, uint64_t now_ms);
