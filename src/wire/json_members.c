#include "wire/json.h"

#include "base/schema.h"
#include "base/clock.h"

static void write_absent(struct json *j, const struct member *m, struct text empty)
{
	if (m->absent == ABSENT_LEFT_OUT)
		return;
	json_key(j, m->name);
	if (m->absent == ABSENT_EMPTY)
		json_raw(j, empty.data, empty.len);
	else
		json_null(j);
}

static void write_text(struct json *j, const struct member *m, struct text t)
{
	if (t.data)
		json_member_text(j, m->name, t);
	else
		write_absent(j, m, TEXT("\"\""));
}

static void write_number(struct json *j, const struct member *m, int64_t n)
{
	char iso[ISO_OFFSET_LEN + 1];

	if (member_int_is_none(m, n)) {
		write_absent(j, m, TEXT("0"));
	} else if (m->kind == MEMBER_TIME) {
		if (m->flags & MEMBER_OFFSET)
			clock_format_iso_offset(n, iso);
		else
			clock_format_iso(n, iso);
		json_member_str(j, m->name, iso);
	} else {
		json_member_int(j, m->name, n);
	}
}

static void write_real(struct json *j, const struct member *m, double d)
{
	if (member_real_is_none(m, d)) {
		write_absent(j, m, TEXT("0"));
		return;
	}
	json_key(j, m->name);
	json_double(j, d);
}

/* From the bytes: a tree that was unpacked from them says the same. */
static void write_packed(struct json *j, const struct member *m, const struct packed *packed)
{
	if (!packed->bytes.data && !packed->value) {
		write_absent(j, m, TEXT("{}"));
		return;
	}
	json_key(j, m->name);
	if (packed->bytes.data)
		json_packed(j, packed->bytes);
	else
		json_value(j, packed->value);
}

static void write_texts(struct json *j, const struct member *m, const struct texts *t)
{
	json_key(j, m->name);
	json_begin_array(j);
	for (unsigned i = 0; i < t->n; i++)
		json_text(j, t->items[i]);
	json_end_array(j);
}

static void write_lines(struct json *j, const struct member *m, struct text lines)
{
	struct text line;

	json_key(j, m->name);
	json_begin_array(j);
	while (member_next_line(&lines, &line))
		json_text(j, line);
	json_end_array(j);
}

static void write_object(struct json *j, const struct member *m, struct text object)
{
	if (object.len == 0) {
		write_absent(j, m, TEXT("{}"));
		return;
	}
	json_key(j, m->name);
	json_raw(j, object.data, object.len);
}

static void write_env(struct json *j, const struct member *m, struct text env)
{
	struct text variable;

	json_key(j, m->name);
	json_begin_array(j);
	while (member_next_variable(&env, &variable))
		json_text(j, member_variable_name(variable));
	json_end_array(j);
}

void json_noun_member(struct json *j, const struct member *m, const void *noun, size_t cut)
{
	const void *at = member_at(m, noun);

	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
	case MEMBER_BLOB:
		write_text(j, m, member_shown(m, *(const struct text *)at, cut));
		break;
	case MEMBER_LINES:
		write_lines(j, m, *(const struct text *)at);
		break;
	case MEMBER_JSON:
		write_object(j, m, *(const struct text *)at);
		break;
	case MEMBER_ENV:
		write_env(j, m, *(const struct text *)at);
		break;
	case MEMBER_TEXTS:
		write_texts(j, m, at);
		break;
	case MEMBER_PACKED:
		write_packed(j, m, at);
		break;
	case MEMBER_INT:
	case MEMBER_TIME:
		write_number(j, m, *(const int64_t *)at);
		break;
	case MEMBER_REAL:
		write_real(j, m, *(const double *)at);
		break;
	case MEMBER_BOOL:
		json_member_bool(j, m->name, *(const bool *)at);
		break;
	case MEMBER_ENUM:
		write_text(j, m, text_of(member_word(m, noun)));
		break;
	}
}

void json_members(struct json *j, const struct schema *p, struct selection s, const void *noun,
		  size_t cut)
{
	schema_each(m, p)
	{
		if (m->name && member_is_in(m, s))
			json_noun_member(j, m, noun, cut);
	}
}

void json_noun(struct json *j, const struct schema *p, struct selection s, const void *noun,
	       size_t cut)
{
	json_begin_object(j);
	json_members(j, p, s, noun, cut);
	json_end_object(j);
}

void json_nouns(struct json *j, const char *key, const struct schema *p, const void *nouns,
		unsigned n)
{
	json_member_array(j, key);
	for (unsigned i = 0; i < n; i++)
		json_noun(j, p, (struct selection) {0}, (const char *)nouns + i * p->size, 0);
	json_end_array(j);
}
