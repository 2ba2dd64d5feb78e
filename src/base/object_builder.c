#include "base/object_builder.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void object_begin(struct object_builder *r, struct arena *a)
{
	*r = (struct object_builder) {.arena = a, .root = arena_zalloc(a, sizeof(*r->root))};
	if (r->root)
		r->root->kind = VALUE_OBJECT;
	else
		r->err = -ENOMEM;
}

void object_go_on(struct object_builder *r, struct arena *a, struct value *object)
{
	*r = (struct object_builder) {.arena = a, .root = object};
	for (struct value *v = object->first; v; v = v->next)
		r->last = v;
}

/* One more member, for the caller to fill; NULL after a fault. */
static struct value *object_builder_add(struct object_builder *r, const char *key,
					enum value_kind kind)
{
	struct value *v;

	if (r->err != 0)
		return NULL;
	v = arena_alloc(r->arena, sizeof(*v));
	if (!v) {
		r->err = -ENOMEM;
		return NULL;
	}
	*v = (struct value) {
		.kind = (uint8_t)kind, .key = key, .key_len = key ? (uint32_t)strlen(key) : 0};
	if (r->last)
		r->last->next = v;
	else
		r->root->first = v;
	r->last = v;
	r->root->len++;
	return v;
}

static void add_bytes(struct object_builder *r, const char *key, enum value_kind kind,
		      const char *data, size_t len)
{
	char *copy = NULL;
	struct value *v;

	if (r->err != 0)
		return;
	if (len <= UINT32_MAX)
		copy = arena_copy(r->arena, data, len);
	if (!copy) {
		r->err = -ENOMEM;
		return;
	}
	v = object_builder_add(r, key, kind);
	if (!v)
		return;
	v->text = copy;
	v->len = (uint32_t)len;
}

void object_text(struct object_builder *r, const char *key, struct text t)
{
	if (t.data)
		add_bytes(r, key, VALUE_STRING, t.data, t.len);
	else
		object_null(r, key);
}

void object_int(struct object_builder *r, const char *key, int64_t n)
{
	char text[24];
	int len = snprintf(text, sizeof(text), "%" PRId64, n);

	add_bytes(r, key, VALUE_NUMBER, text, (size_t)len);
}

void object_double(struct object_builder *r, const char *key, double d)
{
	char text[VALUE_DOUBLE_MAX];

	if (isfinite(d))
		add_bytes(r, key, VALUE_NUMBER, text, value_format_double(text, d));
	else
		object_null(r, key);
}

void object_bool(struct object_builder *r, const char *key, bool b)
{
	object_builder_add(r, key, b ? VALUE_TRUE : VALUE_FALSE);
}

void object_null(struct object_builder *r, const char *key)
{
	object_builder_add(r, key, VALUE_NULL);
}

/* Its first node is copied, since the key and the siblings differ; the rest is shared. */
void object_value(struct object_builder *r, const char *key, const struct value *v)
{
	struct value *copy = object_builder_add(r, key, VALUE_NULL);

	if (!copy || !v)
		return;
	copy->kind = v->kind;
	copy->len = v->len;
	copy->raw = v->raw;
	copy->raw_len = v->raw_len;
	if (v->kind == VALUE_ARRAY || v->kind == VALUE_OBJECT)
		copy->first = v->first;
	else
		copy->text = v->text;
}

struct object_builder object_list(struct object_builder *r, const char *key)
{
	struct value *list = object_builder_add(r, key, VALUE_ARRAY);

	return (struct object_builder) {.arena = r->arena, .root = list, .err = r->err};
}
