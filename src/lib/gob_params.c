/*
 * A draft says of a value what its type may be. Drafts of what must have one type in common
 * are merged; when the whole is known, a draft becomes a shape, which is kept.
 *
 * Everything here is as deep as the tree, which its reader has bounded.
 */
#include "lib/caller.h"

#include <errno.h>
#include <string.h>

enum { SHAPES_BYTES = 1 << 20 };

struct draft_field {
	const char *name;
	size_t len;
	const struct gob_params_draft *draft;
	struct draft_field *next;
};

struct gob_params_draft {
	enum gob_kind kind;                  /* 0: null, which goes with anything */
	bool is_told;                        /* by a "$": a number that stays what it is */
	const struct gob_params_draft *elem; /* slice, map; NULL: it has no elements */
	struct draft_field *first;           /* struct */
	struct draft_field *last;
	unsigned n_fields;
};

static const struct gob_params_draft draft_null;
static const struct gob_params_draft draft_bool = {.kind = GOB_BOOL};
static const struct gob_params_draft draft_int = {.kind = GOB_INT};
static const struct gob_params_draft draft_uint = {.kind = GOB_UINT};
static const struct gob_params_draft draft_float = {.kind = GOB_FLOAT};
static const struct gob_params_draft draft_told_int = {.kind = GOB_INT, .is_told = true};
static const struct gob_params_draft draft_string = {.kind = GOB_STRING};
static const struct gob_params_draft draft_bytes = {.kind = GOB_BYTES};
static const struct gob_params_draft draft_interface = {.kind = GOB_INTERFACE};

struct drafting {
	struct arena *arena;
	struct error *error;
	int err;
};

/* Remembers the first failure; returns NULL, for the drafting functions. */
static const struct gob_params_draft *gob_params_fail(struct drafting *d, int err)
{
	if (d->err == 0)
		d->err = err;
	return NULL;
}

static void *alloc(struct drafting *d, size_t n)
{
	void *p = arena_zalloc(d->arena, n);

	if (!p)
		gob_params_fail(d, -ENOMEM);
	return p;
}

static const struct gob_params_draft *draft_of(struct drafting *d, struct value *v);

/* ---- two drafts, one type ---- */

static const struct gob_params_draft *merge(struct drafting *d, const struct gob_params_draft *a,
					    const struct gob_params_draft *b);

static struct draft_field *find_field(const struct gob_params_draft *draft, const char *name,
				      size_t len)
{
	for (struct draft_field *f = draft->first; f; f = f->next) {
		if (f->len == len && memcmp(f->name, name, len) == 0)
			return f;
	}
	return NULL;
}

static void add_field(struct drafting *d, struct gob_params_draft *to, const char *name, size_t len,
		      const struct gob_params_draft *draft)
{
	struct draft_field *f;

	if (to->n_fields == GOB_FIELDS_MAX || memchr(name, '\0', len)) {
		gob_params_fail(d, refuse(d->error, REFUSE_PARAMS, "an object has %s",
					  to->n_fields == GOB_FIELDS_MAX
						  ? "too many members"
						  : "a member name with a NUL byte"));
		return;
	}
	f = alloc(d, sizeof(*f));
	if (!f)
		return;
	*f = (struct draft_field) {.name = name, .len = len, .draft = draft};
	if (to->last)
		to->last->next = f;
	else
		to->first = f;
	to->last = f;
	to->n_fields++;
}

/* A struct with the fields of both. Where nothing is new, it is the first. */
static const struct gob_params_draft *merge_structs(struct drafting *d,
						    const struct gob_params_draft *a,
						    const struct gob_params_draft *b)
{
	/* Each was made for one value, and this is the only way to reach it again. */
	struct gob_params_draft *both = (struct gob_params_draft *)a;
	struct draft_field *expected = both->first;

	for (const struct draft_field *f = b->first; f && d->err == 0; f = f->next) {
		struct draft_field *same = expected;

		/* Objects of one array mostly have the same members in the same order. */
		if (!same || same->len != f->len || memcmp(same->name, f->name, f->len) != 0)
			same = find_field(both, f->name, f->len);
		if (same)
			same->draft = merge(d, same->draft, f->draft);
		else
			add_field(d, both, f->name, f->len, f->draft);
		expected = same ? same->next : NULL;
	}
	return both;
}

static const struct gob_params_draft *
merge_elems(struct drafting *d, const struct gob_params_draft *a, const struct gob_params_draft *b)
{
	struct gob_params_draft *both;

	if (!a->elem || !b->elem || a->elem == b->elem)
		return a->elem ? a : b;
	both = alloc(d, sizeof(*both));
	if (!both)
		return NULL;
	*both = *a;
	both->elem = merge(d, a->elem, b->elem);
	return both;
}

