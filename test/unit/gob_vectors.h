/* The byte streams in test/vectors/gob.json, and how a tree is compared with what they hold. */
#pragma once

#include "check.h"

#include "../gob_feed.h"

struct gob_vectors {
	struct arena arena;
	char *text;
	const struct value *list;
};

static inline void gob_vectors_read(struct gob_vectors *v)
{
	const char *path = getenv("KOINE_GOB_VECTORS");
	struct value *root;
	FILE *file;
	size_t n;

	assert_non_null(path);
	file = fopen(path, "r");
	assert_non_null(file);
	v->text = malloc(1 << 20);
	assert_non_null(v->text);
	n = fread(v->text, 1, 1 << 20, file);
	fclose(file);
	arena_init(&v->arena, 64 << 20);
	assert_int_equal(json_read(&v->arena, v->text, n, &json_default_limits, &root, NULL), 0);
	v->list = value_find(root, "vectors");
	assert_non_null(v->list);
}

static inline void gob_vectors_done(struct gob_vectors *v)
{
	arena_done(&v->arena);
	free(v->text);
}

static inline struct text gob_vector_name(const struct value *vector)
{
	return value_text(value_find(vector, "name"));
}

static inline bool gob_vector_is(const struct value *vector, const char *prefix)
{
	struct text name = gob_vector_name(vector);

	return name.len >= strlen(prefix) && memcmp(name.data, prefix, strlen(prefix)) == 0;
}

static inline const struct value *gob_vector_find(const struct gob_vectors *v, const char *name)
{
	value_each (vector, v->list) {
		if (text_is(gob_vector_name(vector), name))
			return vector;
	}
	fail_msg("no vector %s", name);
	return NULL;
}

static inline struct text gob_from_hex(struct arena *a, struct text hex)
{
	char *bytes = arena_alloc(a, hex.len / 2 + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i + 1 < hex.len; i += 2) {
		const char digits[] = {hex.data[i], hex.data[i + 1], '\0'};

		bytes[i / 2] = (char)strtol(digits, NULL, 16);
	}
	return (struct text) {.data = bytes, .len = hex.len / 2};
}

/* "hex" or "hex_go1_23"; {NULL, 0} where it has none. */
static inline struct text gob_vector_bytes(struct gob_vectors *v, const struct value *vector,
					   const char *member)
{
	const struct value *hex = value_find(vector, member);

	return hex ? gob_from_hex(&v->arena, value_text(hex)) : (struct text) {0};
}

/* ---- what is told, against what is in the tree ---- */

struct gob_compare {
	struct arena *arena;
	const struct gob_types *types;
};

static inline bool gob_same(const struct gob_compare *c, const struct value *want,
			    const struct value *got);

static inline bool gob_is_kind(const struct gob_compare *c, const struct value *got,
			       enum gob_kind kind)
{
	const struct gob_type *type = gob_type_find(c->types, gob_node_of(got)->type);

	return type && type->kind == kind;
}

static inline bool gob_same_hex(const struct gob_compare *c, const struct value *hex,
				const struct value *got, enum gob_kind kind)
{
	return gob_is_kind(c, got, kind) && got->kind == VALUE_STRING &&
	       text_equal(gob_from_hex(c->arena, value_text(hex)), value_text(got));
}

static inline bool gob_same_float(const struct gob_compare *c, const struct value *want,
				  const struct value *got)
{
	uint64_t bits, want_bits;
	double d;
	char text[20] = "";

	if (!gob_is_kind(c, got, GOB_FLOAT))
		return false;
	if (got->kind == VALUE_NULL)
		return text_equal(value_text(value_find(want, "$float")),
				  (struct text) {got->text, got->len});
	if (!value_double(got, &d))
		return false;
	memcpy(&bits, &d, sizeof(bits));
	memcpy(text, value_text(value_find(want, "bits")).data, 16);
	want_bits = strtoull(text, NULL, 16);
	return bits == want_bits;
}

