/*
 * Values and documents of <koine/koine.h>. A struct koine_value is a struct
 * value of base/value.h seen from outside; nothing is copied on the way.
 */
#include "lib/value_api.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"

_Static_assert((int)KOINE_NULL == (int)VALUE_NULL && (int)KOINE_FALSE == (int)VALUE_FALSE &&
		       (int)KOINE_TRUE == (int)VALUE_TRUE &&
		       (int)KOINE_NUMBER == (int)VALUE_NUMBER &&
		       (int)KOINE_STRING == (int)VALUE_STRING &&
		       (int)KOINE_ARRAY == (int)VALUE_ARRAY &&
		       (int)KOINE_OBJECT == (int)VALUE_OBJECT,
	       "kinds are passed through unchanged");
_Static_assert((int)KOINE_PARSE == (int)REFUSE_PARSE && (int)KOINE_STOPPING == (int)REFUSE_STOPPING,
	       "refusals are passed through unchanged");

/* Answers wrap what others were allowed to send: deeper than any one of them may be. */
static const struct json_limits limits = {
	.depth = JSON_DEPTH_MAX,
	.values = JSON_VALUES_DEFAULT,
};

/* The arena's own blocks, and texts that had to be unescaped. */
enum { ARENA_SLACK = 4 << 20 };

int doc_read(struct koine_doc *doc, const char *text, size_t len, struct error *error)
{
	char *copy;
	int r;

	if (len > UINT32_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "the JSON text is too long (%zu bytes)",
			      len);
	arena_init(&doc->arena,
		   3 * len + ARENA_SLACK + (size_t)JSON_VALUES_DEFAULT * sizeof(struct value) * 2);
	copy = arena_copy(&doc->arena, text, len);
	r = copy ? json_read(&doc->arena, copy, len, &limits, &doc->root, error) : -ENOMEM;
	if (r != 0)
		doc_done(doc);
	return r;
}

void doc_done(struct koine_doc *doc)
{
	arena_done(&doc->arena);
	doc->root = NULL;
}

int koine_doc_parse(const char *text, size_t len, struct koine_doc **ret_doc, char *error,
		    size_t error_size)
{
	CLEANUP(freep) struct koine_doc *doc = calloc(1, sizeof(*doc));
	struct error refused = {0};
	int r;

	if (!doc)
		return -ENOMEM;
	r = doc_read(doc, text, len, &refused);
	if (r > 0 && error && error_size > 0)
		snprintf(error, error_size, "%s", refused.text);
	if (r != 0)
		return r;
	*ret_doc = TAKE(doc);
	return 0;
}

void koine_doc_free(struct koine_doc *doc)
{
	if (!doc)
		return;
	doc_done(doc);
	free(doc);
}

const struct koine_value *koine_doc_root(const struct koine_doc *doc)
{
	return doc ? value_public(doc->root) : NULL;
}

static bool has_children(const struct value *v)
{
	return v && (v->kind == VALUE_ARRAY || v->kind == VALUE_OBJECT);
}

enum koine_kind koine_value_kind(const struct koine_value *v)
{
	return v ? (enum koine_kind)value_inner(v)->kind : KOINE_NULL;
}

const struct koine_value *koine_value_get(const struct koine_value *v, const char *key)
{
	return value_public(value_find(value_inner(v), key));
}

size_t koine_value_count(const struct koine_value *v)
{
	return has_children(value_inner(v)) ? value_inner(v)->len : 0;
}

const struct koine_value *koine_value_first(const struct koine_value *v)
{
	return has_children(value_inner(v)) ? value_public(value_inner(v)->first) : NULL;
}

const struct koine_value *koine_value_next(const struct koine_value *v)
{
	return v ? value_public(value_inner(v)->next) : NULL;
}

static const char *with_len(const char *text, size_t len, size_t *ret_len)
{
	if (ret_len)
		*ret_len = text ? len : 0;
	return text;
}

const char *koine_value_key(const struct koine_value *v, size_t *ret_len)
{
	const struct value *inner = value_inner(v);

	return inner ? with_len(inner->key, inner->key_len, ret_len) : with_len(NULL, 0, ret_len);
}

const char *koine_value_text(const struct koine_value *v, size_t *ret_len)
{
	const struct value *inner = value_inner(v);

	if (!inner || (inner->kind != VALUE_STRING && inner->kind != VALUE_NUMBER))
		return with_len(NULL, 0, ret_len);
	return with_len(inner->text, inner->len, ret_len);
}

const char *koine_value_raw(const struct koine_value *v, size_t *ret_len)
{
	const struct value *inner = value_inner(v);

	return inner ? with_len(inner->raw, inner->raw_len, ret_len) : with_len(NULL, 0, ret_len);
}

bool koine_value_int(const struct koine_value *v, int64_t *ret)
{
	return value_int(value_inner(v), ret);
}

bool koine_value_double(const struct koine_value *v, double *ret)
{
	double d;

	if (!value_double(value_inner(v), &d) || !isfinite(d))
		return false;
	*ret = d;
	return true;
}

bool koine_value_bool(const struct koine_value *v, bool *ret)
{
	enum koine_kind kind = koine_value_kind(v);

	if (kind != KOINE_TRUE && kind != KOINE_FALSE)
		return false;
	*ret = kind == KOINE_TRUE;
	return true;
}

/* Writing JSON, as <koine/koine.h> has it: wire/json under public names. */

/* Four times the largest message of any dialect. */
enum { TEXT_MAX = 64 << 20 };

int koine_json_new(struct koine_json **ret_json)
{
	struct koine_json *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	buf_init(&j->own, TEXT_MAX);
	j->out = &j->own;
	j->json = json_writer(j->out);
	*ret_json = j;
	return 0;
}

void koine_json_free(struct koine_json *j)
{
	if (!j)
		return;
	buf_done(&j->own);
	free(j);
}

const char *koine_json_text(struct koine_json *j, size_t *ret_len)
{
	if (buf_reserve(j->out, 1) != 0)
		return NULL;
	j->out->data[j->out->len] = '\0';
	if (ret_len)
		*ret_len = j->out->len;
	return j->out->data;
}

void koine_json_begin_object(struct koine_json *j)
{
	json_begin_object(&j->json);
}

void koine_json_end_object(struct koine_json *j)
{
	json_end_object(&j->json);
}

void koine_json_begin_array(struct koine_json *j)
{
	json_begin_array(&j->json);
}

void koine_json_end_array(struct koine_json *j)
{
	json_end_array(&j->json);
}

void koine_json_key(struct koine_json *j, const char *key)
{
	json_key(&j->json, key);
}

void koine_json_null(struct koine_json *j)
{
	json_null(&j->json);
}

void koine_json_bool(struct koine_json *j, bool b)
{
	json_bool(&j->json, b);
}

void koine_json_int(struct koine_json *j, int64_t n)
{
	json_int(&j->json, n);
}

void koine_json_double(struct koine_json *j, double d)
{
	json_double(&j->json, d);
}

void koine_json_string(struct koine_json *j, const char *s)
{
	json_str(&j->json, s);
}

void koine_json_text_n(struct koine_json *j, const char *s, size_t len)
{
	/* An empty text may come as NULL; it is not null. */
	json_text(&j->json, (struct text) {.data = s ? s : "", .len = s ? len : 0});
}

void koine_json_raw(struct koine_json *j, const char *json, size_t len)
{
	json_raw(&j->json, json, len);
}

void koine_json_value(struct koine_json *j, const struct koine_value *v)
{
	json_value(&j->json, (const struct value *)v);
}
