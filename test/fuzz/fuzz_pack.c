/*
 * Any bytes as a packed tree: what is accepted packs to the same bytes again, and can be
 * written as JSON that reads, the same from the bytes as from the tree; what is not is null.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "base/pack.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 8 << 20 };

static void check_packed(struct text packed, const char *json, size_t len)
{
	struct buf out;
	struct json j;

	buf_init(&out, ARENA);
	j = json_writer(&out);
	json_packed(&j, packed);
	FEED_CHECK(out.err == 0 && out.len == len && memcmp(out.data, json, len) == 0);
	buf_done(&out);
}

/* How many arrays and objects are around its deepest value. */
static unsigned depth_of(const struct value *v)
{
	unsigned most = 0;

	for (const struct value *child = v->first; child; child = child->next) {
		unsigned depth = 1 + depth_of(child);

		most = depth > most ? depth : most;
	}
	return most;
}

static void check_json(struct arena *a, const struct value *v, struct text packed)
{
	static const struct json_limits wide = {.depth = JSON_DEPTH_MAX,
						.values = JSON_VALUES_DEFAULT};
	struct value *root = NULL;
	struct buf out;
	struct json j;
	int r;

	buf_init(&out, ARENA);
	j = json_writer(&out);
	json_value(&j, v);
	FEED_CHECK(out.err == 0);
	check_packed(packed, out.data, out.len);
	FEED_CHECK(packed_is_object(packed) == (v->kind == VALUE_OBJECT));
	r = json_read(a, out.data, out.len, &wide, &root, NULL);
	/* A packed tree may be deeper than JSON. */
	FEED_CHECK(r == 0 || r == REFUSE_TOO_LARGE ||
		   (r == REFUSE_PARSE && depth_of(v) >= JSON_DEPTH_MAX));
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* In memory of exactly that size, so that one byte too far is seen. */
	char *bytes = malloc(size ? size : 1);
	struct value *root = NULL;
	struct arena a;
	struct buf out;
	int r;

	FEED_CHECK(bytes);
	if (size > 0)
		memcpy(bytes, data, size);
	arena_init(&a, ARENA);
	buf_init(&out, ARENA);
	r = value_unpack(&a, (struct text) {bytes, size}, &root);
	FEED_CHECK(r == 0 || r == -EBADMSG || r == -ENOMEM);
	if (r == 0) {
		value_pack(&out, root);
		FEED_CHECK(out.err == 0 && out.len == size);
		FEED_CHECK(memcmp(out.data, bytes, size) == 0);
		check_json(&a, root, (struct text) {bytes, size});
	}
	if (r == -EBADMSG) {
		check_packed((struct text) {bytes, size}, "null", 4);
		FEED_CHECK(!packed_is_object((struct text) {bytes, size}));
	}
	buf_done(&out);
	arena_done(&a);
	free(bytes);
	return 0;
}
