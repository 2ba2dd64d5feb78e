#include "hook/make.h"

#include <errno.h>

/* The trees are small: the last child is looked for. */
static struct value *add(struct maker *m, struct value *into, const char *key, struct value v)
{
	struct value *made = arena_alloc(m->arena, sizeof(*made));
	struct value **link = into ? &into->first : NULL;

	if (!made) {
		m->err = -ENOMEM;
		return NULL;
	}
	*made = v;
	made->key = key;
	made->key_len = key ? (uint32_t)strlen(key) : 0;
	made->next = NULL;
	if (!into)
		return made;
	while (*link)
		link = &(*link)->next;
	*link = made;
	into->len++;
	return made;
}

struct value *make_object(struct maker *m, struct value *into, const char *key)
{
	return add(m, into, key, (struct value) {.kind = VALUE_OBJECT});
}

struct value *make_array(struct maker *m, struct value *into, const char *key)
{
	return add(m, into, key, (struct value) {.kind = VALUE_ARRAY});
}

struct value *make_text(struct maker *m, struct value *into, const char *key, struct text t)
{
	return add(m, into, key,
		   (struct value) {.kind = VALUE_STRING,
				   .text = t.data ? t.data : "",
				   .len = (uint32_t)t.len});
}

struct value *make_word(struct maker *m, struct value *into, const char *key, const char *word)
{
	return make_text(m, into, key, text_of(word));
}

struct value *make_number(struct maker *m, struct value *into, const char *key, struct text t)
{
	return add(m, into, key,
		   (struct value) {.kind = VALUE_NUMBER, .text = t.data, .len = (uint32_t)t.len});
}

struct value *make_bool(struct maker *m, struct value *into, const char *key, bool b)
{
	return add(m, into, key, (struct value) {.kind = b ? VALUE_TRUE : VALUE_FALSE});
}

struct value *make_null(struct maker *m, struct value *into, const char *key)
{
	return add(m, into, key, (struct value) {.kind = VALUE_NULL});
}

struct value *make_same(struct maker *m, struct value *into, const char *key, const struct value *v)
{
	return add(m, into, key, *v);
}
