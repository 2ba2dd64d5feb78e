/*
 * Definitions and the value grow separately, so that definitions can precede the value however
 * late they are needed. Counts are inserted before what they count when it has ended.
 */
#include "wire/gob/encode.h"

#include <errno.h>
#include <stdlib.h>

enum { KEEP = 1024, FIRST_LEVELS = 8, LEVELS_MAX = 4 * GOB_DEPTH_MAX };

struct gob_level {
	const struct gob_shape *shape; /* GOB_INTERFACE: the shape of what it holds */
	enum gob_kind kind;
	uint32_t next_field; /* of a struct: the lowest field that may come */
	uint32_t field;      /* of a struct: the field that comes, plus 1; 0: none */
	uint64_t left;       /* values still to come */
	size_t start;        /* of an interface: where its value begins */
};

void gob_encoder_init(struct gob_encoder *e, size_t max)
{
	*e = (struct gob_encoder) {.max = max, .known.last_id = GOB_FIRST_ID};
	buf_init(&e->definitions, GOB_TYPE_BYTES_MAX);
	buf_init(&e->value, max);
}

void gob_encoder_done(struct gob_encoder *e)
{
	buf_done(&e->definitions);
	buf_done(&e->value);
	free(e->sent);
	free(e->levels);
	e->sent = NULL;
	e->levels = NULL;
}

/* ---- the value as a whole ---- */

void gob_give_up(struct gob_encoder *e)
{
	if (!e->is_open)
		return;
	e->is_open = false;
	e->known = e->kept;
	buf_trim(&e->definitions, KEEP);
	buf_trim(&e->value, KEEP);
}

void gob_take_back(struct gob_encoder *e, struct gob_mark since)
{
	gob_give_up(e);
	e->known = since;
}

void gob_begin(struct gob_encoder *e, const struct gob_shape *shape)
{
	gob_give_up(e);
	e->is_open = true;
	e->err = 0;
	e->top = shape;
	e->has_value = false;
	e->n_levels = 0;
	e->kept = e->known;
	gob_add_int(&e->value, gob_need_type(e, shape));
	if (shape->kind != GOB_STRUCT)
		gob_add_uint(&e->value, 0);
}

static int sum_of_errors(struct gob_encoder *e, const struct buf *out)
{
	if (!e->has_value || e->n_levels > 0)
		gob_fail(e, -EINVAL);
	gob_fail(e, e->definitions.err);
	gob_fail(e, e->value.err);
	gob_fail(e, out->err);
	return e->err;
}

int gob_end(struct gob_encoder *e, struct buf *out)
{
	size_t before = out->len;

	if (e->value.len > e->max)
		gob_fail(e, -EMSGSIZE);
	buf_add(out, e->definitions.data, e->definitions.len);
	gob_add_uint(out, e->value.len);
	buf_add(out, e->value.data, e->value.len);
	if (sum_of_errors(e, out) != 0)
		out->len = before;
	else
		e->kept = e->known;
	gob_give_up(e);
	return e->err;
}

/* ---- what is pushed ---- */

static struct gob_level *innermost(const struct gob_encoder *e)
{
	return e->n_levels > 0 ? &e->levels[e->n_levels - 1] : NULL;
}

static const struct gob_shape *shape_of_next(const struct gob_encoder *e, const struct gob_level *l)
{
	if (!l)
		return e->has_value ? NULL : e->top;
	if (l->kind == GOB_STRUCT)
		return l->field ? l->shape->fields[l->field - 1].shape : NULL;
	if (l->left == 0)
		return NULL;
	if (l->kind == GOB_INTERFACE)
		return l->shape;
	return l->kind == GOB_MAP && l->left % 2 == 0 ? l->shape->key : l->shape->elem;
}

/* Takes the place of the next value. False: nothing is to be written for it. */
static bool take_place(struct gob_encoder *e, struct gob_level *l, bool is_zero)
{
	if (!l) {
		e->has_value = true;
		return true;
	}
	if (l->kind != GOB_STRUCT) {
		l->left--;
		return true;
	}
	if (!is_zero) {
		gob_add_uint(&e->value, l->field - l->next_field);
		l->next_field = l->field;
	}
	l->field = 0;
	return !is_zero;
}

static bool is_one_of(const struct gob_shape *shape, unsigned kinds)
{
	return shape && (kinds >> shape->kind & 1);
}

/* The shape of what comes next, if it is one of these kinds and is to be written. */
static const struct gob_shape *place(struct gob_encoder *e, unsigned kinds, bool is_zero)
{
	struct gob_level *l = innermost(e);
	const struct gob_shape *shape;

	if (e->err != 0)
		return NULL;
	shape = shape_of_next(e, l);
	if (!is_one_of(shape, kinds)) {
		gob_fail(e, -EINVAL);
		return NULL;
	}
	return take_place(e, l, is_zero) ? shape : NULL;
}

static void push_uint(struct gob_encoder *e, enum gob_kind kind, uint64_t n)
{
	if (place(e, 1u << kind, n == 0))
		gob_add_uint(&e->value, n);
}

void gob_bool(struct gob_encoder *e, bool b)
{
	push_uint(e, GOB_BOOL, b);
}

void gob_int(struct gob_encoder *e, int64_t n)
{
	push_uint(e, GOB_INT, gob_int_to_uint(n));
}

