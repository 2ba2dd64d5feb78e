/* Parameters by the fields of a row: decoded once, refused with the field's name. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "call/call.h"

static void *slot(void *in, const struct field *f)
{
	return (char *)in + f->offset;
}

static void set_default(void *in, const struct field *f)
{
	switch (f->type) {
	case FIELD_STRING:
		*(struct text *)slot(in, f) = text_of(f->default_text);
		break;
	case FIELD_INT:
		*(int64_t *)slot(in, f) = f->default_number;
		break;
	case FIELD_NUMBER:
		*(double *)slot(in, f) = (double)f->default_number;
		break;
	case FIELD_BOOL:
		*(bool *)slot(in, f) = f->default_number != 0;
		break;
	case FIELD_ANY:
	case FIELD_OBJECT:
	case FIELD_ARRAY:
		*(const struct value **)slot(in, f) = NULL;
		break;
	}
}

static int wrong_type(struct call *c, const struct field *f, const struct value *v)
{
	const char *article =
		f->type == FIELD_INT || f->type == FIELD_OBJECT || f->type == FIELD_ARRAY ? "an"
											  : "a";

	if (c->dialect->explain_field)
		return c->dialect->explain_field(f, v, &c->error);
	return refuse_field(&c->error, f->name, "%s must be %s %s, not %s", f->name, article,
			    field_type_name(f->type), value_kind_name(v));
}

/* Up to here a double has every integer. */
#define WHOLE_MAX 9007199254740992.0

enum { NUMBER_SHOWN = 40 }; /* characters shown of a number that is refused */

/* Or it has an exponent: then it is not just too many digits. */
static bool has_fraction(const struct value *v)
{
	for (uint32_t i = 0; i < v->len; i++) {
		if (strchr(".eE", v->text[i]))
			return true;
	}
	return false;
}

int field_whole(const char *name, const struct value *v, int64_t *ret, struct error *error)
{
	int shown = (int)(v->len < NUMBER_SHOWN ? v->len : NUMBER_SHOWN);

	if (v->kind != VALUE_NUMBER)
		return refuse_field(error, name, "%s must be an integer, not %s", name,
				    value_kind_name(v));
	if (value_int(v, ret))
		return 0;
	if (has_fraction(v))
		return refuse_field(error, name, "%s must be a whole number, not %.*s", name, shown,
				    v->text);
	return refuse_field(error, name, "%s must be a 64-bit integer, not %.*s", name, shown,
			    v->text);
}

/* 5.0 becomes 5 in the call's own tree, so that handlers which read it there agree. */
static int make_whole(struct call *c, const struct value *v)
{
	struct value *own = (struct value *)v;
	char text[24];
	char *copy;
	double d;
	int n;

	if (v->kind != VALUE_NUMBER || !has_fraction(v) || !value_double(v, &d) ||
	    !(d >= -WHOLE_MAX && d <= WHOLE_MAX) || (double)(int64_t)d != d)
		return 0;
	n = snprintf(text, sizeof(text), "%" PRId64, (int64_t)d);
	copy = arena_copy(&c->arena, text, (size_t)n);
	if (!copy)
		return -ENOMEM;
	own->text = copy;
	own->len = (uint32_t)n;
	own->raw = copy;
	own->raw_len = (uint32_t)n;
	return 0;
}

/* A name that is a preposition is quoted. */
static int check_range(struct call *c, const struct field *f, const int64_t *n)
{
	const char *quote = "";

	if (f->most == 0 || (*n >= f->least && *n <= f->most))
		return 0;
	if (strcmp(f->name, "after") == 0 || strcmp(f->name, "before") == 0)
		quote = "'";
	if (f->most == INT64_MAX)
		return refuse_field(&c->error, f->name, "%s%s%s must be at least %lld, not %lld",
				    quote, f->name, quote, (long long)f->least, (long long)*n);
	return refuse_field(&c->error, f->name, "%s%s%s must be between %lld and %lld, not %lld",
			    quote, f->name, quote, (long long)f->least, (long long)f->most,
			    (long long)*n);
}

