/* Why a memory was found: what its score consists of, worked out again for those that are shown. */
#pragma once

#include "search/rank/score.h"

void why_fill(const struct search *s, const struct candidate *c, struct search_why *ret_why);
