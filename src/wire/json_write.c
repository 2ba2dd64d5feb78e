/* The writer. Whatever it is given, it writes JSON. */
#include "wire/json.h"

#include <errno.h>
#include <math.h>

#include "base/pack.h"
#include "base/utf8.h"

static inline void separate(struct json *j)
{
	if (j->comma)
		buf_add_char(j->out, ',');
	j->comma = true;
}

void json_begin_object(struct json *j)
{
	separate(j);
	buf_add_char(j->out, '{');
	j->comma = false;
}

void json_end_object(struct json *j)
{
	buf_add_char(j->out, '}');
	j->comma = true;
}

void json_begin_array(struct json *j)
{
	separate(j);
	buf_add_char(j->out, '[');
	j->comma = false;
}

void json_end_array(struct json *j)
{
	buf_add_char(j->out, ']');
	j->comma = true;
}

static void add_escaped(struct buf *out, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	static const char short_form[128] = {
		['"'] = '"',  ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f',
		['\n'] = 'n', ['\r'] = 'r',  ['\t'] = 't',
	};
	char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};

	if (short_form[c & 127]) {
		text[1] = short_form[c & 127];
		buf_add(out, text, 2);
	} else {
		buf_add(out, text, 6);
	}
}

/* The bytes after a run of plain ones: an escape, a sequence, or neither. */
static const char *add_special(struct buf *out, const char *p, const char *end)
{
	size_t n;

	if ((unsigned char)*p < 0x80) {
		add_escaped(out, (unsigned char)*p);
		return p + 1;
	}
	n = utf8_sequence(p, end);
	if (n > 0)
		buf_add(out, p, n);
	else
		buf_add_str(out, "\xef\xbf\xbd"); /* U+FFFD: file names may be anything */
	return p + (n > 0 ? n : 1);
}

static void add_quoted(struct buf *out, const char *p, size_t len)
{
	const char *end = p + len;

	buf_add_char(out, '"');
	while (p < end) {
		const char *special = skip_plain(p, end);

		buf_add(out, p, (size_t)(special - p));
		p = special;
		if (p < end)
			p = add_special(out, p, end);
	}
	buf_add_char(out, '"');
}

static inline void add_key(struct json *j, const char *key, size_t len)
{
	separate(j);
	add_quoted(j->out, key, len);
	buf_add_char(j->out, ':');
	j->comma = false;
}

void json_key(struct json *j, const char *key)
{
	add_key(j, key, strlen(key));
}

void json_key_text(struct json *j, struct text key)
{
	add_key(j, key.data, key.len);
}

void json_null(struct json *j)
{
	json_raw(j, "null", 4);
}

void json_bool(struct json *j, bool b)
{
	json_raw(j, b ? "true" : "false", b ? 4 : 5);
}

void json_int(struct json *j, int64_t n)
{
	separate(j);
	buf_add_int(j->out, n);
}

void json_uint(struct json *j, uint64_t n)
{
	separate(j);
	buf_add_uint(j->out, n);
}

void json_double(struct json *j, double d)
{
	char text[VALUE_DOUBLE_MAX];

	if (isfinite(d))
		json_raw(j, text, value_format_double(text, d));
	else
		json_null(j);
}

void json_text(struct json *j, struct text t)
{
	separate(j);
	if (t.data)
		add_quoted(j->out, t.data, t.len);
	else
		buf_add(j->out, "null", 4);
}

void json_str(struct json *j, const char *s)
{
	json_text(j, text_of(s));
}

void json_raw(struct json *j, const char *text, size_t len)
{
	separate(j);
	buf_add(j->out, text, len);
}

static void json_write_write_key(struct json *j, const struct value *v)
{
	if (v->key)
		add_key(j, v->key, v->key_len);
}

