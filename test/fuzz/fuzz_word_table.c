/* Any bytes as a table of word vectors, with a checksum that fits: refused, or every word of it can
 * be asked for. */
#include "../feed.h"

#include <endian.h>

#include "search/vector/word_table.h"

enum { HEAD = 32 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_sum(char *bytes, size_t size)
{
	uint64_t sum;

	if (size < HEAD)
		return;
	sum = htole64(word_table_checksum(bytes + HEAD, size - HEAD));
	memcpy(bytes + 24, &sum, sizeof(sum));
}

static void ask(struct word_table *t, struct words *w, struct text word)
{
	struct near_word near[WORD_TABLE_NEAR_MAX];
	size_t n = word_table_near(t, w, word, word, near);

	FEED_CHECK(n <= WORD_TABLE_NEAR_MAX);
	for (size_t i = 0; i < n; i++) {
		FEED_CHECK(near[i].len > 0 && near[i].len <= WORD_BYTES_MAX);
		FEED_CHECK(near[i].cosine > 0 && near[i].cosine <= 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct words *words;
	char *exact = malloc(size ? size : 1);
	struct word_table *t = NULL;
	struct error error = {0};
	int r;

	if (!words)
		words = words_new();
	FEED_CHECK(exact && words);
	if (size > 0)
		memcpy(exact, data, size);
	put_sum(exact, size);
	r = word_table_read((struct text) {.data = exact, .len = size}, &t, &error);
	FEED_CHECK(r == 0 || (r == REFUSE_PARSE && error.text[0]));
	for (size_t from = HEAD; r == 0 && from < size; from++) {
		for (size_t len = 0; len <= 8 && from + len <= size; len++)
			ask(t, words, (struct text) {exact + from, len});
	}
	word_table_free(t);
	free(exact);
	return 0;
}
