/*
 * JSON text: whatever is accepted must be written as something that reads as
 * the same again, also after the text has moved.
 *
 * The input's first byte chooses the limits.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 8 << 20 };

/* In memory of exactly that size, so that one byte too far is seen. */
static char *exact_copy(const void *data, size_t n)
{
	char *copy = malloc(n ? n : 1);

	FEED_CHECK(copy);
	if (n > 0)
		memcpy(copy, data, n);
	return copy;
}

static void write_out(const struct value *v, struct buf *out)
{
	struct json j = json_writer(out);

	json_value(&j, v);
	FEED_CHECK(out->err == 0);
}

/* Visits every number, as decoding would. */
static void visit(const struct value *v)
{
	int64_t n;
	double d;

	value_int(v, &n);
	value_double(v, &d);
	FEED_CHECK(v->raw && v->raw_len > 0);
	if (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT)
		return;
	value_each (child, v)
		visit(child);
}

static void check_again(const struct buf *first)
{
	static const struct json_limits wide = {.depth = JSON_DEPTH_MAX,
						.values = JSON_VALUES_DEFAULT};
	char *text = exact_copy(first->data, first->len);
	struct value *root = NULL;
	struct arena a;
	struct buf again;

	arena_init(&a, ARENA);
	buf_init(&again, ARENA);
	FEED_CHECK(json_read(&a, text, first->len, &wide, &root, NULL) == 0);
	write_out(root, &again);
	FEED_CHECK(again.len == first->len && memcmp(again.data, first->data, again.len) == 0);
	buf_done(&again);
	arena_done(&a);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct json_limits limits[] = {{.depth = 128, .values = 100000},
						    {.depth = 3, .values = 8},
						    {.depth = 1024, .values = 1}};
	struct value *root = NULL;
	struct error error = {0};
	struct arena a;
	struct buf out;
	char *text, *moved;
	int r;

	if (size == 0)
		return 0;
	text = exact_copy(data + 1, size - 1);
	arena_init(&a, ARENA);
	buf_init(&out, ARENA);
	r = json_read(&a, text, size - 1, &limits[data[0] % 3], &root, &error);
	FEED_CHECK(r == 0 || r == REFUSE_PARSE || r == REFUSE_TOO_LARGE);
	FEED_CHECK(r == 0 || (error.code == (enum refusal)r && error.text[0]));
	if (r == 0) {
		moved = exact_copy(text, size - 1);
		value_rebase(root, text, size - 1, moved);
		memset(text, '#', size - 1);
		visit(root);
		write_out(root, &out);
		check_again(&out);
		free(moved);
	}
	buf_done(&out);
	arena_done(&a);
	free(text);
	return 0;
}
