/* Lines into what was said; see transcript.h. */
#include "agent/transcript.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "agent/command/inner.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/error.h"

enum { JOINED_MAX = 2 * TRANSCRIPT_LINE_MAX }; /* notes are longer than what they stand for */

static const struct value no_input = {.kind = VALUE_OBJECT, .raw = "{}", .raw_len = 2};

void transcript_init(struct transcript *t, said_fn fn, void *arg)
{
	*t = (struct transcript) {.fn = fn, .arg = arg};
	json_lines_init(&t->lines, TRANSCRIPT_LINE_MAX);
}

void transcript_done(struct transcript *t)
{
	json_lines_done(&t->lines);
}

static struct text transcript_member(const struct value *object, const char *key)
{
	return value_text(value_find(object, key));
}

static bool is(const struct value *object, const char *key, const char *want)
{
	struct text t = transcript_member(object, key);

	return t.data && text_is(t, want);
}

static bool is_true(const struct value *object, const char *key)
{
	const struct value *v = value_find(object, key);

	return v && v->kind == VALUE_TRUE;
}

/* A string's text, the source of anything else; {NULL, 0} for null and nothing. */
static struct text text_or_source(const struct value *v)
{
	if (!v || v->kind == VALUE_NULL)
		return (struct text) {0};
	if (v->kind == VALUE_STRING)
		return value_text(v);
	return (struct text) {.data = v->raw, .len = v->raw_len};
}

static int transcript_notify(struct transcript *t, const struct said *s)
{
	return t->fn(t->arg, s);
}

/* ---- passed on as it is ---- */

static struct text transcript_cut(struct text t)
{
	if (t.len > TRANSCRIPT_RAW_MAX)
		t.len = utf8_whole(t.data, TRANSCRIPT_RAW_MAX);
	return t;
}

/* `s` says whose it is, as far as that is known. */
static int tell_raw(struct transcript *t, struct said *s, struct text line, bool is_long)
{
	CLEANUP(buf_donep) struct buf out;
	struct command_text text = {0};
	struct text head = transcript_cut(line);

	if (is_long && head.len == line.len)
		head.len = utf8_whole(head.data, head.len);
	else if (head.len == line.len && head.len > 0 && head.data[head.len - 1] == '\r')
		head.len--;
	buf_init(&out, 3 * TRANSCRIPT_RAW_MAX);
	command_text_feed(&text, head.data, head.len, &out);
	command_text_finish(&text, &out);
	if (out.err != 0)
		return out.err;
	t->n_bad++;
	s->kind = SAID_RAW;
	s->text = transcript_cut(buf_bytes(&out));
	return transcript_notify(t, s);
}

/* ---- messages ---- */

/* "[image]" for what has no text. */
static void add_piece(struct buf *out, const struct value *block)
{
	bool has_text = is(block, "type", "text");
	struct text text = value_text(has_text ? value_find(block, "text") : block);
	struct text type = transcript_member(block, "type");

	if (text.data) {
		buf_add(out, text.data, text.len);
		return;
	}
	buf_add_char(out, '[');
	if (type.len > 0)
		buf_add(out, type.data, type.len);
	else
		buf_add_str(out, "unknown");
	buf_add_char(out, ']');
}

/* Into `out`, where it is an array. */
static int transcript_join(const struct value *content, struct buf *out, struct text *ret_text)
{
	if (!content || content->kind != VALUE_ARRAY) {
		*ret_text = text_or_source(content);
		return 0;
	}
	value_each (block, content) {
		if (block != content->first)
			buf_add_char(out, '\n');
		add_piece(out, block);
	}
	*ret_text = buf_bytes(out);
	return out->err;
}

static int tell_tool_result(struct transcript *t, struct said *s, const struct value *block)
{
	CLEANUP(buf_donep) struct buf joined;
	int r;

	buf_init(&joined, JOINED_MAX);
	r = transcript_join(value_find(block, "content"), &joined, &s->text);
	if (r != 0)
		return r;
	if (!s->text.data)
		s->text = TEXT("");
	s->kind = SAID_TOOL_RESULT;
	s->tool_id = transcript_member(block, "tool_use_id");
	s->is_error = is_true(block, "is_error");
	return transcript_notify(t, s);
}

static int tell_text(struct transcript *t, struct said *s, enum said_kind kind, struct text text)
{
	if (text.len == 0)
		return 0;
	s->kind = kind;
	s->text = text;
	return transcript_notify(t, s);
}

/* A tool's input that is not an object is promised to nobody. */
static bool is_tool_call(const struct value *block)
{
	const struct value *input = value_find(block, "input");

	return is(block, "type", "tool_use") && transcript_member(block, "name").data &&
	       (!input || input->kind == VALUE_OBJECT);
}

static int tell_tool_call(struct transcript *t, struct said *s, const struct value *block)
{
	const struct value *input = value_find(block, "input");

	s->kind = SAID_TOOL_CALL;
	s->tool_id = transcript_member(block, "id");
	s->tool_name = transcript_member(block, "name");
	s->tool_input = input ? input : &no_input;
	return transcript_notify(t, s);
}

static int tell_block(struct transcript *t, const struct said *whose, const struct value *block)
{
	struct said s = *whose;

	if (is(block, "type", "text") && transcript_member(block, "text").data)
		return tell_text(t, &s, SAID_TEXT, transcript_member(block, "text"));
	if (is(block, "type", "thinking") && transcript_member(block, "thinking").data)
		return tell_text(t, &s, SAID_THINKING, transcript_member(block, "thinking"));
	if (is_tool_call(block))
		return tell_tool_call(t, &s, block);
	if (is(block, "type", "tool_result"))
		return tell_tool_result(t, &s, block);
	s.kind = SAID_RAW;
	s.text = transcript_cut((struct text) {.data = block->raw, .len = block->raw_len});
	return transcript_notify(t, &s);
}