/* As deep as the reader's limit let the tree become. */
static void write_tree(struct json *j, const struct value *v)
{
	switch ((enum value_kind)v->kind) {
	case VALUE_NULL:
		json_null(j);
		break;
	case VALUE_FALSE:
	case VALUE_TRUE:
		json_bool(j, v->kind == VALUE_TRUE);
		break;
	case VALUE_NUMBER:
		json_raw(j, v->text, v->len);
		break;
	case VALUE_STRING:
		json_text(j, value_text(v));
		break;
	case VALUE_ARRAY:
	case VALUE_OBJECT:
		if (v->kind == VALUE_OBJECT)
			json_begin_object(j);
		else
			json_begin_array(j);
		value_each (child, v) {
			json_write_write_key(j, child);
			write_tree(j, child);
		}
		if (v->kind == VALUE_OBJECT)
			json_end_object(j);
		else
			json_end_array(j);
		break;
	}
}

void json_value(struct json *j, const struct value *v)
{
	if (v)
		write_tree(j, v);
	else
		json_null(j);
}

static int write_packed(struct json *j, struct packed_reader *r, unsigned depth);

static void write_null(struct json *j, const struct packed_name *name)
{
	if (name->null == NULL_IS_LEFT_OUT)
		return;
	add_key(j, name->shown.data, name->shown.len);
	if (name->null == NULL_IS_EMPTY)
		json_text(j, TEXT(""));
	else
		json_null(j);
}

/* Writes the value under each of its names. */
static int write_renamed(struct json *j, struct packed_reader *r, const struct packed_name *name)
{
	const struct packed_reader value = *r;
	const struct text stored = name->stored;
	struct packed_item item;

	if (packed_take(r, &item) != 0)
		return -EBADMSG;
	for (; text_equal(name->stored, stored); name++) {
		if (item.kind == VALUE_NULL) {
			write_null(j, name);
			continue;
		}
		add_key(j, name->shown.data, name->shown.len);
		*r = value;
		if (write_packed(j, r, 1) != 0)
			return -EBADMSG;
	}
	return 0;
}

static int write_children(struct json *j, struct packed_reader *r, const struct packed_item *parent,
			  const struct packed_name *names, unsigned depth)
{
	for (uint32_t i = 0; i < parent->n; i++) {
		const struct packed_name *name;
		struct text key;

		if (parent->kind == VALUE_OBJECT) {
			if (packed_take_text(r, &key) != 0)
				return -EBADMSG;
			name = packed_name_find(names, key);
			if (name && write_renamed(j, r, name) != 0)
				return -EBADMSG;
			if (name)
				continue;
			add_key(j, key.data, key.len);
		}
		if (write_packed(j, r, depth + 1) != 0)
			return -EBADMSG;
	}
	return 0;
}

static int write_packed(struct json *j, struct packed_reader *r, unsigned depth)
{
	struct packed_item item;
	int e;

	if (depth > PACKED_DEPTH_MAX || packed_take(r, &item) != 0)
		return -EBADMSG;
	switch (item.kind) {
	case VALUE_NULL:
		json_null(j);
		return 0;
	case VALUE_FALSE:
	case VALUE_TRUE:
		json_bool(j, item.kind == VALUE_TRUE);
		return 0;
	case VALUE_NUMBER:
		json_raw(j, item.text.data, item.text.len);
		return 0;
	case VALUE_STRING:
		json_text(j, item.text);
		return 0;
	case VALUE_ARRAY:
		json_begin_array(j);
		e = write_children(j, r, &item, NULL, depth);
		json_end_array(j);
		return e;
	case VALUE_OBJECT:
		json_begin_object(j);
		e = write_children(j, r, &item, NULL, depth);
		json_end_object(j);
		return e;
	}
	return -EBADMSG;
}

static int write_object_as(struct json *j, struct packed_reader *r, const struct packed_name *names)
{
	struct packed_item object;
	int e;

	if (packed_take(r, &object) != 0 || object.kind != VALUE_OBJECT)
		return -EBADMSG;
	json_begin_object(j);
	e = write_children(j, r, &object, names, 0);
	json_end_object(j);
	return e;
}

