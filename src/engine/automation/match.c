/*
 * What a rule sees of an event, {type, source, payload}: its fields, conditions over them, and
 * templates that they are put into. As the rules that people already have expect it, which were
 * written for JavaScript: equal means of the same kind, and only what is there can be compared.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pack.h"
#include "base/record.h"
#include "engine/automation/inner.h"

enum { STEPS_TOLD_MS = 60 * 1000 };

/* ---- trees ---- */

int event_tree(struct arena *a, struct text type, struct text source, const struct value *payload,
	       const struct value **ret_event)
{
	const struct value *copy = NULL;
	struct record r;
	int e = payload ? value_copy(a, payload, &copy) : 0;

	if (e != 0)
		return e;
	record_begin(&r, a);
	record_text(&r, "type", type);
	record_text(&r, "source", source);
	if (copy)
		record_value(&r, "payload", copy);
	if (r.err == 0)
		*ret_event = r.root;
	return r.err;
}

/* ---- fields ---- */

static const struct value *item(const struct value *array, struct text place)
{
	unsigned long n = 0;

	if (place.len == 0 || place.len > 9)
		return NULL;
	for (size_t i = 0; i < place.len; i++) {
		if (place.data[i] < '0' || place.data[i] > '9')
			return NULL;
		n = n * 10 + (unsigned long)(place.data[i] - '0');
	}
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
		const char *dot = path.len > 0 ? memchr(path.data, '.', path.len) : NULL;
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

/* ---- conditions ---- */

static bool is_equal(const struct value *a, const struct value *b)
{
	double x, y;

	if (!a || !b)
		return a == b;
	if (value_double(a, &x) && value_double(b, &y))
		return x == y;
	if (a->kind != b->kind)
		return false;
	/* Two objects are never one. */
	return a->kind == VALUE_STRING ? text_equal(value_text(a), value_text(b))
				       : a->kind < VALUE_NUMBER;
}

/* The text of what is one thing. */
static struct text scalar_text(const struct value *v)
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

static bool contains(const struct value *field, const struct value *value)
{
	struct text part = scalar_text(value);

	if (field && field->kind == VALUE_ARRAY) {
		value_each (child, field) {
			if (is_equal(child, value))
				return true;
		}
		return false;
	}
	return field && field->kind == VALUE_STRING && part.data &&
	       (part.len == 0 || memmem(field->text, field->len, part.data, part.len));
}

static double number_of(const struct value *v)
{
	struct value as_number = v ? *v : (struct value) {.kind = VALUE_NULL};
	double d = 0;

	/* A rule may have it in quotes; it was looked over when the rule was read. */
	if (as_number.kind == VALUE_STRING)
		as_number.kind = VALUE_NUMBER;
	return value_double(&as_number, &d) ? d : 0;
}

enum operator{
	OP_EQ,
	OP_NEQ,
	OP_CONTAINS,
	OP_MATCHES,
	OP_GT,
	OP_LT,
	OP_GTE,
	OP_LTE,
	OP_EXISTS,
	OP_NOT_EXISTS,
	OP_UNKNOWN,
};

static enum operator operator_of(struct text t)
{
	static const struct {
		const char *name;
		enum operator op;
	} names[] = {
		{"eq", OP_EQ},
		{"equals", OP_EQ},
		{"neq", OP_NEQ},
		{"not_equals", OP_NEQ},
		{"contains", OP_CONTAINS},
		{"matches", OP_MATCHES},
		{"gt", OP_GT},
		{"lt", OP_LT},
		{"gte", OP_GTE},
		{"lte", OP_LTE},
		{"exists", OP_EXISTS},
		{"not_exists", OP_NOT_EXISTS},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (text_is(t, names[i].name))
			return names[i].op;
	}
	return OP_UNKNOWN;
}

bool condition_known(struct text operator)
{
	return operator_of(operator) != OP_UNKNOWN;
}

static bool compares(enum operator op, const struct value *field, const struct value *value)
{
	double a, b = number_of(value);

	if (!field || field->kind != VALUE_NUMBER || !value_double(field, &a))
		return false;
	return op == OP_GT ? a > b : op == OP_LT ? a < b : op == OP_GTE ? a >= b : a <= b;
}

static bool holds(const struct rule_condition *c, struct pattern *p, const struct value *event,
		  uint64_t *steps)
{
	const struct value *field = event_field(event, c->field);
	enum operator op = operator_of(c->operator);

	switch (op) {
	case OP_EQ:
		return is_equal(field, c->value);
	case OP_NEQ:
		return !is_equal(field, c->value);
	case OP_CONTAINS:
		return contains(field, c->value);
	case OP_MATCHES:
		return field && field->kind == VALUE_STRING && p &&
		       pattern_finds(p, value_text(field), steps);
	case OP_GT:
	case OP_LT:
	case OP_GTE:
	case OP_LTE:
		return compares(op, field, c->value);
	case OP_EXISTS:
		return field && field->kind != VALUE_NULL;
	case OP_NOT_EXISTS:
		return !field || field->kind == VALUE_NULL;
	case OP_UNKNOWN:
		break;
	}
	return false;
}

bool conditions_hold(const struct rule *r, const struct value *event)
{
	for (unsigned i = 0; i < r->def.n_conditions; i++) {
		if (!holds(&r->def.conditions[i], r->matches[i], event, matching_steps(r)))
			return false;
	}
	return true;
}

void matching_begin(struct automation *a)
{
	a->steps[0] = EVENT_STEPS;
	a->steps[1] = EVENT_STEPS;
}

uint64_t *matching_steps(const struct rule *r)
{
	return &r->automation->steps[is_of_project(r)];
}

void matching_end(struct automation *a, struct text type)
{
	uint64_t now = clock_steady_ms();

	if ((a->steps[0] > 0 && a->steps[1] > 0) ||
	    (a->steps_told_ms > 0 && now < a->steps_told_ms + STEPS_TOLD_MS))
		return;
	a->steps_told_ms = now;
	log_warn("rules not matched", "event=%.*s why=their expressions take too long",
		 TEXT_ARGS(type));
}

/* ---- templates ---- */

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_';
}

