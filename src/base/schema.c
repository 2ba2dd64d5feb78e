#include "base/schema.h"

#include <errno.h>

#include "base/clock.h"
#include "base/pack.h"
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

size_t schema_bytes(const struct schema *p, const void *noun)
{
	size_t n = 0;

	schema_each(m, p)
	{
		const struct text *t = member_bytes(m, (void *)noun);

		n += t ? t->len : 0;
	}
	return n;
}

int schema_copy(const struct schema *p, struct arena *a, void *noun)
{
	schema_each(m, p)
	{
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
	const char *at = lines->data;
	const char *end;

	if (lines->len == 0)
		return false; /* data may be NULL, and C11 defines no NULL + 0 */
	end = at + lines->len;
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

/* ---- packed ---- */

static void pack_absent(struct packer *p, const struct member *m, struct text empty)
{
	if (m->absent == ABSENT_EMPTY)
		packer_packed(p, m->name, empty);
	else if (m->absent == ABSENT_NULL)
		packer_text(p, m->name, (struct text) {0});
}

static void pack_text(struct packer *p, const struct member *m, struct text t)
{
	if (t.data)
		packer_text(p, m->name, t);
	else
		pack_absent(p, m, TEXT(PACKED_NO_TEXT));
}

static void pack_tree(struct packer *p, const struct member *m, const struct packed *tree)
{
	if (tree->bytes.data) {
		packer_packed(p, m->name, tree->bytes);
	} else if (tree->value) {
		packer_key(p, m->name);
		value_pack(p->out, tree->value);
	} else {
		pack_absent(p, m, TEXT(PACKED_NO_OBJECT));
	}
}

static void pack_number(struct packer *p, const struct member *m, int64_t n)
{
	char iso[ISO_LEN + 1];

	if (member_int_is_none(m, n)) {
		pack_absent(p, m, TEXT(PACKED_ZERO));
	} else if (m->kind == MEMBER_TIME) {
		clock_format_iso(n, iso);
		packer_text(p, m->name, text_of(iso));
	} else {
		packer_int(p, m->name, n);
	}
}

static void pack_member(struct packer *p, const struct member *m, const void *noun, size_t cut)
{
	const void *at = member_at(m, noun);

	switch ((enum member_kind)m->kind) {
	case MEMBER_TEXT:
	case MEMBER_BLOB:
		pack_text(p, m, member_shown(m, *(const struct text *)at, cut));
		break;
	case MEMBER_PACKED:
		pack_tree(p, m, at);
		break;
	case MEMBER_TEXTS:
		if (((const struct texts *)at)->items)
			packer_texts(p, m->name, *(const struct texts *)at);
		else
			pack_absent(p, m, TEXT(PACKED_NO_ARRAY));
		break;
	case MEMBER_INT:
	case MEMBER_TIME:
		pack_number(p, m, member_int(m, noun));
		break;
	case MEMBER_BOOL:
		packer_bool(p, m->name, *(const bool *)at);
		break;
	case MEMBER_ENUM:
		pack_text(p, m, text_of(member_word(m, noun)));
		break;
	case MEMBER_REAL:
	case MEMBER_LINES:
	case MEMBER_JSON:
	case MEMBER_ENV:
		/* Nothing that is packed has one. */
		break;
	}
}

void packer_members(struct packer *p, const struct schema *schema, struct selection s,
		    const void *noun, size_t cut)
{
	schema_each(m, schema)
	{
		if (m->name && member_is_in(m, s))
			pack_member(p, m, noun, cut);
	}
}
