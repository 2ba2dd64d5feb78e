/*
 * A hook's JSON, and what people answer to it: whatever comes, it is read or refused with a sentence,
 * and everything that is said is JSON.
 *
 * The input is the answer, a NUL, and the JSON.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "hook/hook.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 8 << 20, OUT = 4 << 20 };

static void check_json(struct arena *a, const struct buf *out)
{
	struct value *again = NULL;

	FEED_CHECK(out->err == 0);
	FEED_CHECK(json_read(a, out->data, out->len, &json_default_limits, &again, NULL) == 0);
	FEED_CHECK(again->kind == VALUE_OBJECT);
}

static void check_input(struct arena *a, const struct value *v)
{
	struct buf out;
	struct json j;

	buf_init(&out, OUT);
	j = json_writer(&out);
	json_value(&j, v);
	check_json(a, &out);
	buf_done(&out);
}

static void answer(struct arena *a, const struct hook *h, struct text said)
{
	static const char *const words[] = {"approved", "denied",     "responded",
					    "expired",  "superseded", "unavailable"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct hook_outcome o = {.status = text_of(words[i]),
					       .comment = said,
					       .decided_by = TEXT("human"),
					       .refused = said.len % 2 == 1};
		struct buf out;

		buf_init(&out, OUT);
		hook_answer(h, &o, &out);
		FEED_CHECK(out.err == 0);
		if (out.len > 0)
			check_json(a, &out);
		buf_done(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
	size_t n = end ? (size_t)(end - data) + 1 : 0;
	struct hook_source from = {.format = TEXT("auto")};
	struct value *tree = NULL;
	struct error error = {0};
	struct hook h;
	struct arena a;
	int r;

	arena_init(&a, ARENA);
	from.text = (struct text) {.data = (const char *)data + n, .len = size - n};
	if (json_read(&a, from.text.data, from.text.len, &json_default_limits, &tree, &error) == 0)
		from.tree = tree;
	r = hook_read(&a, &from, &h, &error);
	FEED_CHECK(r == 0 ? h.tool.len > 0 : r > 0 && error.text[0]);
	if (r == 0 && h.input)
		check_input(&a, h.input);
	answer(&a, &h, (struct text) {.data = (const char *)data, .len = n > 0 ? n - 1 : 0});
	arena_done(&a);
	return 0;
}
