#include "wire/gob/type.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "wire/gob/gob.h"

enum { DESCRIBE_DEPTH = 8, FIRST_TYPES = 8 };

/* ---- what every stream knows ---- */

#define NAME(s)                                                                                    \
	{                                                                                          \
		.data = (s), .len = sizeof(s) - 1                                                  \
	}
#define FIELDS(list) .fields = (list), .n_fields = sizeof(list) / sizeof((list)[0])

static const struct gob_field wire_fields[] = {
	{NAME("ArrayT"), 17},         {NAME("SliceT"), 19},      {NAME("StructT"), 20},
	{NAME("MapT"), 23},           {NAME("GobEncoderT"), 24}, {NAME("BinaryMarshalerT"), 24},
	{NAME("TextMarshalerT"), 24},
};
static const struct gob_field array_fields[] = {
	{NAME("CommonType"), 18},
	{NAME("Elem"), GOB_INT},
	{NAME("Len"), GOB_INT},
};
static const struct gob_field common_fields[] = {{NAME("Name"), GOB_STRING}, {NAME("Id"), GOB_INT}};
static const struct gob_field slice_fields[] = {{NAME("CommonType"), 18}, {NAME("Elem"), GOB_INT}};
static const struct gob_field struct_fields[] = {{NAME("CommonType"), 18}, {NAME("Field"), 22}};
static const struct gob_field field_fields[] = {{NAME("Name"), GOB_STRING}, {NAME("Id"), GOB_INT}};
static const struct gob_field map_fields[] = {
	{NAME("CommonType"), 18},
	{NAME("Key"), GOB_INT},
	{NAME("Elem"), GOB_INT},
};
static const struct gob_field opaque_fields[] = {{NAME("CommonType"), 18}};

static const struct gob_type builtin[] = {
	[1] = {.id = 1, .kind = GOB_BOOL, .name = NAME("bool")},
	[2] = {.id = 2, .kind = GOB_INT, .name = NAME("int")},
	[3] = {.id = 3, .kind = GOB_UINT, .name = NAME("uint")},
	[4] = {.id = 4, .kind = GOB_FLOAT, .name = NAME("float")},
	[5] = {.id = 5, .kind = GOB_BYTES, .name = NAME("bytes")},
	[6] = {.id = 6, .kind = GOB_STRING, .name = NAME("string")},
	[7] = {.id = 7, .kind = GOB_COMPLEX, .name = NAME("complex")},
	[8] = {.id = 8, .kind = GOB_INTERFACE, .name = NAME("interface")},
	[16] = {.id = 16, .kind = GOB_STRUCT, .name = NAME("wireType"), FIELDS(wire_fields)},
	[17] = {.id = 17, .kind = GOB_STRUCT, .name = NAME("arrayType"), FIELDS(array_fields)},
	[18] = {.id = 18, .kind = GOB_STRUCT, .name = NAME("CommonType"), FIELDS(common_fields)},
	[19] = {.id = 19, .kind = GOB_STRUCT, .name = NAME("sliceType"), FIELDS(slice_fields)},
	[20] = {.id = 20, .kind = GOB_STRUCT, .name = NAME("structType"), FIELDS(struct_fields)},
	[21] = {.id = 21, .kind = GOB_STRUCT, .name = NAME("fieldType"), FIELDS(field_fields)},
	[22] = {.id = 22, .kind = GOB_SLICE, .name = NAME("[]*gob.fieldType"), .elem = 21},
	[23] = {.id = 23, .kind = GOB_STRUCT, .name = NAME("mapType"), FIELDS(map_fields)},
	[24] = {.id = 24,
		.kind = GOB_STRUCT,
		.name = NAME("gobEncoderType"),
		FIELDS(opaque_fields)},
};

enum { N_BUILTIN = sizeof(builtin) / sizeof(builtin[0]) };

/* ---- the table ---- */

void gob_types_init(struct gob_types *t, const struct gob_limits *limits)
{
	*t = (struct gob_types) {.limits = *limits};
	arena_init(&t->arena, limits->type_bytes);
}

void gob_types_done(struct gob_types *t)
{
	arena_done(&t->arena);
	free(t->by_id);
	t->by_id = NULL;
	t->n = t->cap = 0;
}