/* "a.b}}" at the front: the length of the path, or 0. */
static size_t path_len(struct text t)
{
	size_t n = 0;

	while (n < t.len &&
	       (is_word(t.data[n]) || (t.data[n] == '.' && n > 0 && t.data[n - 1] != '.')))
		n++;
	if (n == 0 || t.data[n - 1] == '.' || t.len - n < 2 || memcmp(t.data + n, "}}", 2) != 0)
		return 0;
	return n;
}

static void add_value(struct automation *a, struct arena *arena, const struct value *v,
		      struct buf *out)
{
	struct text t = scalar_text(v);

	if (!t.data && (!a->opts.to_json || a->opts.to_json(arena, v, &t) != 0))
		t = TEXT("");
	buf_add(out, t.data, t.len);
}

void template_fill(struct automation *a, struct arena *arena, struct text from,
		   const struct value *event, struct buf *out)
{
	while (from.len > 0) {
		const char *open = memmem(from.data, from.len, "{{", 2);
		size_t before = open ? (size_t)(open - from.data) : from.len;
		const struct value *v = NULL;
		struct text path;

		buf_add(out, from.data, before);
		from.data += before;
		from.len -= before;
		if (!open)
			return;
		path = (struct text) {.data = from.data + 2, .len = from.len - 2};
		path.len = path_len(path);
		if (path.len > 0)
			v = event_field(event, path);
		/* What is not there stays as it was written; of "{{{x}}" the first goes by. */
		if (v)
			add_value(a, arena, v, out);
		else
			buf_add_char(out, '{');
		before = v ? path.len + 4 : 1;
		from.data += before;
		from.len -= before;
	}
}
