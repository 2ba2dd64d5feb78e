/*
 * Types first, as Go compiles a decoder for a pair of types before it looks at a byte; then
 * the values, for numbers that are too large for a narrow type.
 *
 * The sender chooses its types, and they may be recursive, as may shapes: the walk counts its
 * steps. A pair that fits is remembered, since a client's calls are mostly alike.
 */
#include "wire/gob/type.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

enum { STEPS_MAX = 20000, LEVELS_MAX = GOB_DEPTH_MAX, DESCRIPTION = 120 };

struct fitting {
	const struct gob_types *types;
	struct error *error;
	unsigned steps;
	unsigned level;
};

/* False: none is left, or it is too deep. */
static bool take_step(struct fitting *f)
{
	return f->level < LEVELS_MAX && f->steps++ < STEPS_MAX;
}

/* ---- types ---- */

/* For a struct only whether it may be one: fit_struct looks at its fields. */
static bool is_compatible(struct fitting *f, const struct gob_shape *shape, int64_t id)
{
	const struct gob_type *type = gob_type_find(f->types, id);
	bool fits = false;

	if (!type)
		return shape->kind == GOB_STRUCT;
	if (shape->kind == GOB_STRUCT)
		return type->kind != GOB_OPAQUE;
	if (type->kind != shape->kind || !take_step(f))
		return false;
	f->level++;
	switch (shape->kind) {
	case GOB_ARRAY:
		fits = shape->len == type->len && is_compatible(f, shape->elem, type->elem);
		break;
	case GOB_SLICE:
		fits = is_compatible(f, shape->elem, type->elem);
		break;
	case GOB_MAP:
		fits = is_compatible(f, shape->key, type->key) &&
		       is_compatible(f, shape->elem, type->elem);
		break;
	case GOB_BOOL:
	case GOB_INT:
	case GOB_UINT:
	case GOB_FLOAT:
	case GOB_BYTES:
	case GOB_STRING:
	case GOB_COMPLEX:
	case GOB_INTERFACE:
	case GOB_STRUCT:
	case GOB_OPAQUE:
		fits = true;
		break;
	}
	f->level--;
	return fits;
}

static const struct gob_shape *expected_field(const struct gob_shape *shape, struct text name)
{
	for (unsigned i = 0; i < shape->n_fields; i++)
		if (text_is(name, shape->fields[i].name))
			return shape->fields[i].shape;
	return NULL;
}

static int fit_inner(struct fitting *f, int64_t id, const struct gob_shape *shape);

static int wrong_field(struct fitting *f, const struct gob_shape *want, const struct gob_type *type,
		       struct text name)
{
	char field[64];

	snprintf(field, sizeof(field), "%.*s", TEXT_ARGS(name));
	return refuse_field(f->error, field, "gob: wrong type (%s) for received field %.*s.%.*s",
			    gob_shape_go(want), TEXT_ARGS(type->name), TEXT_ARGS(name));
}

static int fit_struct(struct fitting *f, int64_t id, const struct gob_shape *shape,
		      unsigned *ret_matched)
{
	const struct gob_type *type = gob_type_find(f->types, id);
	int r = 0;

	if (!type)
		return refuse(f->error, REFUSE_PARAMS, "gob: unknown type id or corrupted data");
	if (type->kind != GOB_STRUCT)
		return refuse(f->error, REFUSE_PARAMS,
			      "gob: type mismatch in decoder: want struct type %s; got non-struct",
			      gob_shape_go(shape));
	for (uint32_t i = 0; i < type->n_fields && r == 0; i++) {
		const struct gob_field *field = &type->fields[i];
		const struct gob_shape *want = expected_field(shape, field->name);

		if (field->name.len == 0)
			return refuse(f->error, REFUSE_PARAMS,
				      "gob: empty name for remote field of type %.*s",
				      TEXT_ARGS(type->name));
		if (!want)
			continue;
		if (!is_compatible(f, want, field->id))
			return wrong_field(f, want, type, field->name);
		r = fit_inner(f, field->id, want);
		++*ret_matched;
	}
	return r;
}

/* Structs inside what is known to be compatible. */
static int fit_below(struct fitting *f, int64_t id, const struct gob_shape *shape)
{
	const struct gob_type *type;
	unsigned matched = 0;
	int r;

	if (shape->kind == GOB_STRUCT)
		return fit_struct(f, id, shape, &matched);
	type = gob_type_find(f->types, id);
	if (!type || !shape->elem)
		return 0;
	r = shape->kind == GOB_MAP ? fit_inner(f, type->key, shape->key) : 0;
	return r != 0 ? r : fit_inner(f, type->elem, shape->elem);
}