static bool is_free_number(const struct gob_params_draft *draft)
{
	return (draft->kind == GOB_INT && !draft->is_told) || draft->kind == GOB_FLOAT;
}

/* The type that holds both: an interface at worst. */
static const struct gob_params_draft *merge(struct drafting *d, const struct gob_params_draft *a,
					    const struct gob_params_draft *b)
{
	if (d->err != 0 || !a || !b)
		return NULL;
	if (a == b || b->kind == 0)
		return a;
	if (a->kind == 0)
		return b;
	if (a->kind == b->kind && a->kind == GOB_STRUCT)
		return merge_structs(d, a, b);
	if (a->kind == b->kind && (a->kind == GOB_SLICE || a->kind == GOB_MAP))
		return merge_elems(d, a, b);
	if (a->kind == b->kind)
		return a->is_told ? a : b;
	if (is_free_number(a) && is_free_number(b))
		return &draft_float;
	return &draft_interface;
}

/* ---- what JSON cannot say ---- */

/* The value takes the place of another, whose name and neighbour it keeps. */
static void become(struct value *v, const struct value *other)
{
	struct value was = *v;

	*v = *other;
	v->key = was.key;
	v->key_len = was.key_len;
	v->next = was.next;
}

static const struct gob_params_draft *unfit(struct drafting *d, const struct value *told,
					    const char *want)
{
	return gob_params_fail(d, refuse(d->error, REFUSE_PARAMS, "%.*s requires %s",
					 (int)told->key_len, told->key, want));
}

static bool is_digits(const struct value *v)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < v->len; i++) {
		unsigned digit = (unsigned)(v->text[i] - '0');

		if (digit > 9 || n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	return v->len > 0;
}

/* A text or a number as a number. */
static bool is_number(const struct value *told, struct value *ret)
{
	*ret = *told;
	ret->kind = VALUE_NUMBER;
	return told->kind == VALUE_NUMBER || told->kind == VALUE_STRING;
}

static const struct gob_params_draft *take_int(struct drafting *d, struct value *v,
					       const struct value *told)
{
	struct value number;
	int64_t n;

	if (!is_number(told, &number) || !value_int(&number, &n))
		return unfit(d, told, "a 64-bit integer");
	become(v, &number);
	return &draft_told_int;
}

static const struct gob_params_draft *take_uint(struct drafting *d, struct value *v,
						const struct value *told)
{
	struct value number;

	if (!is_number(told, &number) || !is_digits(&number))
		return unfit(d, told, "an unsigned 64-bit integer");
	become(v, &number);
	return &draft_uint;
}

/* With a point in it, so that it is a float for those who see only the number. */
static const struct gob_params_draft *take_float(struct drafting *d, struct value *v,
						 const struct value *told)
{
	struct value number = *told;
	int64_t n;
	char *text;

	if (told->kind != VALUE_NUMBER)
		return unfit(d, told, "a number");
	if (value_int(told, &n)) {
		text = alloc(d, (size_t)told->len + 3);
		if (!text)
			return NULL;
		memcpy(text, told->text, told->len);
		memcpy(text + told->len, ".0", 2);
		number.text = text;
		number.len = told->len + 2;
	}
	become(v, &number);
	return &draft_float;
}

static const struct gob_params_draft *take_bytes(struct drafting *d, struct value *v,
						 const struct value *told)
{
	struct value bytes = *told;
	char *to;

	if (told->kind != VALUE_STRING || told->len % 2 != 0)
		return unfit(d, told, "two hexadecimal digits per byte");
	to = alloc(d, told->len / 2 + 1);
	for (uint32_t i = 0; to && i < told->len; i += 2) {
		int high = hex_digit(told->text[i]);
		int low = hex_digit(told->text[i + 1]);

		if (high < 0 || low < 0)
			return unfit(d, told, "two hexadecimal digits per byte");
		to[i / 2] = (char)(high << 4 | low);
	}
	bytes.text = to;
	bytes.len = told->len / 2;
	become(v, &bytes);
	return &draft_bytes;
}

/* What all children have in common; NULL when there are none. */
static const struct gob_params_draft *draft_elems(struct drafting *d, struct value *v)
{
	const struct gob_params_draft *elem = NULL;

	for (struct value *child = v->first; child && d->err == 0; child = child->next) {
		const struct gob_params_draft *draft = draft_of(d, child);

		elem = elem ? merge(d, elem, draft) : draft;
	}
	return elem;
}

static const struct gob_params_draft *draft_list(struct drafting *d, struct value *v,
						 enum gob_kind kind)
{
	struct gob_params_draft *draft = alloc(d, sizeof(*draft));

	if (!draft)
		return NULL;
	draft->kind = kind;
	draft->elem = draft_elems(d, v);
	return draft;
}

static const struct gob_params_draft *take_map(struct drafting *d, struct value *v,
					       const struct value *told)
{
	if (told->kind != VALUE_OBJECT)
		return unfit(d, told, "an object");
	become(v, told);
	return draft_list(d, v, GOB_MAP);
}

static const struct gob_params_draft *take_any(struct drafting *d, struct value *v,
					       const struct value *told)
{
	become(v, told);
	draft_of(d, v);
	return &draft_interface;
}

static const struct {
	const char *name;
	const struct gob_params_draft *(*take)(struct drafting *d, struct value *v,
					       const struct value *told);
} forms[] = {
	{"$int", take_int},     {"$uint", take_uint}, {"$float", take_float},
	{"$bytes", take_bytes}, {"$map", take_map},   {"$any", take_any},
};

static const struct gob_params_draft *draft_form(struct drafting *d, struct value *v)
{
	const struct value *told = v->first;
	struct text name = {.data = told->key, .len = told->key_len};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (text_is(name, forms[i].name))
			return forms[i].take(d, v, told);
	}
	return gob_params_fail(
		d, refuse(d->error, REFUSE_PARAMS,
			  "unknown type '%.*s': use $int, $uint, $float, $bytes, $map or $any",
			  (int)(name.len < 40 ? name.len : 40), name.data));
}

