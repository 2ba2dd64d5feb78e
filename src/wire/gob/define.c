/* Types as the messages that define them: each once per encoder, before it is needed. */
#include "wire/gob/encode.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SENT = 8 };

struct gob_sent {
	const struct gob_shape *shape;
	int32_t id;
	bool is_defined;
};

static bool is_basic(const struct gob_shape *shape)
{
	return shape->kind <= GOB_INTERFACE;
}

static struct gob_sent *find_sent(const struct gob_encoder *e, const struct gob_shape *shape)
{
	for (unsigned i = 0; i < e->known.n_sent; i++)
		if (e->sent[i].shape == shape)
			return &e->sent[i];
	return NULL;
}

static int32_t id_of(const struct gob_encoder *e, const struct gob_shape *shape)
{
	const struct gob_sent *sent;

	if (is_basic(shape))
		return (int32_t)shape->kind;
	sent = find_sent(e, shape);
	return sent ? sent->id : 0;
}

static int add_sent(struct gob_encoder *e, const struct gob_shape *shape)
{
	if (e->known.n_sent == e->cap_sent) {
		unsigned cap = e->cap_sent ? 2 * e->cap_sent : FIRST_SENT;
		struct gob_sent *more = realloc(e->sent, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		e->sent = more;
		e->cap_sent = cap;
	}
	e->sent[e->known.n_sent++] = (struct gob_sent) {.shape = shape};
	return 0;
}

static void give_id(struct gob_encoder *e, const struct gob_shape *shape)
{
	struct gob_sent *sent = find_sent(e, shape);

	if (sent && sent->id == 0)
		sent->id = ++e->known.last_id;
}

/* In the order in which Go numbers types: a struct before its fields, the rest after their
 * elements. Any order would do, but this one makes our bytes Go's. */
static void number_types(struct gob_encoder *e, const struct gob_shape *shape)
{
	if (is_basic(shape) || find_sent(e, shape) || e->err != 0)
		return;
	gob_fail(e, e->known.n_sent < GOB_TYPES_MAX ? add_sent(e, shape) : -EMSGSIZE);
	if (shape->kind == GOB_STRUCT || shape->kind == GOB_OPAQUE)
		give_id(e, shape);
	for (unsigned i = 0; i < shape->n_fields; i++)
		number_types(e, shape->fields[i].shape);
	if (shape->key)
		number_types(e, shape->key);
	if (shape->elem)
		number_types(e, shape->elem);
	give_id(e, shape);
}

/* The first member of every definition: {Name, Id}. */
static void add_common(struct buf *out, const char *name, int32_t id)
{
	gob_add_uint(out, 1);
	if (name[0]) {
		gob_add_uint(out, 1);
		gob_add_text(out, name);
	}
	gob_add_uint(out, name[0] ? 1 : 2);
	gob_add_int(out, id);
	gob_add_uint(out, 0);
}

static void add_fields(const struct gob_encoder *e, struct buf *out, const struct gob_shape *shape)
{
	if (shape->n_fields == 0)
		return;
	gob_add_uint(out, 1);
	gob_add_uint(out, shape->n_fields);
	for (unsigned i = 0; i < shape->n_fields; i++) {
		gob_add_uint(out, 1);
		gob_add_text(out, shape->fields[i].name);
		gob_add_uint(out, 1);
		gob_add_int(out, id_of(e, shape->fields[i].shape));
		gob_add_uint(out, 0);
	}
}

static void add_member(struct buf *out, int64_t n)
{
	gob_add_uint(out, 1);
	gob_add_int(out, n);
}

/* The members of wireType, counted from one. */
static unsigned wire_member(enum gob_kind kind)
{
	switch (kind) {
	case GOB_ARRAY:
		return 1;
	case GOB_SLICE:
		return 2;
	case GOB_STRUCT:
		return 3;
	case GOB_MAP:
		return 4;
	case GOB_OPAQUE:
	case GOB_BOOL:
	case GOB_INT:
	case GOB_UINT:
	case GOB_FLOAT:
	case GOB_BYTES:
	case GOB_STRING:
	case GOB_COMPLEX:
	case GOB_INTERFACE:
		break;
	}
	return 5;
}

static void add_definition(struct gob_encoder *e, const struct gob_shape *shape, int32_t id)
{
	struct buf *out = &e->definitions;
	size_t start = out->len;

	gob_add_int(out, -(int64_t)id);
	gob_add_uint(out, wire_member(shape->kind));
	add_common(out, shape->name, id);
	if (shape->kind == GOB_STRUCT)
		add_fields(e, out, shape);
	if (shape->key)
		add_member(out, id_of(e, shape->key));
	if (shape->elem)
		add_member(out, id_of(e, shape->elem));
	if (shape->kind == GOB_ARRAY && shape->len > 0)
		add_member(out, (int64_t)shape->len);
	gob_add_uint(out, 0);
	gob_add_uint(out, 0);
	gob_count_from(out, start);
}

static void define(struct gob_encoder *e, const struct gob_shape *shape)
{
	struct gob_sent *sent = is_basic(shape) || e->err != 0 ? NULL : find_sent(e, shape);

	if (!sent || sent->is_defined)
		return;
	sent->is_defined = true;
	add_definition(e, shape, sent->id);
	for (unsigned i = 0; i < shape->n_fields; i++)
		define(e, shape->fields[i].shape);
	if (shape->key)
		define(e, shape->key);
	if (shape->elem)
		define(e, shape->elem);
}

int32_t gob_need_type(struct gob_encoder *e, const struct gob_shape *shape)
{
	if (!is_basic(shape) && !find_sent(e, shape)) {
		number_types(e, shape);
		define(e, shape);
	}
	return id_of(e, shape);
}