static int fit_inner(struct fitting *f, int64_t id, const struct gob_shape *shape)
{
	int r;

	if (shape->kind != GOB_STRUCT && !shape->elem)
		return 0;
	if (!take_step(f))
		return refuse(f->error, REFUSE_PARAMS, "gob: invalid nesting depth");
	f->level++;
	r = fit_below(f, id, shape);
	f->level--;
	return r;
}

static int fit_top(struct fitting *f, const struct gob_type *type, const struct gob_shape *shape)
{
	char received[DESCRIPTION];
	unsigned matched = 0;
	int r;

	if (shape->kind == GOB_STRUCT) {
		r = fit_struct(f, type->id, shape, &matched);
		if (r == 0 && matched == 0 && shape->n_fields > 0 && type->n_fields > 0)
			r = refuse(f->error, REFUSE_PARAMS,
				   "gob: type mismatch: no fields matched compiling decoder for %s",
				   shape->name);
		return r;
	}
	if (is_compatible(f, shape, type->id))
		return fit_inner(f, type->id, shape);
	gob_type_describe(f->types, type->id, received, sizeof(received));
	if (shape->kind == GOB_INTERFACE)
		return refuse(f->error, REFUSE_PARAMS,
			      "gob: local interface type %s can only be decoded from remote "
			      "interface type; received concrete type %s",
			      gob_shape_go(shape), received);
	return refuse(f->error, REFUSE_PARAMS,
		      "gob: decoding into local type %s, received remote type %s",
		      gob_shape_go(shape), received);
}

/* ---- values ---- */

static bool int_fits(const struct value *v, unsigned bits)
{
	int64_t n = 0;

	if (bits == 0 || bits >= 64)
		return true;
	return value_int(v, &n) && n >= -((int64_t)1 << (bits - 1)) && n < (int64_t)1 << (bits - 1);
}

static bool uint_fits(const struct value *v, unsigned bits)
{
	int64_t n = 0;

	if (bits == 0 || bits >= 64)
		return true;
	return value_int(v, &n) && n < (int64_t)1 << bits;
}

static bool float_fits(const struct value *v, unsigned bits)
{
	double d = 0;

	/* a number that is not finite is so in any width */
	if (bits != 32 || v->kind != VALUE_NUMBER)
		return true;
	return value_double(v, &d) && fabs(d) <= FLT_MAX;
}

static bool number_fits(const struct value *v, const struct gob_shape *shape)
{
	if (shape->kind == GOB_INT)
		return int_fits(v, shape->bits);
	if (shape->kind == GOB_UINT)
		return uint_fits(v, shape->bits);
	return shape->kind != GOB_FLOAT || float_fits(v, shape->bits);
}

/* "Limit", or "element of Limit": Go's words. */
static int out_of_range(struct error *error, const char *of, struct text name)
{
	char field[64];

	snprintf(field, sizeof(field), "%.*s", TEXT_ARGS(name));
	return refuse_field(error, field, "value for \"%s%.*s\" out of range", of, TEXT_ARGS(name));
}

/* As deep as the decoder's limit let the tree become. */
static int fit_values(const struct value *v, const struct gob_shape *shape, const char *of,
		      struct text name, struct error *error)
{
	int r = 0;

	if (!number_fits(v, shape))
		return out_of_range(error, of, name);
	if ((shape->kind != GOB_STRUCT && !shape->elem) ||
	    (v->kind != VALUE_ARRAY && v->kind != VALUE_OBJECT))
		return 0;
	for (const struct value *child = v->first; child && r == 0; child = child->next) {
		const struct text key = {.data = child->key, .len = child->key_len};

		if (shape->kind != GOB_STRUCT)
			r = fit_values(child, shape->elem, "element of ", name, error);
		else if (expected_field(shape, key))
			r = fit_values(child, expected_field(shape, key), "", key, error);
	}
	return r;
}

/* ---- both ---- */

int gob_fit(struct gob_types *t, const struct gob_type *type, const struct value *value,
	    const struct gob_shape *shape, struct error *error)
{
	struct fitting f = {.types = t, .error = error};
	unsigned slot = ((unsigned)type->id ^ (unsigned)((uintptr_t)shape >> 4)) % GOB_FITS;
	int r;

	if (t->fits[slot].type != type || t->fits[slot].shape != shape) {
		r = fit_top(&f, type, shape);
		if (r != 0)
			return r;
		t->fits[slot].type = type;
		t->fits[slot].shape = shape;
	}
	return fit_values(value, shape, "", text_of(gob_shape_go(shape)), error);
}