/* ---- drafts of values ---- */

static const struct gob_params_draft *draft_struct(struct drafting *d, struct value *v)
{
	struct gob_params_draft *draft = alloc(d, sizeof(*draft));

	if (!draft)
		return NULL;
	draft->kind = GOB_STRUCT;
	for (struct value *child = v->first; child && d->err == 0; child = child->next) {
		const struct gob_params_draft *type = draft_of(d, child);
		struct draft_field *before = find_field(draft, child->key, child->key_len);

		/* Of two members with one name the last counts, as in every lookup. */
		if (before)
			before->draft = type;
		else if (type)
			add_field(d, draft, child->key, child->key_len, type);
	}
	return draft;
}

static const struct gob_params_draft *draft_number(struct drafting *d, const struct value *v)
{
	int64_t n;
	double f;

	if (value_int(v, &n))
		return &draft_int;
	if (is_digits(v))
		return &draft_uint;
	if (value_double(v, &f))
		return &draft_float;
	return gob_params_fail(d, refuse(d->error, REFUSE_PARAMS, "a number has too many digits"));
}

static const struct gob_params_draft *draft_of(struct drafting *d, struct value *v)
{
	switch ((enum value_kind)v->kind) {
	case VALUE_NULL:
		break;
	case VALUE_FALSE:
	case VALUE_TRUE:
		return &draft_bool;
	case VALUE_NUMBER:
		return draft_number(d, v);
	case VALUE_STRING:
		return &draft_string;
	case VALUE_ARRAY:
		return draft_list(d, v, GOB_SLICE);
	case VALUE_OBJECT:
		if (v->len == 1 && v->first->key_len > 0 && v->first->key[0] == '$')
			return draft_form(d, v);
		return draft_struct(d, v);
	}
	return &draft_null;
}

/* ---- shapes ---- */

void gob_shapes_init(struct gob_shapes *s)
{
	s->n = 0;
	arena_init(&s->arena, SHAPES_BYTES);
}

void gob_shapes_done(struct gob_shapes *s)
{
	arena_done(&s->arena);
	s->n = 0;
}

static bool is_same(const struct gob_shape *a, const struct gob_shape *b)
{
	if (a->kind != b->kind || a->elem != b->elem || a->n_fields != b->n_fields ||
	    strcmp(a->name, b->name) != 0)
		return false;
	for (unsigned i = 0; i < a->n_fields; i++) {
		if (a->fields[i].shape != b->fields[i].shape ||
		    strcmp(a->fields[i].name, b->fields[i].name) != 0)
			return false;
	}
	return true;
}

/* A copy for as long as the shapes live. */
static struct gob_shape *copy_shape(struct gob_shapes *s, const struct gob_shape *made)
{
	size_t bytes = made->n_fields * sizeof(*made->fields);
	struct gob_shape *copy = arena_zalloc(&s->arena, sizeof(*copy));
	struct gob_shape_field *fields = arena_zalloc(&s->arena, bytes);

	if (!copy || !fields)
		return NULL;
	*copy = *made;
	copy->fields = fields;
	copy->name = arena_copy(&s->arena, made->name, strlen(made->name));
	for (unsigned i = 0; i < made->n_fields && copy->name; i++) {
		const char *name = made->fields[i].name;

		fields[i].shape = made->fields[i].shape;
		fields[i].name = arena_copy(&s->arena, name, strlen(name));
		if (!fields[i].name)
			return NULL;
	}
	return copy->name ? copy : NULL;
}