static int set_number(struct call *c, const struct field *f, const struct value *v, void *in)
{
	if (v->kind != VALUE_NUMBER)
		return wrong_type(c, f, v);
	if (f->type == FIELD_NUMBER) {
		if (!value_double(v, slot(in, f)))
			return refuse_field(&c->error, f->name, "%s has too many digits", f->name);
		return 0;
	}
	if (c->dialect->whole_floats && make_whole(c, v) != 0)
		return -ENOMEM;
	return field_whole(f->name, v, slot(in, f), &c->error) ?: check_range(c, f, slot(in, f));
}

static int check_word(struct call *c, const struct field *f, struct text given)
{
	char list[200];
	struct buf out = {.data = list, .cap = sizeof(list), .max = sizeof(list)};

	for (const char *const *word = f->words; word && *word; word++) {
		if (text_is(given, *word))
			return 0;
		if (word != f->words)
			buf_add_str(&out, word[1] ? ", " : " or ");
		buf_add_str(&out, *word);
	}
	return !f->words ? 0
			 : refuse_field(&c->error, f->name, "%s must be %.*s, not '%.*s'", f->name,
					(int)out.len, list, TEXT_ARGS(text_cut(given, 40)));
}

static int set_given(struct call *c, const struct field *f, const struct value *v, void *in)
{
	switch (f->type) {
	case FIELD_STRING:
		if (v->kind != VALUE_STRING)
			return wrong_type(c, f, v);
		*(struct text *)slot(in, f) = value_text(v);
		return check_word(c, f, value_text(v));
	case FIELD_INT:
	case FIELD_NUMBER:
		return set_number(c, f, v, in);
	case FIELD_BOOL:
		if (v->kind != VALUE_TRUE && v->kind != VALUE_FALSE)
			return wrong_type(c, f, v);
		*(bool *)slot(in, f) = v->kind == VALUE_TRUE;
		return 0;
	case FIELD_OBJECT:
	case FIELD_ARRAY:
		if (v->kind != (f->type == FIELD_OBJECT ? VALUE_OBJECT : VALUE_ARRAY))
			return wrong_type(c, f, v);
		break;
	case FIELD_ANY:
		break;
	}
	*(const struct value **)slot(in, f) = v;
	return 0;
}

static int match_named(struct call *c, const struct method *m)
{
	value_each (member, c->request.params) {
		for (unsigned i = 0; i < m->n_fields; i++) {
			if (strlen(m->fields[i].name) == member->key_len &&
			    memcmp(m->fields[i].name, member->key, member->key_len) == 0) {
				c->given[i] = member;
				break;
			}
		}
	}
	return 0;
}

static int match_positional(struct call *c, const struct method *m)
{
	unsigned i = 0;

	value_each (item, c->request.params) {
		if (i == m->n_fields)
			return refuse(&c->error, REFUSE_PARAMS,
				      "more than %u positional parameters", m->n_fields);
		c->given[i++] = item;
	}
	return 0;
}

static int decode_field(struct call *c, const struct field *f, const struct value **given, void *in)
{
	/* null means "not given", except where any value is allowed. */
	if (*given && (*given)->kind == VALUE_NULL && f->type != FIELD_ANY)
		*given = NULL;
	if (*given)
		return set_given(c, f, *given, in);
	if (f->required && c->dialect->explain_field)
		return c->dialect->explain_field(f, NULL, &c->error);
	if (f->required)
		return refuse_field(&c->error, f->name, "%s is required", f->name);
	set_default(in, f);
	return 0;
}

int call_decode(struct call *c)
{
	const struct method *m = c->method;
	void *in;
	int r = 0;

	if (m->n_fields == 0)
		return 0;
	c->given = arena_zalloc(&c->arena, m->n_fields * sizeof(c->given[0]));
	in = arena_zalloc(&c->arena, m->in_size);
	if (!c->given || !in)
		return -ENOMEM;
	if (c->request.params)
		r = c->request.params->kind == VALUE_OBJECT ? match_named(c, m)
							    : match_positional(c, m);
	for (unsigned i = 0; r == 0 && i < m->n_fields; i++)
		r = decode_field(c, &m->fields[i], &c->given[i], in);
	c->in = in;
	return r;
}