static bool is_message(const struct value *v)
{
	const struct value *content = value_find(value_find(v, "message"), "content");

	return content && (content->kind == VALUE_STRING || content->kind == VALUE_ARRAY);
}

static int tell_message(struct transcript *t, struct said *s, const struct value *v)
{
	const struct value *message = value_find(v, "message");
	const struct value *content = value_find(message, "content");
	int r = 0;

	s->role = transcript_member(message, "role");
	if (!s->role.data)
		s->role = transcript_member(v, "type");
	s->model = transcript_member(message, "model");
	if (content->kind == VALUE_STRING)
		return tell_text(t, s, SAID_TEXT, value_text(content));
	for (const struct value *block = content->first; block && r == 0; block = block->next)
		r = tell_block(t, s, block);
	return r;
}

/* ---- the other lines ---- */

static int tell_system(struct transcript *t, struct said *s, const struct value *v)
{
	s->kind = SAID_SYSTEM;
	s->role = TEXT("system");
	s->subtype = transcript_member(v, "subtype");
	s->model = transcript_member(v, "model");
	s->text = text_or_source(value_find(v, "content"));
	return transcript_notify(t, s);
}

static double cost_of(const struct value *v)
{
	double cost;

	return value_double(value_find(v, "total_cost_usd"), &cost) && isfinite(cost) && cost >= 0
		       ? cost
		       : -1;
}

/* error: a text, or an object with a message; errors: texts. */
static int find_error(const struct value *v, const struct said *s, struct buf *joined,
		      struct text *ret_error)
{
	const struct value *error = value_find(v, "error");
	struct text text = transcript_member(error, "message");
	int r = 0;

	if (text.len == 0)
		text = text_or_source(error);
	if (text.len == 0)
		r = transcript_join(value_find(v, "errors"), joined, &text);
	if (text.len == 0 && s->is_error)
		text = s->text.len > 0 ? s->text : s->subtype;
	*ret_error = text.len > 0 ? text : (struct text) {0};
	return r;
}

static int tell_result(struct transcript *t, struct said *s, const struct value *v)
{
	CLEANUP(buf_donep) struct buf joined;
	struct agent_usage usage = AGENT_NO_USAGE;
	int r;

	buf_init(&joined, JOINED_MAX);
	claude_usage(value_find(v, "usage"), &usage);
	s->kind = SAID_RESULT;
	s->subtype = transcript_member(v, "subtype");
	s->text = text_or_source(value_find(v, "result"));
	s->is_error = claude_failed(v);
	s->cost_usd = cost_of(v);
	s->duration_ms = json_lines_count(v, "duration_ms");
	s->turns = json_lines_count(v, "num_turns");
	s->input_tokens = usage.input;
	s->output_tokens = usage.output;
	r = find_error(v, s, &joined, &s->error);
	return r != 0 ? r : transcript_notify(t, s);
}

/* The message comes whole once it is complete. */
static int pass_over(struct transcript *t, struct said *s, const struct value *v)
{
	return 0;
}

/* ---- lines ---- */

static const struct {
	const char *type;
	bool (*is_one)(const struct value *v); /* NULL: always */
	int (*tell)(struct transcript *t, struct said *s, const struct value *v);
} kinds[] = {
	{"assistant", is_message, tell_message}, {"user", is_message, tell_message},
	{"system", NULL, tell_system},           {"result", NULL, tell_result},
	{"stream_event", NULL, pass_over},
};

/* Reads the line as it is or, if that fails and mending changes anything, mended. */
static int transcript_read_line(struct transcript *t, struct text line, struct buf *mended,
				struct value **ret_value)
{
	struct command_text text = {0};
	int r = json_lines_read(&t->lines, line, ret_value);

	if (r <= 0)
		return r;
	command_text_feed(&text, line.data, line.len, mended);
	command_text_finish(&text, mended);
	if (mended->err != 0)
		return mended->err == -EMSGSIZE ? r : mended->err;
	mend_surrogates(mended->data, mended->len);
	if (text_equal(line, buf_bytes(mended)))
		return r;
	line = buf_bytes(mended);
	return json_lines_read(&t->lines, line, ret_value);
}

static int take_line(void *arg, struct text line, bool is_long)
{
	CLEANUP(buf_donep) struct buf mended;
	struct transcript *t = arg;
	struct value *v = NULL;
	struct said s = {.cost_usd = -1,
			 .duration_ms = -1,
			 .turns = -1,
			 .input_tokens = -1,
			 .output_tokens = -1};
	int r;

	t->n_lines++;
	buf_init(&mended, TRANSCRIPT_LINE_MAX);
	r = is_long ? REFUSE_TOO_LARGE : transcript_read_line(t, line, &mended, &v);
	if (r < 0)
		return r;
	s.session = transcript_member(v, "session_id");
	s.parent_tool = transcript_member(v, "parent_tool_use_id");
	for (size_t i = 0; r == 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (is(v, "type", kinds[i].type) && (!kinds[i].is_one || kinds[i].is_one(v)))
			return kinds[i].tell(t, &s, v);
	}
	return tell_raw(t, &s, line, is_long);
}

int transcript_feed(struct transcript *t, const char *data, size_t len)
{
	return json_lines_feed(&t->lines, data, len, take_line, t);
}

int transcript_finish(struct transcript *t)
{
	return json_lines_finish(&t->lines, take_line, t);
}