static const struct gob_shape *gob_params_keep(struct drafting *d, struct gob_shapes *s,
					       const struct gob_shape *made)
{
	struct gob_shape *copy;

	for (unsigned i = 0; i < s->n; i++) {
		if (is_same(s->all[i], made))
			return s->all[i];
	}
	copy = s->n < GOB_SHAPES_MAX ? copy_shape(s, made) : NULL;
	if (!copy) {
		gob_params_fail(d, refuse(d->error, REFUSE_LIMIT, "too many parameter types"));
		return NULL;
	}
	s->all[s->n++] = copy;
	return copy;
}

static const struct gob_shape *shape_of(struct drafting *d, struct gob_shapes *s, const char *name,
					const struct gob_params_draft *draft);

/* Nothing is known of its type, and there is nothing to send either. */
static bool is_nothing(const struct gob_params_draft *draft)
{
	return draft->kind == 0 ||
	       ((draft->kind == GOB_SLICE || draft->kind == GOB_MAP) && !draft->elem);
}

static const struct gob_shape *struct_shape(struct drafting *d, struct gob_shapes *s,
					    const char *name, const struct gob_params_draft *draft)
{
	struct gob_shape made = {.kind = GOB_STRUCT, .name = name};
	struct gob_shape_field *fields = alloc(d, draft->n_fields * sizeof(*fields));

	for (const struct draft_field *f = draft->first; f && d->err == 0; f = f->next) {
		char *field;

		if (is_nothing(f->draft))
			continue;
		field = arena_copy(d->arena, f->name, f->len);
		if (!field) {
			gob_params_fail(d, -ENOMEM);
			break;
		}
		fields[made.n_fields].name = field;
		fields[made.n_fields].shape = shape_of(d, s, field, f->draft);
		made.n_fields++;
	}
	if (d->err != 0)
		return NULL;
	made.fields = fields;
	return made.n_fields > 0 ? gob_params_keep(d, s, &made) : &gob_shape_empty_struct;
}

static const struct gob_shape *list_shape(struct drafting *d, struct gob_shapes *s,
					  const char *name, const struct gob_params_draft *draft)
{
	struct gob_shape made = {.kind = draft->kind, .name = ""};

	if (draft->kind == GOB_MAP)
		made.key = &gob_shape_string;
	made.elem = draft->elem ? shape_of(d, s, name, draft->elem) : &gob_shape_interface;
	if (made.elem == &gob_shape_interface)
		return draft->kind == GOB_MAP ? &gob_shape_any_map : &gob_shape_any_slice;
	return d->err == 0 ? gob_params_keep(d, s, &made) : NULL;
}

/* name: of a struct; Go mentions it when a field is wrong. */
static const struct gob_shape *shape_of(struct drafting *d, struct gob_shapes *s, const char *name,
					const struct gob_params_draft *draft)
{
	if (d->err != 0)
		return NULL;
	switch (draft->kind) {
	case GOB_BOOL:
		return &gob_shape_bool;
	case GOB_INT:
		return &gob_shape_int;
	case GOB_UINT:
		return &gob_shape_uint;
	case GOB_FLOAT:
		return &gob_shape_float64;
	case GOB_BYTES:
		return &gob_shape_bytes;
	case GOB_STRING:
		return &gob_shape_string;
	case GOB_SLICE:
	case GOB_MAP:
		return list_shape(d, s, name, draft);
	case GOB_STRUCT:
		return struct_shape(d, s, name, draft);
	case GOB_INTERFACE:
	case GOB_COMPLEX:
	case GOB_ARRAY:
	case GOB_OPAQUE:
		break;
	}
	return &gob_shape_interface; /* null in a list, too */
}

int gob_params_read(struct gob_shapes *s, struct arena *a, struct value *v,
		    const struct gob_shape **ret_shape, struct error *error)
{
	struct drafting d = {.arena = a, .error = error};
	const struct gob_params_draft *draft = draft_of(&d, v);
	const struct gob_shape *shape;

	/* Go has no value for it at the top level. */
	if (d.err == 0 && (draft->kind == 0 || draft->kind == GOB_INTERFACE))
		gob_params_fail(&d, refuse(error, REFUSE_PARAMS,
					   "null and $any cannot be used as the parameter value"));
	shape = d.err == 0 ? shape_of(&d, s, "Args", draft) : NULL;
	if (d.err != 0)
		return d.err;
	*ret_shape = shape;
	return 0;
}