void json_packed_as(struct json *j, struct text packed, const struct packed_name *names)
{
	struct packed_reader r = packed_reader(packed);
	const struct json before = *j;
	size_t len = j->out->len;
	int e = names ? write_object_as(j, &r, names) : write_packed(j, &r, 0);

	if (e == 0 && r.at == r.end)
		return;
	*j = before;
	j->out->len = len;
	json_null(j);
}

void json_packed(struct json *j, struct text packed)
{
	json_packed_as(j, packed, NULL);
}

int json_compact(struct arena *a, const struct value *v, struct text *ret_text)
{
	struct buf out;
	struct json j;
	char *copy;
	int r;

	/* No character takes more than six bytes when written, and none comes from nothing. */
	buf_init(&out, 6 * (size_t)v->raw_len + 8);
	j = json_writer(&out);
	json_value(&j, v);
	copy = out.err == 0 ? arena_copy(a, out.data, out.len) : NULL;
	r = out.err != 0 ? out.err : copy ? 0 : -ENOMEM;
	if (r == 0)
		*ret_text = (struct text) {.data = copy, .len = out.len};
	buf_done(&out);
	return r;
}

/* How many bytes at p stand for one that is escaped; 0: it stays. */
static inline size_t html_special(const char *p, size_t left)
{
	if (*p == '<' || *p == '>' || *p == '&')
		return 1;
	return left >= 3 && memcmp(p, "\xe2\x80", 2) == 0 && (p[2] == '\xa8' || p[2] == '\xa9') ? 3
												: 0;
}

static bool may_be_special(const struct buf *text)
{
	return memchr(text->data, '<', text->len) || memchr(text->data, '>', text->len) ||
	       memchr(text->data, '&', text->len) || memchr(text->data, 0xe2, text->len);
}

static void copy_escaped(char *to, const char *from, size_t len)
{
	static const char hex[] = "0123456789abcdef";

	while (len > 0) {
		size_t n = html_special(from, len);
		unsigned char c = (unsigned char)(n == 3 ? from[2] - 0x80 : *from);

		if (n == 0) {
			*to++ = *from++;
			len--;
			continue;
		}
		memcpy(to, n == 3 ? "\\u20" : "\\u00", 4);
		to[4] = hex[c >> 4];
		to[5] = hex[c & 15];
		to += 6;
		from += n;
		len -= n;
	}
}

void json_escape_html(struct buf *text)
{
	size_t more = 0;
	size_t len = text->len;

	if (text->err != 0 || len == 0 || !may_be_special(text))
		return;
	for (size_t at = 0; at < len; at++) {
		size_t n = html_special(text->data + at, len - at);

		more += n > 0 ? 6 - n : 0;
	}
	if (more == 0 || buf_reserve(text, more) != 0)
		return;
	/* Backwards to make room, then forward: no byte is written before it was read. */
	memmove(text->data + more, text->data, len);
	copy_escaped(text->data, text->data + more, len);
	text->len = len + more;
}

void json_member_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

void json_member_text(struct json *j, const char *key, struct text t)
{
	json_key(j, key);
	json_text(j, t);
}

void json_member_int(struct json *j, const char *key, int64_t n)
{
	json_key(j, key);
	json_int(j, n);
}

void json_member_uint(struct json *j, const char *key, uint64_t n)
{
	json_key(j, key);
	json_uint(j, n);
}

void json_member_bool(struct json *j, const char *key, bool b)
{
	json_key(j, key);
	json_bool(j, b);
}

void json_pairs(struct json *j, const struct json_pair *pairs, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct json_pair *p = &pairs[i];

		switch (p->kind) {
		case PAIR_TEXT:
			json_member_text(j, p->key, p->text);
			break;
		case PAIR_STR:
			json_member_str(j, p->key, p->str);
			break;
		case PAIR_INT:
			json_member_int(j, p->key, p->n);
			break;
		case PAIR_UINT:
			json_member_uint(j, p->key, p->u);
			break;
		case PAIR_BOOL:
			json_member_bool(j, p->key, p->b);
			break;
		}
	}
}