void gob_uint(struct gob_encoder *e, uint64_t n)
{
	push_uint(e, GOB_UINT, n);
}

void gob_float(struct gob_encoder *e, double d)
{
	push_uint(e, GOB_FLOAT, gob_double_to_uint(d));
}

void gob_complex(struct gob_encoder *e, double re, double im)
{
	uint64_t first = gob_double_to_uint(re);
	uint64_t second = gob_double_to_uint(im);

	if (place(e, 1u << GOB_COMPLEX, first == 0 && second == 0)) {
		gob_add_uint(&e->value, first);
		gob_add_uint(&e->value, second);
	}
}

void gob_text(struct gob_encoder *e, struct text t)
{
	if (place(e, 1u << GOB_STRING | 1u << GOB_BYTES | 1u << GOB_OPAQUE, t.len == 0)) {
		gob_add_uint(&e->value, t.len);
		buf_add(&e->value, t.data, t.len);
	}
}

/* ---- what has a beginning and an end ---- */

static struct gob_level *push(struct gob_encoder *e, const struct gob_shape *shape,
			      enum gob_kind kind, uint64_t n)
{
	if (e->err == 0 && e->n_levels >= LEVELS_MAX)
		gob_fail(e, -EMSGSIZE);
	if (e->err == 0 && e->n_levels == e->cap_levels) {
		unsigned cap = e->cap_levels ? 2 * e->cap_levels : FIRST_LEVELS;
		struct gob_level *more = realloc(e->levels, cap * sizeof(*more));

		if (more) {
			e->levels = more;
			e->cap_levels = cap;
		} else {
			gob_fail(e, -ENOMEM);
		}
	}
	if (e->err != 0)
		return NULL;
	e->levels[e->n_levels] = (struct gob_level) {.shape = shape, .kind = kind, .left = n};
	return &e->levels[e->n_levels++];
}

/* The level that ends, if it is complete; NULL if it is not of these kinds. */
static struct gob_level *pop(struct gob_encoder *e, unsigned kinds)
{
	struct gob_level *l = innermost(e);

	if (e->err != 0)
		return NULL;
	if (!l || !(kinds >> l->kind & 1) || l->left > 0) {
		gob_fail(e, -EINVAL);
		return NULL;
	}
	e->n_levels--;
	return l;
}

void gob_begin_struct(struct gob_encoder *e)
{
	const struct gob_shape *shape = place(e, 1u << GOB_STRUCT, false);

	if (shape)
		push(e, shape, GOB_STRUCT, 0);
}

void gob_field(struct gob_encoder *e, unsigned i)
{
	struct gob_level *l = innermost(e);

	if (e->err != 0)
		return;
	if (!l || l->kind != GOB_STRUCT || i >= l->shape->n_fields || i < l->next_field)
		gob_fail(e, -EINVAL);
	else
		l->field = i + 1;
}

void gob_end_struct(struct gob_encoder *e)
{
	if (pop(e, 1u << GOB_STRUCT))
		gob_add_uint(&e->value, 0);
}

void gob_begin_list(struct gob_encoder *e, uint64_t n)
{
	const struct gob_level *l = innermost(e);
	const struct gob_shape *shape = e->err == 0 ? shape_of_next(e, l) : NULL;
	bool is_array = shape && shape->kind == GOB_ARRAY;
	bool is_written;

	if (is_array && n != shape->len)
		gob_fail(e, -EINVAL);
	is_written = place(e, 1u << GOB_SLICE | 1u << GOB_ARRAY, n == 0 && !is_array);
	if (is_written)
		gob_add_uint(&e->value, n);
	if (e->err == 0)
		push(e, shape, GOB_SLICE, n);
}

void gob_end_list(struct gob_encoder *e)
{
	pop(e, 1u << GOB_SLICE);
}

void gob_begin_map(struct gob_encoder *e, uint64_t n)
{
	const struct gob_shape *shape = place(e, 1u << GOB_MAP, false);

	if (n > UINT64_MAX / 2)
		gob_fail(e, -EINVAL);
	if (!shape || e->err != 0)
		return;
	gob_add_uint(&e->value, n);
	push(e, shape, GOB_MAP, 2 * n);
}

void gob_end_map(struct gob_encoder *e)
{
	pop(e, 1u << GOB_MAP);
}

/* ---- interfaces ---- */

void gob_nil(struct gob_encoder *e)
{
	if (place(e, 1u << GOB_INTERFACE, true))
		gob_add_uint(&e->value, 0);
}

void gob_begin_interface(struct gob_encoder *e, const char *name, const struct gob_shape *shape)
{
	struct gob_level *l;

	if (!place(e, 1u << GOB_INTERFACE, false))
		return;
	gob_add_text(&e->value, name);
	gob_add_int(&e->value, gob_need_type(e, shape));
	l = push(e, shape, GOB_INTERFACE, 1);
	if (!l)
		return;
	l->start = e->value.len;
	if (shape->kind != GOB_STRUCT)
		gob_add_uint(&e->value, 0);
}

void gob_end_interface(struct gob_encoder *e)
{
	const struct gob_level *l = pop(e, 1u << GOB_INTERFACE);

	if (l)
		gob_count_from(&e->value, l->start);
}
