/*
 * One value, read without recursion: what is open stands on a stack that grows with it, and
 * the walk can pause wherever a message ends inside a value.
 *
 * That happens in one place only: where an interface names a type that its sender has not
 * defined yet, the message ends, definitions follow as messages of their own, and then the
 * value goes on. Inside another interface the same pieces come inline, each after its count.
 * The byte count of what an interface holds cannot be used for skipping, since it covers only
 * the first piece; so everything is read.
 */
#include "wire/gob/decode.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "wire/json.h"

enum { FIRST_OPEN = 8, NUMBER_SIZE = 40 };

struct gob_open {
	struct gob_node *node;
	const struct gob_type *type;
	struct value *last;   /* child */
	uint64_t left;        /* of a list or map: members still to come */
	uint64_t n;           /* of a list: how many there should be */
	uint32_t next_field;  /* of a struct: the lowest that may come */
	bool awaits_key;      /* of a map */
	struct gob_node *key; /* of a map: the key is read, and its value is to come */
};

/* One value that is read, and where. */
struct gob_read_reader {
	struct gob_decoder *d;
	struct gob_reading *r;
	struct gob_in *in;
	struct error *error;
};

void gob_reading_begin(struct gob_reading *r, struct arena *a)
{
	r->at = GOB_AT_TYPE;
	r->arena = a;
	r->root = NULL;
	r->n_open = 0;
	r->in_interface = false;
	r->interface = (struct text) {0};
	r->n_values = 0;
}

void gob_reading_done(struct gob_reading *r)
{
	free(r->open);
	r->open = NULL;
	r->cap_open = 0;
}

/* ---- pieces ---- */

static int gob_read_bad(const struct gob_read_reader *w, const char *what)
{
	return refuse(w->error, REFUSE_PARSE, "%s", what);
}

static int get_uint(struct gob_read_reader *w, uint64_t *ret)
{
	switch (gob_read_uint(w->in, ret)) {
	case GOB_NUMBER_OK:
		return 0;
	case GOB_NUMBER_SHORT:
		return gob_read_bad(w, "gob: a message ends inside a value");
	case GOB_NUMBER_BAD:
		break;
	}
	return gob_read_bad(w, "gob: encoded unsigned integer out of range");
}

static int get_type(struct gob_read_reader *w, int64_t id, const struct gob_type **ret)
{
	*ret = gob_type_find(&w->d->types, id);
	if (!*ret)
		return gob_read_bad(w, "gob: unknown type id or corrupted data");
	return 0;
}

/* A count and that many bytes, which stay where they are. */
static int get_bytes(struct gob_read_reader *w, const char *what, struct text *ret)
{
	uint64_t n = 0;
	int e = get_uint(w, &n);

	if (e != 0)
		return e;
	if (n > gob_left(w->in))
		return refuse(w->error, REFUSE_PARSE,
			      "gob: invalid %s length %llu: exceeds input size %zu", what,
			      (unsigned long long)n, gob_left(w->in));
	*ret = (struct text) {.data = (const char *)w->in->p, .len = (size_t)n};
	w->in->p += n;
	return 0;
}

/* No memory: is the arena full, or the machine? */
static int no_memory(const struct gob_read_reader *w, size_t n)
{
	const struct arena *a = w->r->arena;

	if (n + 64 > a->max - a->used)
		return refuse(w->error, REFUSE_TOO_LARGE, "gob: value needs more than %zu bytes",
			      a->max);
	return -ENOMEM;
}

static int copy_text(struct gob_read_reader *w, struct text from, const char **ret)
{
	char *copy = arena_copy(w->r->arena, from.data, from.len);

	if (!copy)
		return no_memory(w, from.len);
	*ret = copy;
	return 0;
}

static int new_node(struct gob_read_reader *w, const struct gob_type *type, enum value_kind kind,
		    struct gob_node **ret)
{
	struct gob_node *node;

	if (w->r->n_values >= w->d->limits.values)
		return refuse(w->error, REFUSE_TOO_LARGE, "gob: more than %u values",
			      w->d->limits.values);
	node = arena_alloc(w->r->arena, sizeof(*node));
	if (!node)
		return no_memory(w, sizeof(*node));
	w->r->n_values++;
	*node = (struct gob_node) {.value.kind = (uint8_t)kind, .type = type ? type->id : 0};
	*ret = node;
	return 0;
}

/* ---- numbers and texts ---- */

