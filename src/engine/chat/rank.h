/* How the recall agent finds its quotes: by the words of search/. On a reader's thread. */
#pragma once

#include "base/text.h"

/* As struct recall_opts wants it. Needs no arg. */
int chat_rank(void *arg, const struct text *sentences, unsigned n, struct text question,
	      unsigned *ret_best, unsigned max, unsigned *ret_n);