/* The first that has this id or a larger one. */
static unsigned type_place_of(const struct gob_types *t, int64_t id)
{
	unsigned from = 0;
	unsigned to = t->n;

	while (from < to) {
		unsigned middle = from + (to - from) / 2;

		if (t->by_id[middle]->id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

const struct gob_type *gob_type_find(const struct gob_types *t, int64_t id)
{
	unsigned at;

	if (id < GOB_FIRST_ID)
		return id > 0 && id < N_BUILTIN && builtin[id].id != 0 ? &builtin[id] : NULL;
	at = type_place_of(t, id);
	return at < t->n && t->by_id[at]->id == id ? t->by_id[at] : NULL;
}

int gob_type_may_define(const struct gob_types *t, int64_t id, struct error *error)
{
	if (id < GOB_FIRST_ID || gob_type_find(t, id))
		return refuse(error, REFUSE_PARSE, "gob: duplicate type received");
	if (id > INT32_MAX)
		return refuse(error, REFUSE_PARSE, "gob: type id out of range");
	if (t->n >= t->limits.types)
		return refuse(error, REFUSE_TOO_LARGE, "gob: more than %u types", t->limits.types);
	return 0;
}

static int type_make_room(struct gob_types *t)
{
	unsigned cap = t->cap ? 2 * t->cap : FIRST_TYPES;
	struct gob_type **more;

	if (t->n < t->cap)
		return 0;
	more = realloc(t->by_id, cap * sizeof(struct gob_type *));
	if (!more)
		return -ENOMEM;
	t->by_id = more;
	t->cap = cap;
	return 0;
}

static void *type_keep(struct gob_types *t, size_t n, int *ret_error, struct error *error)
{
	void *p = arena_zalloc(&t->arena, n);

	if (!p && n > t->arena.max - t->arena.used)
		*ret_error =
			refuse(error, REFUSE_TOO_LARGE,
			       "gob: type definitions larger than %zu bytes", t->limits.type_bytes);
	else if (!p)
		*ret_error = -ENOMEM;
	return p;
}

/* ---- from a value to a type ---- */

static int keep_text(struct gob_types *t, struct text text, struct text *ret, struct error *error)
{
	char *copy;
	int r = 0;

	*ret = TEXT("");
	if (text.len == 0)
		return 0;
	copy = type_keep(t, text.len, &r, error);
	if (!copy)
		return r;
	memcpy(copy, text.data, text.len);
	*ret = (struct text) {.data = copy, .len = text.len};
	return 0;
}

/* 0 where it is missing; an id that no type can have is never found. */
static int32_t member_id(const struct value *v, const char *key)
{
	int64_t id = 0;

	value_int(value_find(v, key), &id);
	return id > 0 && id <= INT32_MAX ? (int32_t)id : 0;
}

static int read_fields(struct gob_types *t, const struct value *list, struct gob_type *type,
		       struct error *error)
{
	struct gob_field *fields, *at;
	int r = 0;

	if (!list || list->len == 0)
		return 0;
	if (list->len > t->limits.fields)
		return refuse(error, REFUSE_TOO_LARGE, "gob: type has more than %u fields",
			      t->limits.fields);
	fields = at = type_keep(t, list->len * sizeof(*fields), &r, error);
	if (!fields)
		return r;
	value_each (field, list) {
		at->id = member_id(field, "Id");
		r = keep_text(t, value_text(value_find(field, "Name")), &at->name, error);
		if (r != 0)
			return r;
		at++;
	}
	type->fields = fields;
	type->n_fields = list->len;
	return 0;
}

static const struct {
	const char *member;
	enum gob_kind kind;
} definitions[] = {
	{"ArrayT", GOB_ARRAY},          {"SliceT", GOB_SLICE},
	{"StructT", GOB_STRUCT},        {"MapT", GOB_MAP},
	{"GobEncoderT", GOB_OPAQUE},    {"BinaryMarshalerT", GOB_OPAQUE},
	{"TextMarshalerT", GOB_OPAQUE},
};

static enum gob_kind kind_of_member(const struct value *member)
{
	const struct text key = {.data = member->key, .len = member->key_len};

	for (size_t i = 0; i < sizeof(definitions) / sizeof(definitions[0]); i++)
		if (text_is(key, definitions[i].member))
			return definitions[i].kind;
	return 0;
}

static int type_fill(struct gob_types *t, const struct value *v, struct gob_type *type,
		     struct error *error)
{
	int64_t len = 0;
	int r;

	type->key = member_id(v, "Key");
	type->elem = member_id(v, "Elem");
	value_int(value_find(v, "Len"), &len);
	if (len < 0)
		return refuse(error, REFUSE_PARSE, "gob: array with a negative length");
	type->len = (uint64_t)len;
	r = keep_text(t, value_text(value_find(value_find(v, "CommonType"), "Name")), &type->name,
		      error);
	if (r == 0 && type->kind == GOB_STRUCT)
		r = read_fields(t, value_find(v, "Field"), type, error);
	return r;
}

int gob_type_define(struct gob_types *t, int64_t id, const struct value *wire, struct error *error)
{
	struct gob_type *type;
	unsigned at;
	int r = gob_type_may_define(t, id, error);

	if (r != 0)
		return r;
	if (wire->len != 1)
		return refuse(error, REFUSE_PARSE, "gob: a definition must define one type");
	r = type_make_room(t);
	if (r != 0)
		return r;
	type = type_keep(t, sizeof(*type), &r, error);
	if (!type)
		return r;
	type->id = (int32_t)id;
	type->kind = kind_of_member(wire->first);
	r = type_fill(t, wire->first, type, error);
	if (r != 0)
		return r;
	at = type_place_of(t, id);
	memmove(t->by_id + at + 1, t->by_id + at, (t->n - at) * sizeof(struct gob_type *));
	t->by_id[at] = type;
	t->n++;
	return 0;
}

/* ---- words ---- */

static void describe(const struct gob_types *t, int64_t id, struct buf *out, unsigned depth);

static void describe_struct(const struct gob_types *t, const struct gob_type *type, struct buf *out,
			    unsigned depth)
{
	buf_add(out, type->name.data, type->name.len);
	buf_add_str(out, " = struct { ");
	for (uint32_t i = 0; i < type->n_fields && out->err == 0; i++) {
		buf_add(out, type->fields[i].name.data, type->fields[i].name.len);
		buf_add_char(out, ' ');
		describe(t, type->fields[i].id, out, depth - 1);
		buf_add_str(out, "; ");
	}
	buf_add_char(out, '}');
}

static void describe(const struct gob_types *t, int64_t id, struct buf *out, unsigned depth)
{
	const struct gob_type *type = gob_type_find(t, id);

	if (!type || depth == 0) {
		buf_add_str(out, type ? "..." : "<nil>");
		return;
	}
	switch (type->kind) {
	case GOB_ARRAY:
		buf_printf(out, "[%llu]", (unsigned long long)type->len);
		describe(t, type->elem, out, depth - 1);
		break;
	case GOB_SLICE:
		buf_add_str(out, "[]");
		describe(t, type->elem, out, depth - 1);
		break;
	case GOB_MAP:
		buf_add_str(out, "map[");
		describe(t, type->key, out, depth - 1);
		buf_add_char(out, ']');
		describe(t, type->elem, out, depth - 1);
		break;
	case GOB_STRUCT:
		describe_struct(t, type, out, depth);
		break;
	case GOB_BOOL:
	case GOB_INT:
	case GOB_UINT:
	case GOB_FLOAT:
	case GOB_BYTES:
	case GOB_STRING:
	case GOB_COMPLEX:
	case GOB_INTERFACE:
	case GOB_OPAQUE:
		buf_add(out, type->name.data, type->name.len);
		break;
	}
}

void gob_type_describe(const struct gob_types *t, int64_t id, char *ret_text, size_t size)
{
	struct buf out;
	size_t n;

	/* Exceeding the maximum stops the walk, so that a wide or deep type costs little. */
	buf_init(&out, 2 * size);
	describe(t, id, &out, DESCRIBE_DEPTH);
	n = out.len < size ? out.len : size - 1;
	if (n > 0)
		memcpy(ret_text, out.data, n);
	ret_text[n] = '\0';
	buf_done(&out);
}

/* Shapes that everybody needs, and the limits for those who have none of their own. */

const struct gob_limits gob_default_limits = {
	.message = GOB_MESSAGE_MAX,
	.types = GOB_TYPES_MAX,
	.type_bytes = GOB_TYPE_BYTES_MAX,
	.fields = GOB_FIELDS_MAX,
	.depth = GOB_DEPTH_MAX,
	.values = GOB_VALUES_MAX,
};

const struct gob_shape gob_shape_bool = {.kind = GOB_BOOL, .name = "bool"};
const struct gob_shape gob_shape_int = {.kind = GOB_INT, .name = "int"};
const struct gob_shape gob_shape_int64 = {.kind = GOB_INT, .name = "int64"};
const struct gob_shape gob_shape_uint = {.kind = GOB_UINT, .name = "uint"};
const struct gob_shape gob_shape_uint64 = {.kind = GOB_UINT, .name = "uint64"};
const struct gob_shape gob_shape_float64 = {.kind = GOB_FLOAT, .name = "float64"};
const struct gob_shape gob_shape_string = {.kind = GOB_STRING, .name = "string"};
const struct gob_shape gob_shape_bytes = {.kind = GOB_BYTES, .name = "[]uint8"};
const struct gob_shape gob_shape_interface = {.kind = GOB_INTERFACE, .name = "interface {}"};

/* Go defines these two without a name when an interface holds them. */
const struct gob_shape gob_shape_any_map = {
	.kind = GOB_MAP,
	.name = "",
	.go = "map[string]interface {}",
	.key = &gob_shape_string,
	.elem = &gob_shape_interface,
};

const struct gob_shape gob_shape_any_slice = {
	.kind = GOB_SLICE,
	.name = "",
	.go = "[]interface {}",
	.elem = &gob_shape_interface,
};

const struct gob_shape gob_shape_empty_struct = {
	.kind = GOB_STRUCT,
	.name = "",
	.go = "struct {}",
};