static int set_number(struct gob_read_reader *w, struct gob_node *node, const char *text,
		      size_t len)
{
	int e = copy_text(w, (struct text) {.data = text, .len = len}, &node->value.text);

	if (e != 0)
		return e;
	node->value.len = (uint32_t)len;
	node->value.raw = node->value.text;
	node->value.raw_len = node->value.len;
	return 0;
}

static int set_float(struct gob_read_reader *w, struct gob_node *node, double d)
{
	char room[NUMBER_SIZE];
	struct buf out = {.data = room, .cap = sizeof(room), .max = sizeof(room)};
	struct json j = json_writer(&out);

	if (isfinite(d)) {
		json_double(&j, d);
		return set_number(w, node, out.data, out.len);
	}
	node->value.kind = VALUE_NULL;
	node->value.text = isnan(d) ? "NaN" : d > 0 ? "+Inf" : "-Inf";
	node->value.len = (uint32_t)strlen(node->value.text);
	return 0;
}

static int set_whole(struct gob_read_reader *w, struct gob_node *node, const struct gob_type *type,
		     uint64_t n)
{
	char room[NUMBER_SIZE];
	struct buf out = {.data = room, .cap = sizeof(room), .max = sizeof(room)};

	if (type->kind == GOB_INT)
		buf_add_int(&out, gob_uint_to_int(n));
	else
		buf_add_uint(&out, n);
	return set_number(w, node, out.data, out.len);
}

static int read_number(struct gob_read_reader *w, const struct gob_type *type,
		       struct gob_node **ret)
{
	uint64_t n = 0;
	int e = get_uint(w, &n);

	if (e == 0 && type->kind == GOB_BOOL)
		return new_node(w, type, n ? VALUE_TRUE : VALUE_FALSE, ret);
	if (e == 0)
		e = new_node(w, type, VALUE_NUMBER, ret);
	if (e != 0)
		return e;
	if (type->kind == GOB_FLOAT)
		return set_float(w, *ret, gob_uint_to_double(n));
	return set_whole(w, *ret, type, n);
}

static int read_complex(struct gob_read_reader *w, const struct gob_type *type,
			struct gob_node **ret)
{
	const struct gob_type *part_type = gob_type_find(&w->d->types, GOB_FLOAT);
	struct gob_node *re, *im;
	int e = new_node(w, type, VALUE_ARRAY, ret)
			?: read_number(w, part_type, &re)
			?: read_number(w, part_type, &im);

	if (e != 0)
		return e;
	re->value.next = &im->value;
	(*ret)->value.first = &re->value;
	(*ret)->value.len = 2;
	return 0;
}

static int read_text(struct gob_read_reader *w, const struct gob_type *type, struct gob_node **ret)
{
	struct text text;
	int e = get_bytes(w, type->kind == GOB_STRING ? "string" : "data", &text);

	if (e == 0)
		e = new_node(w, type, VALUE_STRING, ret);
	if (e != 0)
		return e;
	(*ret)->value.len = (uint32_t)text.len;
	return copy_text(w, text, &(*ret)->value.text);
}

/* ---- where a value goes ---- */

static struct gob_open *innermost(const struct gob_reading *r)
{
	return r->n_open > 0 ? &r->open[r->n_open - 1] : NULL;
}

static void set_key(const struct gob_open *o, struct value *member)
{
	if (o->type->kind == GOB_STRUCT) {
		const struct gob_field *field = &o->type->fields[o->next_field - 1];

		/* types live as long as the decoder; the tree may live longer */
		member->key = field->name.data;
		member->key_len = (uint32_t)field->name.len;
	} else if (o->type->kind == GOB_MAP) {
		member->key = o->key->value.text;
		member->key_len = o->key->value.len;
	}
}

static void append(struct gob_open *o, struct value *child)
{
	if (o->last)
		o->last->next = child;
	else
		o->node->value.first = child;
	o->last = child;
	o->node->value.len++;
}

/* Attaches it where it belongs; a map's or struct's children may still be to come. */
static int attach(struct gob_read_reader *w, struct gob_node *node)
{
	struct gob_open *o = innermost(w->r);
	int e = 0;

	node->interface = w->r->interface.data;
	node->interface_len = (uint32_t)w->r->interface.len;
	w->r->interface = (struct text) {0};
	w->r->at = GOB_AT_STEP;
	if (!o) {
		w->r->root = node;
		return 0;
	}
	if (o->awaits_key) {
		o->key = node;
		o->awaits_key = false;
		return 0;
	}
	set_key(o, &node->value);
	if (o->type->kind == GOB_STRUCT)
		e = copy_text(w, (struct text) {node->value.key, node->value.key_len},
			      &node->value.key);
	o->key = NULL;
	append(o, &node->value);
	return e;
}

