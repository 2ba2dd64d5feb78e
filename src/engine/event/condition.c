#include "engine/event/condition.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pattern/pattern.h"
#include "base/object_builder.h"

enum { SPENT_TOLD_MS = 60 * 1000 };

/* ---- the event ---- */

int event_tree(struct arena *a, struct text type, struct text source, const struct value *payload,
	       const struct value **ret_event)
{
	const struct value *copy = NULL;
	struct object_builder r;
	int e = payload ? value_copy(a, payload, &copy) : 0;

	if (e != 0)
		return e;
	object_begin(&r, a);
	object_text(&r, "type", type);
	object_text(&r, "source", source);
	if (copy)
		object_value(&r, "payload", copy);
	if (r.err == 0)
		*ret_event = r.root;
	return r.err;
}

struct text event_source(struct text type)
{
	const char *dot = text_find(type, '.');

	if (dot)
		type.len = (size_t)(dot - type.data);
	return type;
}

int event_payload(struct arena *a, const struct event *e, struct value **ret_payload)
{
	struct value *data;
	struct object_builder r;

	if (event_unpack(a, e, &data) != 0)
		return -ENOMEM;
	object_go_on(&r, a, data);
	if (!value_find(r.root, "seq"))
		object_int(&r, "seq", e->seq);
	if (e->project.len > 0 && !value_find(r.root, "project"))
		object_text(&r, "project", e->project);
	if (e->session.data && !value_find(r.root, "session"))
		object_text(&r, "session", e->session);
	if (e->run.data && !value_find(r.root, "run"))
		object_text(&r, "run", e->run);
	*ret_payload = r.root;
	return r.err;
}

static const struct value *item(const struct value *array, struct text index)
{
	int64_t n;

	if (!text_number(index, 9, &n))
		return NULL;
	value_each (child, array) {
		if (n-- == 0)
			return child;
	}
	return NULL;
}

static const struct value *member(const struct value *object, struct text name)
{
	const struct value *found = NULL;

	value_each (child, object) {
		if (text_equal((struct text) {child->key, child->key_len}, name))
			found = child;
	}
	return found;
}

const struct value *event_field(const struct value *event, struct text path)
{
	const struct value *v = event;

	while (v && path.data) {
		const char *dot = text_find(path, '.');
		struct text name = path;

		if (dot)
			name.len = (size_t)(dot - path.data);
		v = v->kind == VALUE_OBJECT  ? member(v, name)
		    : v->kind == VALUE_ARRAY ? item(v, name)
					     : NULL;
		if (!dot)
			break;
		path.data += name.len + 1;
		path.len -= name.len + 1;
	}
	return v;
}

struct text event_scalar(const struct value *v)
{
	switch (v ? (enum value_kind)v->kind : VALUE_OBJECT) {
	case VALUE_NULL:
		return TEXT("null");
	case VALUE_FALSE:
		return TEXT("false");
	case VALUE_TRUE:
		return TEXT("true");
	case VALUE_NUMBER:
	case VALUE_STRING:
		return (struct text) {.data = v->text, .len = v->len};
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		break;
	}
	return (struct text) {.data = NULL};
}

/* ---- operators ---- */

/* Which orders of the field and a number satisfy it. */
enum { LESS = 1, EQUAL = 2, GREATER = 4 };

/* The operands: the field, NULL if it does not exist, and the value in the condition. */
struct operands {
	const struct value *field;
	const struct value *value;
	unsigned orders;
	struct pattern *pattern;
	uint64_t *steps;
};

/* Two arrays or objects are never equal. */
static bool are_equal(const struct value *a, const struct value *b)
{
	double x, y;

	if (!a || !b)
		return a == b;
	if (value_double(a, &x) && value_double(b, &y))
		return x == y;
	if (a->kind != b->kind)
		return false;
	return a->kind == VALUE_STRING ? text_equal(value_text(a), value_text(b))
				       : a->kind < VALUE_NUMBER;
}

static bool is_equal(const struct operands *o)
{
	return are_equal(o->field, o->value);
}

static bool is_unequal(const struct operands *o)
{
	return !is_equal(o);
}

static bool contains(const struct operands *o)
{
	const struct value *field = o->field;
	struct text part = event_scalar(o->value);

	if (field && field->kind == VALUE_ARRAY) {
		value_each (child, field) {
			if (are_equal(child, o->value))
				return true;
		}
		return false;
	}
	return field && field->kind == VALUE_STRING && part.data &&
	       (part.len == 0 || memmem(field->text, field->len, part.data, part.len));
}

