/*
 * Any bytes as a question, of any language and at any time: a date that it names has a beginning
 * before its end, and what belongs to it can be told of any time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/dates.h"
#include "search/words.h"

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct date *d, int64_t now_ms)
{
	if (!d->yearly && d->from_ms >= d->to_ms)
		abort();
	if (d->yearly && (d->month < 1 || d->month > 12 || d->to_month < 1 || d->to_month > 12))
		abort();
	date_holds(d, now_ms);
	date_holds(d, INT64_MIN);
	date_holds(d, INT64_MAX);
	if (!d->yearly && !date_holds(d, d->from_ms))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct words *w;
	static char bytes[WORDS_MAX * WORD_BYTES_MAX];
	struct date_word words[WORDS_MAX] = {0};
	struct date dates[DATES_MAX];
	struct date_order order;
	struct dates in = {.words = words};
	struct word word;
	size_t used = 0;
	size_t n;

	if (!w)
		w = words_new();
	if (!w || size < sizeof(in.now_ms) + 1)
		return 0;
	memcpy(&in.now_ms, data, sizeof(in.now_ms));
	in.language = data[sizeof(in.now_ms)] % LANGUAGES;
	data += sizeof(in.now_ms) + 1;
	size -= sizeof(in.now_ms) + 1;
	words_start(w, (struct text) {(const char *)data, size}, 0, WORDS_OF_QUESTION);
	while (in.n_words < WORDS_MAX && words_next(w, &word)) {
		memcpy(bytes + used, word.folded.data, word.folded.len);
		words[in.n_words++] = (struct date_word) {.folded = {bytes + used, word.folded.len},
							  .joint = word.joint};
		used += word.folded.len;
	}
	n = dates_find(&in, dates, &order);
	if (n > DATES_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		check(&dates[i], in.now_ms);
	return 0;
}