static int push(struct gob_read_reader *w, const struct gob_type *type, struct gob_node *node,
		uint64_t n)
{
	struct gob_reading *r = w->r;
	unsigned cap = r->cap_open ? 2 * r->cap_open : FIRST_OPEN;

	if (r->n_open >= w->d->limits.depth)
		return refuse(w->error, REFUSE_TOO_LARGE, "gob: nested deeper than %u levels",
			      w->d->limits.depth);
	if (r->n_open == r->cap_open) {
		struct gob_open *more = realloc(r->open, cap * sizeof(*more));

		if (!more)
			return -ENOMEM;
		r->open = more;
		r->cap_open = cap;
	}
	r->open[r->n_open++] = (struct gob_open) {.node = node, .type = type, .left = n, .n = n};
	return 0;
}

static int open_container(struct gob_read_reader *w, const struct gob_type *type)
{
	bool named = type->kind == GOB_STRUCT || type->kind == GOB_MAP;
	struct gob_node *node = NULL;
	uint64_t n = 0;
	int e = 0;

	if (type->kind != GOB_STRUCT)
		e = get_uint(w, &n);
	if (e == 0 && type->kind == GOB_ARRAY && n != type->len)
		e = gob_read_bad(w, "gob: length mismatch in decodeArray");
	if (e == 0)
		e = new_node(w, type, named ? VALUE_OBJECT : VALUE_ARRAY, &node);
	if (e == 0)
		e = attach(w, node);
	return e != 0 ? e : push(w, type, node, n);
}

/* ---- interfaces ---- */

static int open_interface(struct gob_read_reader *w)
{
	struct gob_node *node = NULL;
	struct text name;
	int e = get_bytes(w, "type name", &name);

	if (e != 0)
		return e;
	if (name.len > GOB_NAME_MAX)
		return refuse(w->error, REFUSE_PARSE, "gob: name too long (%zu bytes)", name.len);
	if (name.len == 0) {
		e = new_node(w, NULL, VALUE_NULL, &node);
		return e != 0 ? e : attach(w, node);
	}
	e = copy_text(w, name, &w->r->interface.data);
	w->r->interface.len = name.len;
	w->r->in_interface = true;
	w->r->at = GOB_AT_TYPE;
	return e;
}

static int read_definition(struct gob_read_reader *w, int64_t id)
{
	struct gob_reading *r = &w->d->definition;
	int e = gob_type_may_define(&w->d->types, id, w->error);

	if (e != 0)
		return e;
	gob_reading_begin(r, &w->d->scratch);
	r->at = GOB_AT_VALUE;
	r->want = gob_type_find(&w->d->types, GOB_WIRE_TYPE);
	e = gob_read_on(w->d, r, w->error)
		    ?: gob_type_define(&w->d->types, id, &r->root->value, w->error);
	arena_reset(&w->d->scratch);
	return e;
}

/* Which messages may follow a definition in the same message. */
static int behind_definition(struct gob_read_reader *w)
{
	uint64_t count_of_next;

	if (gob_left(w->in) == 0)
		return 0;
	if (!w->r->in_interface)
		return gob_read_bad(w, "extra data in buffer");
	return get_uint(w, &count_of_next);
}

/* The id is read: of the whole value, or of what an interface holds. */
static int begin_value(struct gob_read_reader *w, int64_t id)
{
	uint64_t n = 0;
	int e = get_type(w, id, &w->r->want);

	if (e == 0 && w->r->in_interface)
		e = get_uint(w, &n); /* its bytes, or those of its first piece */
	if (e != 0)
		return e;
	if (!w->r->in_interface)
		w->r->type = w->r->want;
	w->r->in_interface = false;
	w->r->at = GOB_AT_VALUE;
	if (w->r->want->kind == GOB_STRUCT)
		return 0;
	e = get_uint(w, &n);
	if (e == 0 && n != 0)
		e = gob_read_bad(w, "gob: decode: corrupted data: non-zero delta for singleton");
	return e;
}

static int read_type(struct gob_read_reader *w)
{
	uint64_t n = 0;
	int64_t id;
	int e;

	if (gob_left(w->in) == 0)
		return GOB_WAIT;
	e = get_uint(w, &n);
	if (e != 0)
		return e;
	id = gob_uint_to_int(n);
	if (id >= 0)
		return begin_value(w, id);
	e = id == INT64_MIN ? gob_read_bad(w, "gob: type id out of range")
			    : read_definition(w, -id);
	return e != 0 ? e : behind_definition(w);
}

/* ---- the walk ---- */

