/* The words of an index: name to number, by open addressing. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "search/index_inner.h"
#include "search/mix.h"

static uint32_t name_hash(const struct search_index *ix, const char *name, size_t len)
{
	return (uint32_t)mix_bytes(name, len, ix->seed);
}

/* The word's slot, or the free one where it would go. There is always a free slot. */
static uint32_t slot_find(const struct search_index *ix, const char *name, size_t len,
			  uint32_t hash)
{
	uint32_t mask = ix->n_term_slots - 1;
	uint32_t at = hash & mask;

	while (ix->term_slots[at].term) {
		const struct term *term = &ix->terms[ix->term_slots[at].term - 1];

		if (ix->term_slots[at].hash == hash && term->name_len == len &&
		    memcmp(ix->names + term->name, name, len) == 0)
			break;
		at = (at + 1) & mask;
	}
	return at;
}

uint32_t term_find(const struct search_index *ix, const char *name, size_t len)
{
	uint32_t at;

	if (ix->n_term_slots == 0)
		return NO_DOC;
	at = slot_find(ix, name, len, name_hash(ix, name, len));
	return ix->term_slots[at].term ? ix->term_slots[at].term - 1 : NO_DOC;
}

/* Keep it less than three quarters full. */
static int slots_reserve(struct search_index *ix, size_t n_terms)
{
	uint64_t n = ix->n_term_slots ? ix->n_term_slots : 64;
	struct term_slot *old = ix->term_slots;
	struct term_slot *slots = NULL;
	int r;

	while ((uint64_t)n_terms * 4 >= n * 3)
		n *= 2;
	if (n == ix->n_term_slots)
		return 0;
	r = index_resize(ix, &slots, 0, n * sizeof(*slots));
	if (r != 0)
		return r;
	memset(slots, 0, n * sizeof(*slots));
	for (uint32_t i = 0; i < ix->n_term_slots; i++) {
		uint64_t at = old[i].hash & (n - 1);

		if (!old[i].term)
			continue;
		while (slots[at].term)
			at = (at + 1) & (n - 1);
		slots[at] = old[i];
	}
	index_resize(ix, &ix->term_slots, ix->n_term_slots * sizeof(*old), 0);
	ix->term_slots = slots;
	ix->n_term_slots = (uint32_t)n;
	return 0;
}

static int term_new(struct search_index *ix, const char *name, size_t len)
{
	size_t cap = ix->cap_terms;
	int r;

	if (ix->n_terms == SEARCH_DOCS_MAX || ix->names_len + len > UINT32_MAX)
		return REFUSE_LIMIT;
	r = index_grow(ix, &ix->terms, sizeof(*ix->terms), (size_t)ix->n_terms + 1, &cap);
	if (r == 0) {
		ix->cap_terms = (uint32_t)cap;
		r = index_grow(ix, &ix->names, 1, ix->names_len + len, &ix->cap_names);
	}
	if (r != 0)
		return r;
	memcpy(ix->names + ix->names_len, name, len);
	ix->terms[ix->n_terms++] = (struct term) {
		.name = (uint32_t)ix->names_len,
		.name_len = (uint8_t)len,
		.min_len = UINT8_MAX,
	};
	ix->names_len += len;
	return 0;
}

int term_get(struct search_index *ix, const char *name, size_t len, uint32_t *ret_term)
{
	uint32_t hash = name_hash(ix, name, len);
	uint32_t at;
	int r;

	r = slots_reserve(ix, ix->n_terms);
	if (r != 0)
		return r;
	at = slot_find(ix, name, len, hash);
	if (!ix->term_slots[at].term) {
		r = term_new(ix, name, len);
		if (r != 0)
			return r;
		ix->term_slots[at] = (struct term_slot) {hash, ix->n_terms};
	}
	*ret_term = ix->term_slots[at].term - 1;
	return 0;
}

/* ---- what a thread needs to add and to search ---- */

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
