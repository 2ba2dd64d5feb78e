/*
 * The final order of the best hits, which depends on their texts. An index has the words of a
 * memory but not their order, so whoever has the texts calls this after search_run.
 */
#pragma once

#include "search/query.h"

/* The text of a hit and its time. */
struct search_said {
	struct text text;
	int64_t time_ms;
};

/*
 * Reorders hits whose scores are about equal and that share the question's content words: the
 * closer match comes first, then the newer one ("moved to Oslo", "moved to Bergen"). A match
 * is closer if it has more of the question's small words ("from", "in"), has them in the same
 * order, and is negated as the question is. If the question asks ("Is Bob allowed in?") only the
 * negation counts.
 *
 * A memory with the question's very characters comes first, then one with its very words. Otherwise
 * the order is stable.
 *
 * `hits` are the first n of an answer, best first. Scores stay in place, so that they still
 * descend. ret_from[i], of n, is where the hit that is now in place i was.
 */
void search_settle(struct search_scratch *s, const struct search_query *q, struct search_hit *hits,
		   const struct search_said *said, size_t n, size_t *ret_from);
