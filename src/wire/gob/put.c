/* A tree of base/value, put into gob as a shape wants it. */
#include "wire/gob/encode.h"

/* ---- what has no shape but its own ---- */

static void put_any_object(struct gob_encoder *e, const struct value *v)
{
	gob_begin_interface(e, "map[string]interface {}", &gob_shape_any_map);
	gob_begin_map(e, v->len);
	value_each (child, v) {
		gob_text(e, (struct text) {.data = child->key, .len = child->key_len});
		gob_put_any(e, child);
	}
	gob_end_map(e);
	gob_end_interface(e);
}

static void put_any_array(struct gob_encoder *e, const struct value *v)
{
	gob_begin_interface(e, "[]interface {}", &gob_shape_any_slice);
	gob_begin_list(e, v->len);
	value_each (child, v)
		gob_put_any(e, child);
	gob_end_list(e);
	gob_end_interface(e);
}

static void put_any_number(struct gob_encoder *e, const struct value *v)
{
	int64_t n;
	double d = 0;

	if (value_int(v, &n)) {
		gob_begin_interface(e, "int", &gob_shape_int);
		gob_int(e, n);
	} else {
		value_double(v, &d);
		gob_begin_interface(e, "float64", &gob_shape_float64);
		gob_float(e, d);
	}
	gob_end_interface(e);
}

/* As deep as the tree, which its reader has bounded, and no deeper than the encoder goes. */
void gob_put_any(struct gob_encoder *e, const struct value *v)
{
	if (e->err != 0)
		return;
	switch ((enum value_kind)v->kind) {
	case VALUE_NULL:
		gob_nil(e);
		break;
	case VALUE_FALSE:
	case VALUE_TRUE:
		gob_begin_interface(e, "bool", &gob_shape_bool);
		gob_bool(e, v->kind == VALUE_TRUE);
		gob_end_interface(e);
		break;
	case VALUE_NUMBER:
		put_any_number(e, v);
		break;
	case VALUE_STRING:
		gob_begin_interface(e, "string", &gob_shape_string);
		gob_text(e, value_text(v));
		gob_end_interface(e);
		break;
	case VALUE_ARRAY:
		put_any_array(e, v);
		break;
	case VALUE_OBJECT:
		put_any_object(e, v);
		break;
	}
}

/* ---- what has ---- */

static int unfit(const struct gob_shape *shape, const struct value *v, struct error *error)
{
	char field[64] = "";

	if (v->key)
		memcpy(field, v->key, v->key_len < sizeof(field) ? v->key_len : sizeof(field) - 1);
	return refuse_field(error, field, "%s: expected %s, got %s", field[0] ? field : "value",
			    gob_shape_go(shape), value_kind_name(v));
}