static inline bool gob_same_map(const struct gob_compare *c, const struct value *pairs,
				const struct value *got)
{
	if (got->kind != VALUE_OBJECT || got->len != pairs->len || !gob_is_kind(c, got, GOB_MAP))
		return false;
	value_each (pair, pairs) {
		char key[100];

		/* a string's text, a number's source */
		snprintf(key, sizeof(key), "%.*s", (int)pair->first->len, pair->first->text);
		if (!value_find(got, key) || !gob_same(c, pair->first->next, value_find(got, key)))
			return false;
	}
	return true;
}

/* What a struct does not send because it is zero. */
static inline bool gob_is_zero(const struct value *want)
{
	const struct value *f = value_find(want, "$float");
	int64_t n;

	if (want->kind == VALUE_NUMBER)
		return value_int(want, &n) && n == 0;
	if (f)
		return text_is(value_text(f), "0");
	return want->kind == VALUE_NULL || want->kind == VALUE_FALSE ||
	       (want->kind != VALUE_TRUE && want->kind != VALUE_OBJECT && want->len == 0);
}

static inline bool gob_same_struct(const struct gob_compare *c, const struct value *want,
				   const struct value *got)
{
	uint32_t n_found = 0;

	if (got->kind != VALUE_OBJECT || !gob_is_kind(c, got, GOB_STRUCT))
		return false;
	value_each (member, want) {
		char key[100];
		const struct value *found;

		snprintf(key, sizeof(key), "%.*s", (int)member->key_len, member->key);
		found = value_find(got, key);
		if (found ? !gob_same(c, member, found) : !gob_is_zero(member))
			return false;
		n_found += found != NULL;
	}
	return n_found == got->len;
}

static inline bool gob_same_list(const struct gob_compare *c, const struct value *want,
				 const struct value *got)
{
	const struct value *at = got->first;

	if (got->kind != VALUE_ARRAY || got->len != want->len)
		return false;
	for (const struct value *w = want->first; w; w = w->next, at = at->next)
		if (!gob_same(c, w, at))
			return false;
	return true;
}

static inline bool gob_same_special(const struct gob_compare *c, const struct value *want,
				    const struct value *got)
{
	const struct value *first = want->first;
	const struct text word = {.data = first->key, .len = first->key_len};
	const struct gob_node *node = gob_node_of(got);

	if (text_is(word, "$iface"))
		return text_equal(value_text(first),
				  (struct text) {node->interface, node->interface_len}) &&
		       gob_same(c, first->next, got);
	if (text_is(word, "$map"))
		return gob_same_map(c, first, got);
	if (text_is(word, "$float"))
		return gob_same_float(c, want, got);
	if (text_is(word, "$complex"))
		return gob_is_kind(c, got, GOB_COMPLEX) && gob_same_list(c, first, got);
	if (text_is(word, "$bytes"))
		return gob_same_hex(c, first, got, GOB_BYTES);
	if (text_is(word, "$hex"))
		return gob_same_hex(c, first, got, GOB_STRING);
	if (text_is(word, "$gobencoder"))
		return gob_same_hex(c, first, got, GOB_OPAQUE);
	if (text_is(word, "$int") || text_is(word, "$uint"))
		return gob_is_kind(c, got, text_is(word, "$int") ? GOB_INT : GOB_UINT) &&
		       text_equal(value_text(first), (struct text) {got->text, got->len});
	return false;
}

static inline bool gob_same(const struct gob_compare *c, const struct value *want,
			    const struct value *got)
{
	const struct text wanted = {.data = want->text, .len = want->len};

	switch ((enum value_kind)want->kind) {
	case VALUE_NULL:
		return got->kind == VALUE_NULL && !got->text && !gob_node_of(got)->interface;
	case VALUE_FALSE:
	case VALUE_TRUE:
		return got->kind == want->kind;
	case VALUE_NUMBER:
		return got->kind == VALUE_NUMBER && !gob_is_kind(c, got, GOB_FLOAT) &&
		       text_equal(wanted, (struct text) {got->text, got->len});
	case VALUE_STRING:
		return gob_is_kind(c, got, GOB_STRING) && text_equal(wanted, value_text(got));
	case VALUE_ARRAY:
		return gob_same_list(c, want, got);
	case VALUE_OBJECT:
		break;
	}
	if (want->first && want->first->key[0] == '$')
		return gob_same_special(c, want, got);
	return gob_same_struct(c, want, got);
}
