/*
 *	null false true   n f t
 *	number string     # LENGTH bytes    " LENGTH bytes
 *	array             [ COUNT value...
 *	object            { COUNT (LENGTH key value)...
 *
 * A length or count has seven bits per byte, least significant first, with the top bit set in all
 * but the last byte. It is never longer than necessary, so that each tree has exactly one form.
 */
#include "base/pack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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
	if (depth > PACKED_DEPTH_MAX && out->err == 0)
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

/* ---- packing member by member ---- */

enum { MEMBERS_MAX = 127 }; /* a length of one byte */

void packer_begin(struct packer *p, struct buf *out)
{
	buf_add_char(out, marks[VALUE_OBJECT]);
	*p = (struct packer) {.out = out, .at = out->len};
	buf_add_char(out, 0);
}

void packer_end(struct packer *p)
{
	if (p->n > MEMBERS_MAX && p->out->err == 0)
		p->out->err = -EMSGSIZE;
	if (p->out->err == 0)
		p->out->data[p->at] = (char)p->n;
}

void packer_key(struct packer *p, const char *key)
{
	size_t len = strlen(key);

	p->n++;
	add_length(p->out, (uint32_t)len);
	buf_add(p->out, key, len);
}

static void add_bytes(struct buf *out, enum value_kind kind, const char *data, size_t len)
{
	if (len > UINT32_MAX) {
		out->err = -EMSGSIZE;
		return;
	}
	buf_add_char(out, marks[kind]);
	add_length(out, (uint32_t)len);
	buf_add(out, data, len);
}

void packer_text(struct packer *p, const char *key, struct text t)
{
	packer_key(p, key);
	if (t.data)
		add_bytes(p->out, VALUE_STRING, t.data, t.len);
	else
		buf_add_char(p->out, marks[VALUE_NULL]);
}

void packer_texts(struct packer *p, const char *key, struct texts t)
{
	packer_key(p, key);
	buf_add_char(p->out, marks[VALUE_ARRAY]);
	add_length(p->out, t.n);
	for (unsigned i = 0; i < t.n; i++)
		add_bytes(p->out, VALUE_STRING, t.items[i].data, t.items[i].len);
}

void packer_given(struct packer *p, const char *key, struct text t)
{
	if (t.data)
		packer_text(p, key, t);
}

void packer_int(struct packer *p, const char *key, int64_t n)
{
	char text[24];

	packer_key(p, key);
	add_bytes(p->out, VALUE_NUMBER, text, (size_t)snprintf(text, sizeof(text), "%" PRId64, n));
}

void packer_bool(struct packer *p, const char *key, bool b)
{
	packer_key(p, key);
	buf_add_char(p->out, marks[b ? VALUE_TRUE : VALUE_FALSE]);
}

void packer_packed(struct packer *p, const char *key, struct text packed)
{
	packer_key(p, key);
	buf_add(p->out, packed.data, packed.len);
}

/* ---- reading ---- */

static size_t left(const struct packed_reader *r)
{
	return (size_t)(r->end - r->at);
}

static int take_length(struct packed_reader *r, uint32_t *ret)
{
	uint64_t n = 0;

	for (unsigned shift = 0; shift < 35 && r->at < r->end; shift += 7) {
		unsigned char byte = (unsigned char)*r->at++;

		n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		/* A zero last byte would only make it longer. */
		if (n > UINT32_MAX || (byte == 0 && shift > 0))
			return -EBADMSG;
		*ret = (uint32_t)n;
		return 0;
	}
	return -EBADMSG;
}