static bool as_uint(const struct value *v, uint64_t *ret)
{
	uint64_t n = 0;

	if (v->kind != VALUE_NUMBER || v->len == 0)
		return false;
	for (uint32_t i = 0; i < v->len; i++) {
		unsigned digit = (unsigned)(v->text[i] - '0');

		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*ret = n;
	return true;
}

static int put_number(struct gob_encoder *e, const struct gob_shape *shape, const struct value *v,
		      struct error *error)
{
	uint64_t u;
	int64_t n;
	double d;

	if (shape->kind == GOB_INT && value_int(v, &n))
		gob_int(e, n);
	else if (shape->kind == GOB_UINT && as_uint(v, &u))
		gob_uint(e, u);
	else if (shape->kind == GOB_FLOAT && value_double(v, &d))
		gob_float(e, d);
	else
		return unfit(shape, v, error);
	return 0;
}

static int put_struct(struct gob_encoder *e, const struct gob_shape *shape, const struct value *v,
		      struct error *error)
{
	int r = 0;

	if (v->kind != VALUE_OBJECT)
		return unfit(shape, v, error);
	gob_begin_struct(e);
	for (unsigned i = 0; i < shape->n_fields && r == 0; i++) {
		const struct value *member = value_find(v, shape->fields[i].name);

		if (!member || member->kind == VALUE_NULL)
			continue;
		gob_field(e, i);
		r = gob_put(e, shape->fields[i].shape, member, error);
	}
	gob_end_struct(e);
	return r;
}

static int put_list(struct gob_encoder *e, const struct gob_shape *shape, const struct value *v,
		    struct error *error)
{
	int r = 0;

	if (v->kind != VALUE_ARRAY || (shape->kind == GOB_ARRAY && v->len != shape->len))
		return unfit(shape, v, error);
	gob_begin_list(e, v->len);
	for (const struct value *child = v->first; child && r == 0; child = child->next)
		r = gob_put(e, shape->elem, child, error);
	gob_end_list(e);
	return r;
}

/* Keys are strings in a tree; other kinds of keys are for those who push. */
static int put_map(struct gob_encoder *e, const struct gob_shape *shape, const struct value *v,
		   struct error *error)
{
	int r = 0;

	if (v->kind != VALUE_OBJECT || shape->key->kind != GOB_STRING)
		return unfit(shape, v, error);
	gob_begin_map(e, v->len);
	for (const struct value *child = v->first; child && r == 0; child = child->next) {
		gob_text(e, (struct text) {.data = child->key, .len = child->key_len});
		r = gob_put(e, shape->elem, child, error);
	}
	gob_end_map(e);
	return r;
}

/* null in a list is the zero of a leaf: in a list nothing can be left out. */
static const struct value *or_zero(const struct gob_shape *shape, const struct value *v)
{
	static const struct value zero_number = {.kind = VALUE_NUMBER, .text = "0", .len = 1};
	static const struct value zero_text = {.kind = VALUE_STRING, .text = "", .len = 0};
	static const struct value zero_bool = {.kind = VALUE_FALSE};
	static const struct value zero_list = {.kind = VALUE_ARRAY};
	static const struct value zero_object = {.kind = VALUE_OBJECT};

	if (v->kind != VALUE_NULL)
		return v;
	switch (shape->kind) {
	case GOB_BOOL:
		return &zero_bool;
	case GOB_INT:
	case GOB_UINT:
	case GOB_FLOAT:
		return &zero_number;
	case GOB_STRING:
	case GOB_BYTES:
		return &zero_text;
	case GOB_SLICE:
		return &zero_list;
	case GOB_MAP:
	case GOB_STRUCT:
		return &zero_object;
	case GOB_ARRAY:
	case GOB_COMPLEX:
	case GOB_OPAQUE:
	case GOB_INTERFACE:
		break;
	}
	return v;
}

int gob_put(struct gob_encoder *e, const struct gob_shape *shape, const struct value *v,
	    struct error *error)
{
	v = or_zero(shape, v);
	switch (shape->kind) {
	case GOB_BOOL:
		if (v->kind != VALUE_TRUE && v->kind != VALUE_FALSE)
			return unfit(shape, v, error);
		gob_bool(e, v->kind == VALUE_TRUE);
		return 0;
	case GOB_INT:
	case GOB_UINT:
	case GOB_FLOAT:
		return put_number(e, shape, v, error);
	case GOB_BYTES:
	case GOB_STRING:
	case GOB_OPAQUE:
		if (v->kind != VALUE_STRING)
			return unfit(shape, v, error);
		gob_text(e, value_text(v));
		return 0;
	case GOB_INTERFACE:
		gob_put_any(e, v);
		return 0;
	case GOB_ARRAY:
	case GOB_SLICE:
		return put_list(e, shape, v, error);
	case GOB_MAP:
		return put_map(e, shape, v, error);
	case GOB_STRUCT:
		return put_struct(e, shape, v, error);
	case GOB_COMPLEX:
		break;
	}
	return unfit(shape, v, error);
}
