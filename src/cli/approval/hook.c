#include "cli/approval/hook.h"

#include <errno.h>
#include <stdio.h>

#include "cli/kit/value.h"

enum { ARENA_MAX = 256 << 20 }; /* a value for every two bytes of the longest input */

/* ---- in ---- */

/* As deep as the reader's limit let the document become. */
static const struct value *copy_value(struct arena *a, const struct koine_value *from)
{
	struct value *v = arena_zalloc(a, sizeof(*v));
	struct value **link;
	size_t len;

	if (!v)
		return NULL;
	v->kind = (uint8_t)koine_value_kind(from);
	v->key = koine_value_key(from, &len);
	v->key_len = v->key ? (uint32_t)len : 0;
	v->raw = koine_value_raw(from, &len);
	v->raw_len = (uint32_t)len;
	if (v->kind == VALUE_STRING || v->kind == VALUE_NUMBER) {
		v->text = koine_value_text(from, &len);
		v->len = (uint32_t)len;
		return v;
	}
	v->len = (uint32_t)koine_value_count(from);
	link = &v->first;
	for (from = koine_value_first(from); from; from = koine_value_next(from)) {
		*link = (struct value *)copy_value(a, from);
		if (!*link)
			return NULL;
		link = &(*link)->next;
	}
	return v;
}

static const struct value *parse_inner(void *arg, struct text json)
{
	struct hook_input *in = arg;

	if (koine_doc_parse(json.data, json.len, &in->inner, NULL, 0) != 0)
		return NULL;
	return copy_value(&in->arena, koine_doc_root(in->inner));
}

int hook_input_read(struct hook_input *in, struct text text, const char *format, const char *agent,
		    struct why *why)
{
	struct hook_source from = {.text = text,
				   .format = format,
				   .agent = text_of(agent),
				   .parse = parse_inner,
				   .arg = in};
	int r;

	*in = (struct hook_input) {.doc = NULL};
	arena_init(&in->arena, ARENA_MAX);
	r = koine_doc_parse(text.data, text.len, &in->doc, why->text, sizeof(why->text));
	if (r == 0) {
		from.tree = copy_value(&in->arena, koine_doc_root(in->doc));
		r = from.tree ? 0 : -ENOMEM;
	}
	if (r < 0)
		snprintf(why->text, sizeof(why->text), "out of memory");
	return hook_read(&in->arena, &from, &in->hook, why);
}

void hook_input_done(struct hook_input *in)
{
	koine_doc_free(in->inner);
	koine_doc_free(in->doc);
	arena_done(&in->arena);
	in->inner = NULL;
	in->doc = NULL;
}

/* ---- out ---- */

/* What was read is written as it is read again: its keys may be anything. */
static void write_read(struct koine_json *j, const struct value *v)
{
	struct koine_doc *doc = NULL;

	if (koine_doc_parse(v->raw, v->raw_len, &doc, NULL, 0) == 0)
		koine_json_value(j, koine_doc_root(doc));
	else
		koine_json_null(j);
	koine_doc_free(doc);
}

static void write_children(struct koine_json *j, const struct value *v)
{
	value_each (child, v) {
		if (v->kind == VALUE_OBJECT)
			koine_json_key(j, child->key);
		hook_write_value(j, child);
	}
}

void hook_write_value(struct koine_json *j, const struct value *v)
{
	if (v->raw) {
		write_read(j, v);
		return;
	}
	switch ((enum value_kind)v->kind) {
	case VALUE_NULL:
		koine_json_null(j);
		break;
	case VALUE_FALSE:
	case VALUE_TRUE:
		koine_json_bool(j, v->kind == VALUE_TRUE);
		break;
	case VALUE_NUMBER:
		koine_json_raw(j, v->text, v->len);
		break;
	case VALUE_STRING:
		koine_json_text_n(j, v->text, v->len);
		break;
	case VALUE_ARRAY:
		koine_json_begin_array(j);
		write_children(j, v);
		koine_json_end_array(j);
		break;
	case VALUE_OBJECT:
		koine_json_begin_object(j);
		write_children(j, v);
		koine_json_end_object(j);
		break;
	}
}

static void add_text(struct koine_json *j, const char *key, struct text t)
{
	if (t.len == 0)
		return;
	koine_json_key(j, key);
	koine_json_text_n(j, t.data, t.len);
}

void hook_write_request(const struct hook *h, const struct hook_run *run, const char *id,
			int64_t timeout_ms, struct koine_json *j)
{
	struct hook_place place = hook_place(h, run);

	koine_json_begin_object(j);
	koine_json_key(j, "id");
	koine_json_string(j, id);
	add_text(j, "kind", h->kind);
	add_text(j, "tool", h->tool);
	if (h->input) {
		koine_json_key(j, "input");
		hook_write_value(j, h->input);
	}
	add_text(j, "session_id", place.session);
	add_text(j, "run_id", place.run);
	add_text(j, "origin", place.origin);
	add_text(j, "agent", h->agent);
	add_text(j, "tool_use_id", h->tool_use_id);
	if (h->by_rules) {
		koine_json_key(j, "by_rules");
		koine_json_bool(j, true);
	}
	if (timeout_ms > 0) {
		koine_json_key(j, "timeout");
		koine_json_double(j, (double)timeout_ms / 1000);
	}
	koine_json_end_object(j);
}

bool hook_write_answer(struct hook_input *in, const struct hook_outcome *o, struct koine_json *j)
{
	const struct value *said = NULL;

	if (hook_answer(&in->arena, &in->hook, o, &said) != 0 || !said)
		return false;
	hook_write_value(j, said);
	return true;
}
