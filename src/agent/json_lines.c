/* Bytes into lines; see json_lines.h. */
#include "agent/json_lines.h"

#include <errno.h>
#include <string.h>

#include "wire/json.h"

enum {
	VALUES_MAX = 200000,
	/* More than a line within these limits can need, so that only memory itself runs out. */
	ARENA_MAX = 128 << 20,
	KEEP = 64 << 10, /* of a long line's memory */
};

void json_lines_init(struct json_lines *l, size_t max)
{
	*l = (struct json_lines) {0};
	buf_init(&l->line, max);
	arena_init(&l->arena, ARENA_MAX);
}

void json_lines_done(struct json_lines *l)
{
	buf_done(&l->line);
	arena_done(&l->arena);
}

static bool is_blank(struct text line)
{
	for (size_t i = 0; i < line.len; i++) {
		if (!memchr(" \t\r\n", line.data[i], 4))
			return false;
	}
	return true;
}

static int tell(struct json_lines *l, struct text line, bool is_long, json_line_fn fn, void *arg)
{
	int r;

	if (!is_long && is_blank(line))
		return 0;
	r = fn(arg, line, is_long);
	arena_reset(&l->arena);
	return r;
}

/* Only the beginning of what is held and what comes now is kept. */
static int hold_head(struct json_lines *l, const char *data, size_t len)
{
	size_t max = l->line.max < JSON_LINES_HEAD ? l->line.max : JSON_LINES_HEAD;
	size_t held = l->line.len < max ? l->line.len : max;
	struct buf head;

	l->skipping = true;
	buf_init(&head, l->line.max);
	buf_add(&head, l->line.data, held);
	buf_add(&head, data, len < max - held ? len : max - held);
	buf_done(&l->line);
	l->line = head;
	return head.err;
}

/* Adds to the incomplete line. */
static int hold(struct json_lines *l, const char *data, size_t len)
{
	if (l->skipping)
		return 0;
	if (len > l->line.max - l->line.len)
		return hold_head(l, data, len);
	buf_add(&l->line, data, len);
	return l->line.err;
}

static int end_line(struct json_lines *l, json_line_fn fn, void *arg)
{
	struct text line = {.data = l->line.data, .len = l->line.len};
	int r = tell(l, line, l->skipping, fn, arg);

	l->skipping = false;
	buf_trim(&l->line, KEEP);
	return r;
}

int json_lines_feed(struct json_lines *l, const char *data, size_t len, json_line_fn fn, void *arg)
{
	int r = 0;

	while (len > 0 && r == 0) {
		const char *end = memchr(data, '\n', len);
		size_t n = end ? (size_t)(end - data) : len;

		if (end && l->line.len == 0 && !l->skipping && n <= l->line.max) {
			r = tell(l, (struct text) {.data = data, .len = n}, false, fn, arg);
		} else {
			r = hold(l, data, n);
			if (end && r == 0)
				r = end_line(l, fn, arg);
		}
		data += n + (end != NULL);
		len -= n + (end != NULL);
	}
	return r;
}

int json_lines_finish(struct json_lines *l, json_line_fn fn, void *arg)
{
	return l->line.len > 0 || l->skipping ? end_line(l, fn, arg) : 0;
}

int json_lines_read(struct json_lines *l, struct text line, struct value **ret_value)
{
	const struct json_limits limits = {.depth = JSON_DEPTH_DEFAULT, .values = VALUES_MAX};
	struct value *v;
	int r;

	arena_reset(&l->arena);
	r = json_read(&l->arena, line.data, line.len, &limits, &v, NULL);
	if (r != 0)
		return r;
	if (v->kind != VALUE_OBJECT)
		return REFUSE_PARSE;
	*ret_value = v;
	return 0;
}

int64_t json_lines_count(const struct value *object, const char *key)
{
	int64_t n;

	return value_int(value_find(object, key), &n) && n >= 0 && n < (INT64_C(1) << 53) ? n : -1;
}

/* ---- claude's ---- */

void claude_usage(const struct value *usage, struct agent_usage *ret_usage)
{
	struct agent_usage *u = ret_usage;

	if (!usage)
		return;
	u->input = json_lines_count(usage, "input_tokens");
	u->output = json_lines_count(usage, "output_tokens");
	u->cache_read = json_lines_count(usage, "cache_read_input_tokens");
	u->cache_written = json_lines_count(usage, "cache_creation_input_tokens");
	if (u->input >= 0)
		u->input += (u->cache_read > 0 ? u->cache_read : 0) +
			    (u->cache_written > 0 ? u->cache_written : 0);
}

bool claude_failed(const struct value *result)
{
	const struct value *is_error = value_find(result, "is_error");
	struct text subtype = value_text(value_find(result, "subtype"));

	return (is_error && is_error->kind == VALUE_TRUE) ||
	       (subtype.len >= 5 && memcmp(subtype.data, "error", 5) == 0);
}
