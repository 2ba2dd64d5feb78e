#include "search/hash_embed.h"

#include <math.h>
#include <string.h>

enum {
	WORD_WEIGHT = 64,
	LITTLE_WEIGHT = 8,
	RUN_WEIGHT = 16,
	RUN_MIN = 3, /* characters */
	RUN_MAX = 4,
};

/* Do not use mix.h, which may change: these must stay as they are, since clients keep vectors. */
static uint64_t hash(char kind, const char *data, size_t len)
{
	uint64_t h = 0xcbf29ce484222325U;

	h = (h ^ (unsigned char)kind) * 0x100000001b3U;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)data[i]) * 0x100000001b3U;
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15U;
	return h ^ h >> 29;
}

/* The sums cannot overflow 64 bits: a text has fewer words than 2^32 bytes. */
static void hash_embed_add(int64_t *sums, char kind, const char *data, size_t len, int64_t weight)
{
	uint64_t h = hash(kind, data, len);

	sums[h % HASH_EMBED_DIM] += h >> 63 ? -weight : weight;
}

/* How many bytes n characters take from here; 0 when there are fewer. */
static size_t run_len(const char *at, const char *end, unsigned n)
{
	const char *p = at;

	for (; n > 0; n--) {
		if (p == end)
			return 0;
		do {
			p++;
		} while (p < end && ((unsigned char)*p & 0xc0) == 0x80);
	}
	return (size_t)(p - at);
}

static void add_runs(int64_t *sums, struct text word)
{
	char marked[WORD_BYTES_MAX + 2];
	const char *end = marked;
	size_t n = word.len < WORD_BYTES_MAX ? word.len : WORD_BYTES_MAX;

	marked[0] = '<';
	memcpy(marked + 1, word.data, n);
	marked[n + 1] = '>';
	end += n + 2;
	for (const char *at = marked; at < end; at += run_len(at, end, 1)) {
		for (unsigned len = RUN_MIN; len <= RUN_MAX; len++) {
			size_t bytes = run_len(at, end, len);

			if (bytes > 0)
				hash_embed_add(sums, 'g', at, bytes, RUN_WEIGHT);
		}
	}
}

void hash_embed(struct words *w, struct text text, float ret_vector[HASH_EMBED_DIM])
{
	int64_t sums[HASH_EMBED_DIM] = {0};
	struct word word;
	double length = 0;

	words_start(w, text, WORDS_OLD, WORDS_OF_NAME);
	while (words_next(w, &word)) {
		bool little = word.flags & WORD_STOP;

		hash_embed_add(sums, 'w', word.term.data, word.term.len,
			       little ? LITTLE_WEIGHT : WORD_WEIGHT);
		if (!little)
			add_runs(sums, word.folded);
	}
	for (unsigned i = 0; i < HASH_EMBED_DIM; i++)
		length += (double)(sums[i] * sums[i]);
	/* There are no words, or their signs cancel out. */
	if (length == 0)
		sums[0] = 1;
	length = length == 0 ? 1 : sqrt(length);
	for (unsigned i = 0; i < HASH_EMBED_DIM; i++)
		ret_vector[i] = (float)((double)sums[i] / length);
}
