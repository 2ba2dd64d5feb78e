/*
 * Any bytes as memories and as questions. Each line is a memory (its first byte
 * says of which chat, when, and whether one is removed again), and each is asked
 * for as well.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/query.h"

enum { HITS = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_why(const struct search_why *error)
{
	float sum = error->words + error->alike + error->context + error->names + error->dates +
		    error->kind;

	if (!(sum < 1.01f) || error->n_matched > SEARCH_WHY_WORDS)
		abort();
}

static void check(const struct search_hit *hits, const struct search_why *whys, size_t n,
		  size_t n_same)
{
	if (n > HITS || n_same > SEARCH_SAME_MAX)
		abort();
	for (size_t i = 0; i < n + n_same; i++)
		check_why(&whys[i]);
	for (size_t i = 0; i < n; i++) {
		if (!(hits[i].similarity > 0 && hits[i].similarity <= 1))
			abort();
		if (i > 0 && hits[i].similarity > hits[i - 1].similarity)
			abort();
	}
}

static void line_in(struct search_index *ix, struct search_scratch *scratch, struct text line,
		    uint64_t key)
{
	uint8_t first = line.len > 0 ? (uint8_t)line.data[0] : 0;
	struct text subject = {line.data, line.len < 12 ? line.len : 12};
	const struct search_index *both[] = {ix, ix};
	struct search_doc doc = {
		.key = key % 40,
		.text = line,
		.subjects = &subject,
		.n_subjects = first & 1,
		.chat = first % 4,
		.time_ms = ((int64_t)first - 100) * 86400000 * (int64_t)(key % 5000),
		.importance = (float)first / 100,
		.category = first,
	};
	struct search_why whys[HITS + SEARCH_SAME_MAX];
	struct search_same same = {.n = 0};
	struct search_query q = {.text = line,
				 .now_ms = (int64_t)first << (first % 56),
				 .newer_first = first & 2,
				 .ret_error = whys,
				 .ret_same = &same};
	struct search_hit hits[HITS];
	size_t n;

	if (search_index_add(ix, scratch, &doc) != 0)
		return;
	if (first % 5 == 0)
		search_index_remove(ix, key / 2 % 40);
	if (search_run(scratch, both, 1 + first % 2, &q, hits, HITS, &n) == 0)
		check(hits, whys, n, same.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct search_scratch *scratch;
	struct search_index *ix = search_index_new(NULL);
	const char *at = (const char *)data;
	const char *end = at + size;

	if (!scratch)
		scratch = search_scratch_new();
	for (uint64_t key = 0; ix && scratch && at < end; key++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (!stop)
			stop = end;
		line_in(ix, scratch, (struct text) {at, (size_t)(stop - at)}, key);
		at = stop < end ? stop + 1 : end;
	}
	search_index_free(ix);
	return 0;
}
