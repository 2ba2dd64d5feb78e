/* Bytes into lines; see json_lines.h. */
#include "agent/json_lines.h"

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

static bool json_lines_is_blank(struct text line)
{
	for (size_t i = 0; i < line.len; i++) {
		if (!memchr(" \t\r\n", line.data[i], 4))
			return false;
	}
	return true;
}

static int json_lines_notify(struct json_lines *l, struct text line, bool is_long, json_line_fn fn,
			     void *arg)
{
	int r;

	if (!is_long && json_lines_is_blank(line))
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
static int json_lines_hold(struct json_lines *l, const char *data, size_t len)
{
	if (l->skipping)
		return 0;
	if (len > l->line.max - l->line.len)
		return hold_head(l, data, len);
	buf_add(&l->line, data, len);
	return l->line.err;
}

static int json_lines_end_line(struct json_lines *l, json_line_fn fn, void *arg)
{
	struct text line = {.data = l->line.data, .len = l->line.len};
	int r = json_lines_notify(l, line, l->skipping, fn, arg);

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
			r = json_lines_notify(l, (struct text) {.data = data, .len = n}, false, fn,
					      arg);
		} else {
			r = json_lines_hold(l, data, n);
			if (end && r == 0)
				r = json_lines_end_line(l, fn, arg);
		}
		data += n + (end != NULL);
		len -= n + (end != NULL);
	}
	return r;
}

int json_lines_finish(struct json_lines *l, json_line_fn fn, void *arg)
{
	return l->line.len > 0 || l->skipping ? json_lines_end_line(l, fn, arg) : 0;
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

void stream_json_init(struct stream_json *s)
{
	*s = (struct stream_json) {.usage = AGENT_NO_USAGE};
	json_lines_init(&s->lines, STREAM_JSON_LINE_MAX);
}

void stream_json_done(struct stream_json *s)
{
	json_lines_done(&s->lines);
}

static bool is(const struct value *object, const char *key, const char *want)
{
	return text_is(value_text(value_find(object, key)), want);
}

static void add_text(struct stream_json *s, struct text t, struct buf *out)
{
	if (t.len == 0)
		return;
	if (s->block_begins && s->has_text && s->last != '\n')
		buf_add_str(out, "\n\n");
	s->block_begins = false;
	s->has_text = true;
	s->last = t.data[t.len - 1];
	buf_add(out, t.data, t.len);
}

/* Cut to what fits, between characters. */
static void copy_cut(char *to, size_t size, struct text from)
{
	size_t n = from.len < size - 1 ? from.len : size - 1;

	while (n > 0 && n < from.len && ((unsigned char)from.data[n] & 0xc0) == 0x80)
		n--;
	if (n > 0)
		memcpy(to, from.data, n);
	to[n] = '\0';
}

static void note_error(struct stream_json *s, struct text t)
{
	if (t.len > 0)
		copy_cut(s->error, sizeof(s->error), t);
}

/* ---- claude ---- */

static void on_assistant(struct stream_json *s, const struct value *v, struct buf *out)
{
	const struct value *message = value_find(v, "message");
	const struct value *content = value_find(message, "content");
	struct text id = value_text(value_find(message, "id"));

	/* It already came in deltas. */
	if (s->has_delta && (s->delta_id[0] == '\0' || text_is(id, s->delta_id)))
		return;
	s->block_begins = true;
	add_text(s, value_text(content), out);
	if (!content || content->kind != VALUE_ARRAY)
		return;
	value_each (block, content) {
		s->block_begins = true;
		if (is(block, "type", "text"))
			add_text(s, value_text(value_find(block, "text")), out);
	}
}

static void on_stream_event(struct stream_json *s, const struct value *v, struct buf *out)
{
	const struct value *event = value_find(v, "event");
	const struct value *delta = value_find(event, "delta");

	if (is(event, "type", "message_start")) {
		struct text id = value_text(value_find(value_find(event, "message"), "id"));

		s->has_delta = false;
		copy_cut(s->delta_id, sizeof(s->delta_id), id);
		s->block_begins = true;
	} else if (is(event, "type", "content_block_start")) {
		s->block_begins = true;
	} else if (is(event, "type", "content_block_delta") && is(delta, "type", "text_delta")) {
		s->has_delta = true;
		add_text(s, value_text(value_find(delta, "text")), out);
	}
}

static void on_result(struct stream_json *s, const struct value *v, struct buf *out)
{
	struct text result = value_text(value_find(v, "result"));
	struct text subtype = value_text(value_find(v, "subtype"));

	claude_usage(value_find(v, "usage"), &s->usage);
	if (claude_failed(v)) {
		s->failed = true;
		note_error(s, result.len > 0 ? result : subtype);
	} else if (!s->has_text) {
		add_text(s, result, out);
	}
}

/* ---- codex ---- */

static void on_item(struct stream_json *s, const struct value *v, struct buf *out)
{
	const struct value *item = value_find(v, "item");

	if (!is(item, "type", "agent_message") && !is(item, "item_type", "assistant_message"))
		return;
	s->block_begins = true;
	add_text(s, value_text(value_find(item, "text")), out);
}

static void on_turn_completed(struct stream_json *s, const struct value *v, struct buf *out)
{
	const struct value *usage = value_find(v, "usage");

	if (!usage)
		return;
	s->usage.input = json_lines_count(usage, "input_tokens");
	s->usage.output = json_lines_count(usage, "output_tokens");
	s->usage.cache_read = json_lines_count(usage, "cached_input_tokens");
}

static void on_turn_failed(struct stream_json *s, const struct value *v, struct buf *out)
{
	s->failed = true;
	note_error(s, value_text(value_find(value_find(v, "error"), "message")));
}

/* The run may go on after this, so it has not failed. */
static void on_error(struct stream_json *s, const struct value *v, struct buf *out)
{
	note_error(s, value_text(value_find(v, "message")));
}

/* ---- lines ---- */

static const struct {
	const char *type;
	void (*handle)(struct stream_json *s, const struct value *v, struct buf *out);
} kinds[] = {
	{"assistant", on_assistant},
	{"stream_event", on_stream_event},
	{"result", on_result},
	{"item.completed", on_item},
	{"turn.completed", on_turn_completed},
	{"turn.failed", on_turn_failed},
	{"error", on_error},
};

struct feed {
	struct stream_json *s;
	struct buf *out;
};

static int take_line(void *arg, struct text line, bool is_long)
{
	const struct feed *f = arg;
	struct stream_json *s = f->s;
	struct value *v;
	int r;

	if (is_long) {
		s->n_long++;
		return 0;
	}
	r = json_lines_read(&s->lines, line, &v);
	if (r < 0)
		return r;
	if (r > 0) {
		s->n_bad++;
		return 0;
	}
	s->n_known++;
	/* Said by a subagent. */
	if (value_text(value_find(v, "parent_tool_use_id")).data)
		return 0;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (is(v, "type", kinds[i].type))
			kinds[i].handle(s, v, f->out);
	}
	return f->out->err;
}

int stream_json_feed(struct stream_json *s, const char *data, size_t len, struct buf *out)
{
	struct feed f = {.s = s, .out = out};

	return json_lines_feed(&s->lines, data, len, take_line, &f);
}

int stream_json_finish(struct stream_json *s, struct buf *out)
{
	struct feed f = {.s = s, .out = out};

	return json_lines_finish(&s->lines, take_line, &f);
}
