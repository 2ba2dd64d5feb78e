/*
 * For clients that are less exact than our own, such as gateways and the models behind them: no limit
 * means a few, categories come in the plural or are made up, and what is known is not kept twice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/memory/memory.h"

/* Without white space at its ends. */
struct text memory_lenient_trim(struct text t);

/* What it is here; what is not known is "other". {NULL, 0} for none. */
struct text memory_lenient_category(struct text given);

/* Above 0 and at most 1; what is not above 0 is the usual. */
double memory_lenient_importance(double given);

/* What is not above 0 is the usual. */
int64_t memory_lenient_limit(int64_t given);

/* How near at least: one that is given counts in any case; what is not above 0 is the usual, which
 * counts where there are vectors. */
void memory_lenient_least(double given, struct memory_query *q);

/* On a reader's thread: whether one of those that are most like it says the same. */
int memory_lenient_known(struct memories *m, int lane, struct arena *a, struct text content,
			 const struct memory_asker *by, struct memory *ret_memory, bool *ret_known,
			 struct why *why);