static int read_value(struct gob_read_reader *w)
{
	const struct gob_type *type = w->r->want;
	struct gob_node *node = NULL;
	int e = 0;

	switch (type->kind) {
	case GOB_BOOL:
	case GOB_INT:
	case GOB_UINT:
	case GOB_FLOAT:
		e = read_number(w, type, &node);
		break;
	case GOB_BYTES:
	case GOB_STRING:
	case GOB_OPAQUE:
		e = read_text(w, type, &node);
		break;
	case GOB_COMPLEX:
		e = read_complex(w, type, &node);
		break;
	case GOB_INTERFACE:
		return open_interface(w);
	case GOB_ARRAY:
	case GOB_SLICE:
	case GOB_MAP:
	case GOB_STRUCT:
		return open_container(w, type);
	}
	return e != 0 ? e : attach(w, node);
}

static int want(struct gob_read_reader *w, int64_t id)
{
	w->r->at = GOB_AT_VALUE;
	return get_type(w, id, &w->r->want);
}

static int close_container(struct gob_read_reader *w)
{
	w->r->n_open--;
	return 0;
}

static int step_struct(struct gob_read_reader *w, struct gob_open *o)
{
	uint64_t delta = 0;
	int e;

	/* Go's decoder forgives a last message that lacks the end of its structs. */
	if (gob_left(w->in) == 0)
		return close_container(w);
	e = get_uint(w, &delta);
	if (e != 0)
		return e;
	if (delta == 0)
		return close_container(w);
	if (delta > o->type->n_fields - o->next_field)
		return gob_read_bad(w, "gob: bad data: field numbers out of bounds");
	o->next_field += (uint32_t)delta;
	return want(w, o->type->fields[o->next_field - 1].id);
}

/* Every member takes at least a byte: a count beyond what is there ends here at the latest. */
static int next_member(struct gob_read_reader *w, struct gob_open *o)
{
	if (gob_left(w->in) == 0)
		return refuse(w->error, REFUSE_PARSE,
			      "gob: decoding array or slice: length exceeds input size (%llu "
			      "elements)",
			      (unsigned long long)o->n);
	o->left--;
	return 0;
}

static int step_list(struct gob_read_reader *w, struct gob_open *o)
{
	int e;

	if (o->left == 0)
		return close_container(w);
	e = next_member(w, o);
	return e != 0 ? e : want(w, o->type->elem);
}

/* A key that is not a string: as JSON would write it, without quotes. */
static int word_key(struct gob_read_reader *w, struct gob_node *key)
{
	struct value *v = &key->value;
	struct buf out;
	struct json j;
	int e;

	/* a float that is not finite has its word already */
	if (v->kind == VALUE_STRING || v->kind == VALUE_NUMBER ||
	    (v->kind == VALUE_NULL && v->text))
		return 0;
	buf_init(&out, GOB_KEY_MAX);
	j = json_writer(&out);
	json_value(&j, v);
	if (out.err == -EMSGSIZE)
		e = refuse(w->error, REFUSE_TOO_LARGE, "gob: map key longer than %d bytes",
			   GOB_KEY_MAX);
	else if (out.err != 0)
		e = out.err;
	else
		e = copy_text(w, (struct text) {out.data, out.len}, &v->text);
	v->kind = VALUE_STRING;
	v->len = (uint32_t)out.len;
	buf_done(&out);
	return e;
}

static int step_map(struct gob_read_reader *w, struct gob_open *o)
{
	int e;

	if (o->key) {
		e = word_key(w, o->key);
		return e != 0 ? e : want(w, o->type->elem);
	}
	if (o->left == 0)
		return close_container(w);
	e = next_member(w, o);
	o->awaits_key = true;
	return e != 0 ? e : want(w, o->type->key);
}

static int step(struct gob_read_reader *w)
{
	struct gob_open *o = innermost(w->r);

	if (o->type->kind == GOB_STRUCT)
		return step_struct(w, o);
	if (o->type->kind == GOB_MAP)
		return step_map(w, o);
	return step_list(w, o);
}

int gob_read_on(struct gob_decoder *d, struct gob_reading *r, struct error *error)
{
	struct gob_read_reader w = {.d = d, .r = r, .in = &d->in, .error = error};
	int e = 0;

	while (e == 0) {
		switch (r->at) {
		case GOB_AT_TYPE:
			e = read_type(&w);
			break;
		case GOB_AT_VALUE:
			e = read_value(&w);
			break;
		case GOB_AT_STEP:
			if (r->n_open == 0)
				return 0;
			e = step(&w);
			break;
		}
	}
	return e;
}