static bool matches(const struct operands *o)
{
	return o->field && o->field->kind == VALUE_STRING && o->pattern &&
	       pattern_finds(o->pattern, value_text(o->field), o->steps);
}

/* A rule may have its number in quotes. */
static bool read_number(const struct value *v, double *ret)
{
	struct value as_number;

	if (!v || v->kind != VALUE_STRING)
		return value_double(v, ret);
	as_number = *v;
	as_number.kind = VALUE_NUMBER;
	return v->len > 0 && v->len < 64 && value_double(&as_number, ret);
}

static bool compares(const struct operands *o)
{
	double field, value = 0;

	if (!value_double(o->field, &field))
		return false;
	(void)read_number(o->value, &value);
	return o->orders & (field < value ? LESS : field > value ? GREATER : EQUAL);
}

static bool exists(const struct operands *o)
{
	return o->field && o->field->kind != VALUE_NULL;
}

static bool is_missing(const struct operands *o)
{
	return !exists(o);
}

static const struct operator
{
	const char *name;
	bool (*holds)(const struct operands *o);
	unsigned orders; /* of `compares` */
}
operators[] = {
	{"eq", is_equal},
	{"equals", is_equal},
	{"neq", is_unequal},
	{"not_equals", is_unequal},
	{"contains", contains},
	{"matches", matches},
	{"gt", compares, GREATER},
	{"lt", compares, LESS},
	{"gte", compares, GREATER | EQUAL},
	{"lte", compares, LESS | EQUAL},
	{"exists", exists},
	{"not_exists", is_missing},
};

static const struct operator* operator_find(struct text name)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (text_is(name, operators[i].name))
			return &operators[i];
	}
	return NULL;
}

/* ---- conditions ---- */

static int event_condition_check(const struct event_condition *c, struct pattern **ret_pattern,
				 struct error *error)
{
	const struct operator* op = operator_find(c->operator);
	double number;

	if (c->field.len == 0)
		return refuse_field(error, "conditions", "a condition requires a field");
	if (!op)
		return refuse_field(error, "conditions",
				    "unknown operator '%.*s': use eq, neq, contains, matches, gt, "
				    "lt, gte, lte, exists or not_exists",
				    TEXT_ARGS(text_cut(c->operator, 40)));
	if (op->holds == matches)
		return pattern_new(value_text(c->value), ret_pattern, error);
	if (op->holds == compares && !read_number(c->value, &number))
		return refuse_field(error, "conditions", "operator '%s' requires a number",
				    op->name);
	return 0;
}

static int copy(struct arena *a, struct event_condition *c)
{
	if (arena_copy_text(a, c->field, &c->field) != 0 ||
	    arena_copy_text(a, c->operator, & c->operator) != 0)
		return -ENOMEM;
	return c->value ? value_copy(a, c->value, &c->value) : 0;
}

int conditions_make(struct conditions *c, struct arena *a, const struct event_condition *from,
		    unsigned n, struct error *error)
{
	c->list = arena_zalloc(a, n * sizeof(c->list[0]));
	c->patterns = arena_zalloc(a, n * sizeof(struct pattern *));
	if (!c->list || !c->patterns)
		return -ENOMEM;
	for (; c->n < n; c->n++) {
		struct event_condition *one = &c->list[c->n];
		int r;

		*one = from[c->n];
		r = copy(a, one) ?: event_condition_check(one, &c->patterns[c->n], error);
		if (r != 0)
			return r;
	}
	return 0;
}

void conditions_done(struct conditions *c)
{
	for (unsigned i = 0; i < c->n; i++)
		pattern_free(c->patterns[i]);
	*c = (struct conditions) {.n = 0};
}

bool conditions_hold(const struct conditions *c, const struct value *event, uint64_t *steps)
{
	for (unsigned i = 0; i < c->n; i++) {
		const struct event_condition *one = &c->list[i];
		const struct operator* op = operator_find(one->operator);
		const struct operands o = {.field = event_field(event, one->field),
					   .value = one->value,
					   .orders = op->orders,
					   .pattern = c->patterns[i],
					   .steps = steps};

		if (!op->holds(&o))
			return false;
	}
	return true;
}

void conditions_spent(uint64_t *told_ms, const char *what, struct text type)
{
	uint64_t now = clock_steady_ms();

	if (*told_ms > 0 && now < *told_ms + SPENT_TOLD_MS)
		return;
	*told_ms = now;
	log_warn(what, "event=%.*s reason=\"regular expressions took too long\"", TEXT_ARGS(type));
}
