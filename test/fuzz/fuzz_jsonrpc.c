/*
 * Envelopes under the rules that the input's first byte chooses: what is read,
 * and that every answer to it is JSON with the same id.
 */
#include <stdint.h>
#include <stdlib.h>

#include "../feed.h"
#include "wire/jsonrpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA = 8 << 20 };

static void check_answer(const struct buf *out, const struct jsonrpc_request *request,
			 const char *member)
{
	struct value *root = NULL;
	const struct value *id;
	struct arena a;

	FEED_CHECK(out->err == 0);
	arena_init(&a, ARENA);
	FEED_CHECK(json_read(&a, out->data, out->len, &json_default_limits, &root, NULL) == 0);
	FEED_CHECK(value_find(root, member));
	FEED_CHECK(root->len == 3);
	id = value_find(root, "id");
	FEED_CHECK(id);
	if (request->id.data) {
		FEED_CHECK(id->raw_len == request->id.len);
		FEED_CHECK(memcmp(id->raw, request->id.data, id->raw_len) == 0);
	} else {
		FEED_CHECK(id->kind == VALUE_NULL);
	}
	arena_done(&a);
}

static void answer(const struct jsonrpc_rules *rules, const struct jsonrpc_request *request, int r,
		   const struct error *error)
{
	struct buf out;
	struct json j;

	buf_init(&out, ARENA);
	j = json_writer(&out);
	if (r == 0) {
		jsonrpc_begin_result(rules, &j, request->id);
		json_begin_object(&j);
		json_member_text(&j, "method", request->method);
		json_key(&j, "params");
		json_value(&j, request->params);
		json_end_object(&j);
		jsonrpc_end_result(rules, &j, request->id);
		check_answer(&out, request, "result");
		buf_clear(&out);
		j = json_writer(&out);
	}
	jsonrpc_write_error(rules, &j, request->id, -32600, text_of(error->text),
			    (struct text) {.data = "[]", .len = 2});
	check_answer(&out, request, "error");
	buf_done(&out);
}

static void check_one(const struct jsonrpc_rules *rules, const struct value *v)
{
	struct jsonrpc_request request;
	struct error error = {0};
	int r = jsonrpc_read(rules, v, &request, &error);

	FEED_CHECK(r == 0 || r == REFUSE_REQUEST || r == REFUSE_PARAMS);
	FEED_CHECK(r == REFUSE_REQUEST || request.method.len > 0);
	FEED_CHECK(r != REFUSE_REQUEST || !request.silent);
	FEED_CHECK(!(rules->flags & JSONRPC_NO_SILENCE) || !request.silent || request.id.data);
	answer(rules, &request, r, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jsonrpc_rules rules = {0};
	struct json_limits limits = {.depth = 100, .values = 10000};
	struct value *root = NULL;
	struct arena a;
	char *text;

	if (size == 0)
		return 0;
	rules.flags = data[0] & 0x3f;
	text = malloc(size);
	FEED_CHECK(text);
	memcpy(text, data + 1, size - 1);
	arena_init(&a, ARENA);
	if (json_read(&a, text, size - 1, &limits, &root, NULL) == 0) {
		check_one(&rules, root);
		if (root->kind == VALUE_ARRAY) {
			value_each (child, root)
				check_one(&rules, child);
		}
	}
	arena_done(&a);
	free(text);
	return 0;
}
