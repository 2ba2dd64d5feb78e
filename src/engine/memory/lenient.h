/*
 * For clients that are less exact than our own, such as gateways and the models behind them:
 * no limit means a few, categories may be plural or invented, and what is already known is not
 * stored twice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/memory/memory.h"

/* Our name for it; an unknown one is "other". {NULL, 0} for none. */
struct text memory_lenient_category(struct text given);

/* Above 0 and at most 1; anything not above 0 means the default. */
double memory_lenient_importance(double given);

/* Anything not above 0 means the default. */
int64_t memory_lenient_limit(int64_t given);

/* The minimum similarity: a given one always applies; anything not above 0 means the default,
 * which applies only if there are vectors. */
void memory_lenient_least(double given, struct memory_query *q);

enum { MEMORY_ALIKE_MAX = 5 };

/* Runs on a reader's thread: memories that say nearly the same, the closest first, at most
 * MEMORY_ALIKE_MAX. It may have to wait, as memory_search. */
int memory_lenient_alike(struct memories *m, int lane, struct arena *a, struct text content,
			 const struct memory_asker *by, struct memory_wait *wait,
			 struct memory **ret_rows, unsigned *ret_n, struct error *error);

/* Runs on a reader's thread: whether one of the most similar memories says the same. It may have
 * to wait, as memory_search. */
int memory_lenient_known(struct memories *m, int lane, struct arena *a, struct text content,
			 const struct memory_asker *by, struct memory_wait *wait,
			 struct memory *ret_memory, bool *ret_known, struct error *error);
