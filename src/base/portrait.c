#include "base/portrait.h"

#include <errno.h>

#include "base/clock.h"
#include "base/record.h"
#include "base/utf8.h"

int64_t member_none_int(const struct member *m)
{
	switch ((enum member_none)m->none) {
	case NONE_IS_NEGATIVE:
		return -1;
	case NONE_IS_MAX:
		return INT64_MAX;
	case NONE_IS_ZERO:
	case NONE_IS_NOTHING:
		break;
	}
	return 0;
}

const char *member_word(const struct member *m, const void *noun)
{
	unsigned value = *(const unsigned *)member_at(m, noun);

	return value < m->n_names ? m->names[value] : NULL;
}

bool member_find_word(const char *const *names, unsigned n, struct text word, unsigned *ret_place)
{
	for (unsigned i = 0; i < n; i++) {
		if (names[i] && text_is(word, names[i])) {
			*ret_place = i;
			return true;
		}
	}
	return false;
}

struct text member_shown(const struct member *m, struct text t, size_t cut)
{
	if (cut > 0 && t.len > cut && (m->flags & MEMBER_CUT))
		t.len = utf8_whole(t.data, cut);
	return t;
}

size_t portrait_bytes(const struct portrait *p, const void *noun)
{
	size_t n = 0;

	portrait_each (m, p) {
		const struct text *t = member_bytes(m, (void *)noun);

		n += t ? t->len : 0;
	}
	return n;
}

int portrait_copy(const struct portrait *p, struct arena *a, void *noun)
{
	portrait_each (m, p) {
		struct text *t = member_bytes(m, noun);

		if (t && t->data && arena_copy_text(a, *t, t) != 0)
			return -ENOMEM;
	}
	return 0;
}

/* ---- variables ---- */

bool member_next_variable(struct text *env, struct text *ret_variable)
{
	size_t n;

	if (env->len == 0)
		return false;
	*ret_variable = (struct text) {.data = env->data, .len = strnlen(env->data, env->len)};
	n = ret_variable->len < env->len ? ret_variable->len + 1 : env->len;
	env->data += n;
	env->len -= n;
	return true;
}

struct text member_variable_name(struct text variable)
{
	const char *equals = memchr(variable.data, '=', variable.len);

	if (equals)
		variable.len = (size_t)(equals - variable.data);
	return variable;
}

bool member_next_line(struct text *lines, struct text *ret_line)
{
	const char *end = lines->data + lines->len;
	const char *at = lines->data;

	while (at < end && *at == '\n')
		at++;
	if (at == end)
		return false;
	ret_line->data = at;
	at = memchr(at, '\n', (size_t)(end - at));
	at = at ? at : end;
	ret_line->len = (size_t)(at - ret_line->data);
	*lines = (struct text) {.data = at, .len = (size_t)(end - at)};
	return true;
}

/* ---- into a record ---- */

static void record_absent(struct record *r, const struct member *m)
{
	if (m->absent == ABSENT_EMPTY)
		record_text(r, m->name, TEXT(""));
	else if (m->absent == ABSENT_NULL)
		record_null(r, m->name);
}

static void record_bytes(struct record *r, const struct member *m, struct text t, size_t cut)
{
	if (!t.data)
		record_absent(r, m);
	else
		record_text(r, m->name, member_shown(m, t, cut));
}

static void record_tree(struct record *r, const struct member *m, const struct value *v)
{
	if (v)
		record_value(r, m->name, v);
	else
		record_absent(r, m);
}

static void record_number(struct record *r, const struct member *m, int64_t n)
{
	char iso[ISO_LEN + 1];

	if (member_int_is_none(m, n)) {
		record_absent(r, m);
	} else if (m->kind == MEMBER_TIME) {
		clock_format_iso(n, iso);
		record_text(r, m->name, text_of(iso));
	} else {
		record_int(r, m->name, n);
	}
}

static void record_member(struct record *r, const struct member *m, const void *noun, size_t cut)
{
	const void *at = member_at(m, noun);

	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
	case MEMBER_BLOB:
		record_bytes(r, m, *(const struct text *)at, cut);
		break;
	case MEMBER_PACKED:
		record_tree(r, m, ((const struct packed *)at)->value);
		break;
	case MEMBER_INT:
	case MEMBER_TIME:
		record_number(r, m, member_int(m, noun));
		break;
	case MEMBER_REAL:
		if (member_real_is_none(m, *(const double *)at))
			record_absent(r, m);
		else
			record_double(r, m->name, *(const double *)at);
		break;
	case MEMBER_BOOL:
		record_bool(r, m->name, *(const bool *)at);
		break;
	case MEMBER_ENUM:
		record_bytes(r, m, text_of(member_word(m, noun)), 0);
		break;
	case MEMBER_TEXTS:
		if (((const struct texts *)at)->items)
			record_texts(r, m->name, *(const struct texts *)at);
		else
			record_absent(r, m);
		break;
	case MEMBER_LINES:
	case MEMBER_JSON:
	case MEMBER_ENV:
		/* Events never contain one. */
		break;
	}
}

void record_members(struct record *r, const struct portrait *p, struct selection s,
		    const void *noun, size_t cut)
{
	portrait_each (m, p) {
		if (m->name && member_is_in(m, s))
			record_member(r, m, noun, cut);
	}
}