int packed_take_text(struct packed_reader *r, struct text *ret)
{
	uint32_t n;

	if (take_length(r, &n) != 0 || n > left(r))
		return -EBADMSG;
	*ret = (struct text) {.data = r->at, .len = n};
	r->at += n;
	return 0;
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* Must be spelled as in JSON: these bytes are written as they are when the tree becomes text. */
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

int packed_take(struct packed_reader *r, struct packed_item *ret)
{
	const char *mark = left(r) > 0 ? memchr(marks, *r->at++, sizeof(marks)) : NULL;

	if (!mark)
		return -EBADMSG;
	*ret = (struct packed_item) {.kind = (enum value_kind)(mark - marks)};
	if (ret->kind < VALUE_NUMBER)
		return 0;
	if (ret->kind >= VALUE_ARRAY) {
		/* Each child takes at least one byte. */
		return take_length(r, &ret->n) != 0 || ret->n > left(r) ? -EBADMSG : 0;
	}
	if (packed_take_text(r, &ret->text) != 0)
		return -EBADMSG;
	return ret->kind == VALUE_STRING || is_number(ret->text.data, ret->text.len) ? 0 : -EBADMSG;
}

static int pass_over(struct packed_reader *r, unsigned depth)
{
	struct packed_item item;
	struct text key;

	if (depth > PACKED_DEPTH_MAX || packed_take(r, &item) != 0)
		return -EBADMSG;
	for (uint32_t i = 0; i < item.n; i++) {
		if (item.kind == VALUE_OBJECT && packed_take_text(r, &key) != 0)
			return -EBADMSG;
		if (pass_over(r, depth + 1) != 0)
			return -EBADMSG;
	}
	return 0;
}

bool packed_is_object(struct text packed)
{
	struct packed_reader r = packed_reader(packed);

	return packed.len > 0 && packed.data[0] == marks[VALUE_OBJECT] && pass_over(&r, 0) == 0 &&
	       r.at == r.end;
}

struct text packed_find(struct text packed, const char *key)
{
	struct packed_reader r = packed_reader(packed);
	struct text found = {0};
	struct packed_item object;

	if (packed_take(&r, &object) != 0 || object.kind != VALUE_OBJECT)
		return found;
	for (uint32_t i = 0; i < object.n; i++) {
		struct text name;
		const char *begin;

		if (packed_take_text(&r, &name) != 0)
			return (struct text) {0};
		begin = r.at;
		if (pass_over(&r, 1) != 0)
			return (struct text) {0};
		if (text_is(name, key))
			found = (struct text) {.data = begin, .len = (size_t)(r.at - begin)};
	}
	return found;
}

struct text packed_text(struct text packed)
{
	struct packed_reader r = packed_reader(packed);
	struct packed_item item;

	return packed_take(&r, &item) == 0 && item.kind == VALUE_STRING ? item.text
									: (struct text) {0};
}

/* ---- unpacking ---- */

static int unpack(struct arena *a, struct packed_reader *r, unsigned depth, struct value **ret);

static int unpack_children(struct arena *a, struct packed_reader *r, struct value *parent,
			   unsigned depth)
{
	struct value **link = &parent->first;

	for (uint32_t i = 0; i < parent->len; i++) {
		struct text key = {0};
		int e = parent->kind == VALUE_OBJECT ? packed_take_text(r, &key) : 0;

		if (e == 0)
			e = unpack(a, r, depth + 1, link);
		if (e != 0)
			return e;
		(*link)->key = key.data;
		(*link)->key_len = (uint32_t)key.len;
		link = &(*link)->next;
	}
	return 0;
}

static int unpack(struct arena *a, struct packed_reader *r, unsigned depth, struct value **ret)
{
	struct packed_item item;
	struct value *v;

	if (depth > PACKED_DEPTH_MAX || packed_take(r, &item) != 0)
		return -EBADMSG;
	v = arena_zalloc(a, sizeof(*v));
	if (!v)
		return -ENOMEM;
	v->kind = (uint8_t)item.kind;
	*ret = v;
	if (item.kind >= VALUE_ARRAY) {
		v->len = item.n;
		return unpack_children(a, r, v, depth);
	}
	v->text = item.text.data;
	v->len = (uint32_t)item.text.len;
	return 0;
}

int value_unpack(struct arena *a, struct text bytes, struct value **ret_value)
{
	struct packed_reader reader = packed_reader(bytes);
	struct value *v;
	int r = unpack(a, &reader, 0, &v);

	if (r == 0 && reader.at != reader.end)
		r = -EBADMSG;
	if (r == 0)
		*ret_value = v;
	return r;
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
