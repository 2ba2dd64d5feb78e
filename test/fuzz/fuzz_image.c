/*
 * The bytes of an index, changed: each four bytes of the input are a block, a place and what stands there
 * now. What is not refused must be an index like any other, to search and to change.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "search/file/image.h"
#include "search/query.h"

enum { HITS = 20, DOCS = 60 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct search_scratch *scratch;
static struct search_head head;
static uint8_t *bytes;
static size_t n_bytes;

static void add(struct search_index *ix, uint64_t key)
{
	static const char *const texts[] = {"the blue kettle of Ann", "a lamp and a lamp, why?",
					    "Bob moved to Oslo in May 2023", "kettle lamp kettle"};
	const struct text subject = TEXT("Ann Miller");
	const struct search_doc doc = {.key = key,
				       .text = text_of(texts[key % 4]),
				       .subjects = &subject,
				       .n_subjects = key % 2,
				       .chat = key % 3,
				       .time_ms = (int64_t)(key * 7 % 11)};

	(void)search_index_add(ix, scratch, &doc);
}

/* The image that is changed. */
static void make(void)
{
	struct search_index *ix = search_index_new(NULL);
	struct search_block blocks[SEARCH_BLOCKS];
	uint64_t *chats;

	scratch = search_scratch_new();
	if (!ix || !scratch)
		abort();
	for (uint64_t key = 1; key <= DOCS; key++)
		add(ix, key);
	search_index_remove(ix, 5);
	if (search_image(ix, &head, blocks, &chats) != 0)
		abort();
	for (size_t i = 0; i < SEARCH_BLOCKS; i++)
		n_bytes += blocks[i].len;
	bytes = malloc(n_bytes);
	if (!bytes)
		abort();
	n_bytes = 0;
	for (size_t i = 0; i < SEARCH_BLOCKS; i++) {
		memcpy(bytes + n_bytes, blocks[i].data, blocks[i].len);
		n_bytes += blocks[i].len;
	}
	free(chats);
	search_index_free(ix);
}

static void use(struct search_index *ix)
{
	const struct search_index *one = ix;
	const struct search_query q = {.text = TEXT("what did Ann say about the kettle in May?"),
				       .now_ms = 1700000000000};
	struct search_hit hits[HITS];
	size_t n;

	for (uint64_t key = 0; key < DOCS / 2; key++) {
		add(ix, key * 3);
		search_index_remove(ix, key * 5);
		if (key % 10 == 0)
			(void)search_run(scratch, &one, 1, &q, hits, HITS, &n);
	}
	search_index_free(ix);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct search_block blocks[SEARCH_BLOCKS];
	struct search_reading *reading;
	bool done = false;
	size_t from = 0;

	if (!bytes)
		make();
	if (search_reading_new(&head, n_bytes, NULL, &reading, blocks) != 0)
		return 0;
	for (size_t i = 0; i < SEARCH_BLOCKS; from += blocks[i++].len)
		memcpy(blocks[i].data, bytes + from, blocks[i].len);
	for (; size >= 4; data += 4, size -= 4) {
		struct search_block *b = &blocks[data[0] % SEARCH_BLOCKS];

		if (b->len > 0)
			((uint8_t *)b->data)[(data[1] << 8 | data[2]) % b->len] = data[3];
	}
	while (!done) {
		if (search_reading_step(reading, 50, &done) != 0) {
			search_reading_free(reading);
			return 0;
		}
	}
	use(search_reading_take(reading));
	return 0;
}
