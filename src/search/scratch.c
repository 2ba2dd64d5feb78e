/* What a thread needs to add and to search; see scratch.h. */
#include "search/scratch.h"

#include <errno.h>
#include <stdlib.h>

struct search_scratch *search_scratch_new(void)
{
	struct search_scratch *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->words = words_new();
	if (!s->words) {
		free(s);
		return NULL;
	}
	return s;
}

void search_scratch_free(struct search_scratch *s)
{
	if (!s)
		return;
	words_free(s->words);
	free(s->ids);
	free(s->tallies);
	free(s->touched);
	free(s);
}

int scratch_tallies(struct search_scratch *s, size_t n)
{
	struct tally *tallies;
	uint32_t *touched;
	size_t cap = n + n / 8 + 64;

	if (n < s->cap_tallies)
		return 0;
	/* Nothing in them needs to be kept between searches. */
	free(s->tallies);
	free(s->touched);
	s->cap_tallies = 0;
	tallies = s->tallies = calloc(cap, sizeof(*tallies));
	touched = s->touched = calloc(cap, sizeof(*touched));
	if (!tallies || !touched)
		return -ENOMEM;
	s->cap_tallies = cap;
	return 0;
}
