/*
 * A scan of JSON text against the reader: both accept the same texts, and the scan finds the
 * members that the tree has, whatever their names look like in the source.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 8 << 20 };

static void check_member(const struct value *root, const struct json_member *m)
{
	static const char *const texts[] = {"", "initialize", "é", "a\"\\/b"};
	const struct value *v = value_find(root, m->name);

	FEED_CHECK((v != NULL) == (m->raw.data != NULL));
	if (!v)
		return;
	FEED_CHECK(v->kind == m->kind && v->raw == m->raw.data && v->raw_len == m->raw.len);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		FEED_CHECK(json_source_is(m->raw, texts[i]) ==
			   (v->kind == VALUE_STRING && text_is(value_text(v), texts[i])));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct json_limits limits[] = {{.depth = JSON_DEPTH_MAX, .values = 100000},
						    {.depth = 3, .values = 8}};
	struct json_member members[] = {{"id"}, {"method"}, {"params"}, {""}, {"é"}};
	unsigned n = sizeof(members) / sizeof(members[0]);
	struct value *root = NULL;
	struct value found;
	struct arena a;
	char *text;
	int r, e;

	if (size == 0)
		return 0;
	/* In memory of exactly that size, so that one byte too far is seen. */
	text = malloc(size > 1 ? size - 1 : 1);
	FEED_CHECK(text);
	memcpy(text, data + 1, size - 1);
	arena_init(&a, ARENA);
	r = json_read(&a, text, size - 1, &limits[data[0] % 2], &root, NULL);
	e = json_scan(text, size - 1, &limits[data[0] % 2], members, n, &found);
	FEED_CHECK(r == e);
	for (unsigned i = 0; r == 0 && i < n; i++)
		check_member(root, &members[i]);
	FEED_CHECK(r != 0 || (root->kind == found.kind && root->raw == found.raw &&
			      root->raw_len == found.raw_len));
	FEED_CHECK(r != 0 || (found.kind < VALUE_ARRAY || root->len == found.len));
	arena_done(&a);
	free(text);
	return 0;
}
