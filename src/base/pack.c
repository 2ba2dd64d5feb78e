/*
 *	null false true   n f t
 *	number string     # LENGTH bytes    " LENGTH bytes
 *	array             [ COUNT value...
 *	object            { COUNT (LENGTH key value)...
 *
 * A length or count is seven bits in a byte, the least first, the top bit set on all
 * but the last, and never longer than it must be: one tree has one form.
 */
#include "base/pack.h"

#include <errno.h>

/* What JSON text may nest, and what is put around it. */
enum { DEPTH_MAX = 1100 };

static const char marks[] = {
	[VALUE_NULL] = 'n',   [VALUE_FALSE] = 'f', [VALUE_TRUE] = 't',   [VALUE_NUMBER] = '#',
	[VALUE_STRING] = '"', [VALUE_ARRAY] = '[', [VALUE_OBJECT] = '{',
};

/* ---- packing ---- */

static void add_length(struct buf *out, uint32_t n)
{
	for (; n >= 0x80; n >>= 7)
		buf_add_char(out, (char)(n | 0x80));
	buf_add_char(out, (char)n);
}

static void pack(struct buf *out, const struct value *v, unsigned depth)
{
	if (depth > DEPTH_MAX && out->err == 0)
		out->err = -EMSGSIZE;
	if (out->err != 0)
		return;
	buf_add_char(out, marks[v->kind]);
	if (v->kind < VALUE_NUMBER)
		return;
	add_length(out, v->len);
	if (v->kind == VALUE_NUMBER || v->kind == VALUE_STRING) {
		buf_add(out, v->text, v->len);
		return;
	}
	value_each (child, v) {
		if (v->kind == VALUE_OBJECT) {
			add_length(out, child->key_len);
			buf_add(out, child->key, child->key_len);
		}
		pack(out, child, depth + 1);
	}
}

void value_pack(struct buf *out, const struct value *v)
{
	static const struct value null = {.kind = VALUE_NULL};

	pack(out, v ? v : &null, 0);
}

/* ---- unpacking ---- */

struct unpacker {
	struct arena *arena;
	const char *at;
	const char *end;
};

static size_t left(const struct unpacker *u)
{
	return (size_t)(u->end - u->at);
}

static int take_length(struct unpacker *u, uint32_t *ret)
{
	uint64_t n = 0;

	for (unsigned shift = 0; shift < 35 && u->at < u->end; shift += 7) {
		unsigned char byte = (unsigned char)*u->at++;

		n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		/* A last byte of nothing only makes it longer. */
		if (n > UINT32_MAX || (byte == 0 && shift > 0))
			return -EBADMSG;
		*ret = (uint32_t)n;
		return 0;
	}
	return -EBADMSG;
}

static int take_bytes(struct unpacker *u, const char **ret_data, uint32_t *ret_len)
{
	uint32_t n;
	int r;

	r = take_length(u, &n);
	if (r != 0)
		return r;
	if (n > left(u))
		return -EBADMSG;
	*ret_data = u->at;
	*ret_len = n;
	u->at += n;
	return 0;
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* As JSON spells it: who writes the tree as text will put these bytes there as they are. */
static bool is_number(const char *p, size_t len)
{
	const char *end = p + len;
	const char *digits;

	p += p < end && *p == '-';
	digits = p;
	p = skip_digits(p, end);
	if (p == digits || (*digits == '0' && p - digits > 1))
		return false;
	if (p < end && *p == '.') {
		digits = ++p;
		p = skip_digits(p, end);
		if (p == digits)
			return false;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		p += p < end && (*p == '+' || *p == '-');
		digits = p;
		p = skip_digits(p, end);
		if (p == digits)
			return false;
	}
	return p == end;
}

static int unpack(struct unpacker *u, unsigned depth, struct value **ret);

/* A member or an element. */
static int unpack_child(struct unpacker *u, bool keyed, unsigned depth, struct value **ret)
{
	const char *key = NULL;
	uint32_t key_len = 0;
	struct value *v;
	int r = 0;

	if (keyed)
		r = take_bytes(u, &key, &key_len);
	if (r == 0)
		r = unpack(u, depth, &v);
	if (r != 0)
		return r;
	v->key = key;
	v->key_len = key_len;
	*ret = v;
	return 0;
}

static int unpack_children(struct unpacker *u, struct value *parent, unsigned depth)
{
	struct value **link = &parent->first;
	int r;

	r = take_length(u, &parent->len);
	if (r != 0)
		return r;
	if (parent->len > left(u)) /* each takes a byte at least */
		return -EBADMSG;
	for (uint32_t i = 0; i < parent->len && r == 0; i++) {
		r = unpack_child(u, parent->kind == VALUE_OBJECT, depth + 1, link);
		if (r == 0)
			link = &(*link)->next;
	}
	return r;
}

static bool kind_of(char mark, uint8_t *ret)
{
	const char *found = memchr(marks, mark, sizeof(marks));

	if (found)
		*ret = (uint8_t)(found - marks);
	return found != NULL;
}

static int unpack_rest(struct unpacker *u, struct value *v, unsigned depth)
{
	int r;

	switch ((enum value_kind)v->kind) {
	case VALUE_NULL:
	case VALUE_FALSE:
	case VALUE_TRUE:
		return 0;
	case VALUE_NUMBER:
	case VALUE_STRING:
		r = take_bytes(u, &v->text, &v->len);
		if (r == 0 && v->kind == VALUE_NUMBER && !is_number(v->text, v->len))
			r = -EBADMSG;
		return r;
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		return unpack_children(u, v, depth);
	}
	return -EBADMSG;
}

static int unpack(struct unpacker *u, unsigned depth, struct value **ret)
{
	struct value *v;
	uint8_t kind;
	int r;

	if (depth > DEPTH_MAX || left(u) == 0 || !kind_of(*u->at++, &kind))
		return -EBADMSG;
	v = arena_zalloc(u->arena, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->kind = kind;
	r = unpack_rest(u, v, depth);
	if (r == 0)
		*ret = v;
	return r;
}

int value_unpack(struct arena *a, struct text bytes, struct value **ret_value)
{
	struct unpacker u = {a, bytes.data, bytes.data + bytes.len};
	struct value *v;
	int r;

	if (!bytes.data)
		return -EBADMSG;
	r = unpack(&u, 0, &v);
	if (r != 0)
		return r;
	if (u.at != u.end)
		return -EBADMSG;
	*ret_value = v;
	return 0;
}

int value_copy(struct arena *a, const struct value *v, const struct value **ret_copy)
{
	struct buf packed;
	struct value *copy = NULL;
	char *bytes;
	int r;

	buf_init(&packed, a->max);
	value_pack(&packed, v);
	r = packed.err;
	bytes = r == 0 ? arena_copy(a, packed.data, packed.len) : NULL;
	if (r == 0)
		r = bytes ? value_unpack(a, (struct text) {bytes, packed.len}, &copy) : -ENOMEM;
	buf_done(&packed);
	if (r == 0)
		*ret_copy = copy;
	return r;
}
