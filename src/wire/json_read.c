/*
 * The reader: one pass, no recursion. Open arrays and objects stand on a stack
 * of `limits->depth`; children hang on their parent as a list, so nothing is
 * ever moved while a container grows. A scan is the same pass with one value for
 * each level, which the next sibling overwrites.
 */
#include "wire/json.h"

#include <errno.h>

#include "base/utf8.h"

const struct json_limits json_default_limits = {
	.depth = JSON_DEPTH_DEFAULT,
	.values = JSON_VALUES_DEFAULT,
};

struct json_read_scan {
	struct json_member *members;
	unsigned n;
	struct value values[JSON_DEPTH_MAX + 1];
};

struct json_read_reader {
	const char *p;
	const char *end;
	const char *start;
	struct arena *arena;
	struct json_read_scan *scan; /* NULL: a tree is built */
	struct error *error;
	const struct json_limits *limits;
	uint32_t n_values;
	unsigned depth;
	/* open[0..depth) are the containers around the next value. */
	struct value *open[JSON_DEPTH_MAX];
};

static int json_read_bad(const struct json_read_reader *r, const char *what)
{
	return refuse(r->error, REFUSE_PARSE, "%s at byte %zu", what, (size_t)(r->p - r->start));
}

static inline bool json_read_is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static void skip_spaces(struct json_read_reader *r)
{
	while (r->p < r->end && json_read_is_space(*r->p))
		r->p++;
}

/* Between the parts of a message there is hardly ever any. */
static inline void skip_space(struct json_read_reader *r)
{
	if (r->p < r->end && (unsigned char)*r->p <= ' ')
		skip_spaces(r);
}

static int hex4(const char *p)
{
	int n = 0;

	for (int i = 0; i < 4; i++) {
		int c = (unsigned char)p[i];

		if (c >= '0' && c <= '9')
			c -= '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			c = (c | 32) - 'a' + 10;
		else
			return -1;
		n = n << 4 | c;
	}
	return n;
}

/* Checks one escape; r->p is at the backslash and is moved past it. */
static int check_escape(struct json_read_reader *r)
{
	size_t left = (size_t)(r->end - r->p);
	int unit;

	if (left < 2)
		return json_read_bad(r, "unterminated string");
	if (r->p[1] != 'u') {
		if (!memchr("\"\\/bfnrt", r->p[1], 8))
			return json_read_bad(r, "unknown escape sequence");
		r->p += 2;
		return 0;
	}
	unit = left < 6 ? -1 : hex4(r->p + 2);
	if (unit < 0)
		return json_read_bad(r, "\\u must be followed by four hex digits");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return json_read_bad(r, "unpaired surrogate");
	if (unit >= 0xd800 && unit <= 0xdbff) {
		int second = left >= 12 && r->p[6] == '\\' && r->p[7] == 'u' ? hex4(r->p + 8) : -1;

		if (second < 0xdc00 || second > 0xdfff)
			return json_read_bad(r, "unpaired surrogate");
		r->p += 6;
	}
	r->p += 6;
	return 0;
}

/* Finds the end of the string that r->p is in. */
static int scan_string(struct json_read_reader *r, bool *ret_escaped)
{
	bool escaped = false;

	for (;;) {
		size_t n;
		int e;

		r->p = skip_plain(r->p, r->end);
		if (r->p == r->end)
			return json_read_bad(r, "unterminated string");
		if (*r->p == '"')
			break;
		if (*r->p == '\\') {
			escaped = true;
			e = check_escape(r);
			if (e != 0)
				return e;
			continue;
		}
		if ((unsigned char)*r->p < 0x20)
			return json_read_bad(r, "control character in a string");
		n = utf8_sequence(r->p, r->end);
		if (n == 0)
			return json_read_bad(r, "invalid UTF-8");
		r->p += n;
	}
	*ret_escaped = escaped;
	return 0;
}

/* Undoes one escape that check_escape has passed; returns where it ends. */
static const char *unescape_one(const char *p, char *out, size_t *ret_n)
{
	static const char meaning[128] = {
		['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
		['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
	};
	uint32_t c;

	if (p[1] != 'u') {
		out[0] = meaning[(unsigned char)p[1] & 127];
		*ret_n = 1;
		return p + 2;
	}
	c = (uint32_t)hex4(p + 2);
	p += 6;
	if (c >= 0xd800 && c <= 0xdbff) {
		c = 0x10000 + ((c - 0xd800) << 10) + ((uint32_t)hex4(p + 2) - 0xdc00);
		p += 6;
	}
	*ret_n = utf8_encode(out, c);
	return p;
}

static int unescape(struct json_read_reader *r, const char *from, const char *end, struct text *ret)
{
	/* Never longer than the source: the shortest escape of n bytes has n + 1. */
	char *out = arena_alloc(r->arena, (size_t)(end - from));
	char *at = out;

	if (!out)
		return -ENOMEM;
	while (from < end) {
		const char *slash = memchr(from, '\\', (size_t)(end - from));
		size_t n = (size_t)((slash ? slash : end) - from);

		memcpy(at, from, n);
		at += n;
		from += n;
		if (slash) {
			from = unescape_one(from, at, &n);
			at += n;
		}
	}
	*ret = (struct text) {.data = out, .len = (size_t)(at - out)};
	return 0;
}

/* The string that begins at `from`, of which r->p stands on the first byte that is not plain. */
static int read_odd_string(struct json_read_reader *r, const char *from, struct text *ret)
{
	bool escaped = false;
	int e = scan_string(r, &escaped);

	if (e != 0)
		return e;
	*ret = (struct text) {.data = from, .len = (size_t)(r->p - from)};
	r->p++;
	if (escaped && !r->scan)
		return unescape(r, from, from + ret->len, ret);
	return 0;
}

/* r->p stands on the opening quote. */
static inline int read_string(struct json_read_reader *r, struct text *ret)
{
	const char *from = r->p + 1;

	r->p = skip_plain(from, r->end);
	if (r->p == r->end || *r->p != '"')
		return read_odd_string(r, from, ret);
	*ret = (struct text) {.data = from, .len = (size_t)(r->p - from)};
	r->p++;
	return 0;
}

static inline bool at_digit(const struct json_read_reader *r)
{
	return r->p < r->end && *r->p >= '0' && *r->p <= '9';
}

static int need_digits(struct json_read_reader *r)
{
	if (!at_digit(r))
		return json_read_bad(r, "expected a digit");
	while (at_digit(r))
		r->p++;
	return 0;
}

static int read_number(struct json_read_reader *r)
{
	int e;

	if (*r->p == '-')
		r->p++;
	if (r->p < r->end && *r->p == '0') {
		r->p++;
		if (at_digit(r))
			return json_read_bad(r, "number with a leading zero");
	} else {
		e = need_digits(r);
		if (e != 0)
			return e;
	}
	if (r->p < r->end && *r->p == '.') {
		r->p++;
		e = need_digits(r);
		if (e != 0)
			return e;
	}
	if (r->p < r->end && (*r->p | 32) == 'e') {
		r->p++;
		if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
			r->p++;
		return need_digits(r);
	}
	return 0;
}

static int read_word(struct json_read_reader *r, struct value *v)
{
	static const struct {
		const char *word;
		size_t len;
		enum value_kind kind;
	} words[] = {
		{"null", 4, VALUE_NULL},
		{"true", 4, VALUE_TRUE},
		{"false", 5, VALUE_FALSE},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if ((size_t)(r->end - r->p) >= words[i].len &&
		    memcmp(r->p, words[i].word, words[i].len) == 0) {
			v->kind = (uint8_t)words[i].kind;
			r->p += words[i].len;
			return 0;
		}
	}
	return json_read_bad(r, "unexpected character");
}

static int open_container(struct json_read_reader *r, struct value *v)
{
	/* Whether the rest is JSON is unknown: a parse error, not a size. */
	if (r->depth >= r->limits->depth || r->depth >= JSON_DEPTH_MAX)
		return refuse(r->error, REFUSE_PARSE, "nested deeper than %u levels at byte %zu",
			      r->limits->depth, (size_t)(r->p - r->start));
	v->kind = *r->p == '{' ? VALUE_OBJECT : VALUE_ARRAY;
	v->len = 0;
	v->first = NULL;
	r->p++;
	r->open[r->depth++] = v;
	return 0;
}

/* Reads what is at r->p into v; of a container only its opening. */
static int read_one(struct json_read_reader *r, struct value *v)
{
	struct text text;
	int e;

	v->raw = r->p;
	switch (*r->p) {
	case '"':
		e = read_string(r, &text);
		if (e != 0)
			return e;
		v->kind = VALUE_STRING;
		v->text = text.data;
		v->len = (uint32_t)text.len;
		break;
	case '{':
	case '[':
		return open_container(r, v);
	case '-':
	case '0' ... '9':
		e = read_number(r);
		if (e != 0)
			return e;
		v->kind = VALUE_NUMBER;
		v->text = v->raw;
		v->len = (uint32_t)(r->p - v->raw);
		break;
	default:
		v->len = 0;
		v->text = NULL;
		e = read_word(r, v);
		if (e != 0)
			return e;
	}
	v->raw_len = (uint32_t)(r->p - v->raw);
	return 0;
}

static int new_value(struct json_read_reader *r, struct value **ret)
{
	struct value *v;

	if (r->n_values >= r->limits->values)
		return refuse(r->error, REFUSE_TOO_LARGE, "more than %u values", r->limits->values);
	v = r->scan ? &r->scan->values[r->depth] : arena_alloc(r->arena, sizeof(*v));
	if (!v)
		return -ENOMEM;
	r->n_values++;
	v->key = NULL;
	v->key_len = 0;
	v->next = NULL;
	*ret = v;
	return 0;
}

static int read_key(struct json_read_reader *r, struct value *member)
{
	struct text key;
	int e;

	skip_space(r);
	if (r->p == r->end || *r->p != '"')
		return json_read_bad(r, "missing member name");
	e = read_string(r, &key);
	if (e != 0)
		return e;
	member->key = key.data;
	member->key_len = (uint32_t)key.len;
	skip_space(r);
	if (r->p == r->end || *r->p != ':')
		return json_read_bad(r, "missing ':'");
	r->p++;
	return 0;
}

/* One value and, inside an object, its key. */
static int read_child(struct json_read_reader *r, bool keyed, struct value **slot)
{
	struct value *v = NULL;
	int e = new_value(r, &v);

	if (e != 0)
		return e;
	if (keyed) {
		e = read_key(r, v);
		if (e != 0)
			return e;
	}
	skip_space(r);
	if (r->p == r->end)
		return json_read_bad(r, "missing value");
	*slot = v;
	return read_one(r, v);
}

static inline char closing(const struct value *container)
{
	return container->kind == VALUE_OBJECT ? '}' : ']';
}

static void close_container(struct json_read_reader *r, struct value *v)
{
	r->p++;
	v->raw_len = (uint32_t)(r->p - v->raw);
	r->depth--;
}

bool json_source_is(struct text raw, const char *text)
{
	const char *at, *end;
	char decoded[4];
	size_t n;

	if (raw.len < 2 || raw.data[0] != '"')
		return false;
	at = raw.data + 1;
	end = raw.data + raw.len - 1;
	while (at < end) {
		const char *from = at;

		if (*from == '\\') {
			at = unescape_one(from, decoded, &n);
		} else {
			decoded[0] = *from;
			n = 1;
			at++;
		}
		if (decoded[0] == '\0' || strncmp(text, decoded, n) != 0)
			return false;
		text += n;
	}
	return *text == '\0';
}

/* A member of the outermost object ends here. */
static void note_member(const struct json_read_scan *s, const struct value *v)
{
	const struct text key = {.data = v->key - 1, .len = v->key_len + 2};

	for (unsigned i = 0; i < s->n; i++) {
		struct json_member *m = &s->members[i];

		if (!json_source_is(key, m->name))
			continue;
		m->kind = (enum value_kind)v->kind;
		m->raw = (struct text) {.data = v->raw, .len = v->raw_len};
	}
}

/*
 * After a value: steps over the comma to the next one, or closes containers
 * until there is a comma or nothing is open. *slot becomes where the next
 * value hangs, or NULL at the end of the text.
 */
static int step_on(struct json_read_reader *r, struct value *last, struct value ***slot)
{
	while (r->depth > 0) {
		struct value *parent = r->open[r->depth - 1];

		if (r->scan && r->depth == 1 && parent->kind == VALUE_OBJECT)
			note_member(r->scan, last);
		parent->len++;
		skip_space(r);
		if (r->p == r->end)
			return json_read_bad(r, "unterminated array or object");
		if (*r->p == ',') {
			r->p++;
			*slot = &last->next;
			return 0;
		}
		if (*r->p != closing(parent))
			return json_read_bad(r, "expected ',' or the end of the array or object");
		close_container(r, parent);
		last = parent;
	}
	*slot = NULL;
	return 0;
}

static int json_read_read_all(struct json_read_reader *r, struct value **ret_root)
{
	struct value *root = NULL;
	struct value **slot = &root;

	do {
		bool keyed = r->depth > 0 && r->open[r->depth - 1]->kind == VALUE_OBJECT;
		unsigned depth = r->depth;
		struct value *v;
		int e = read_child(r, keyed, slot);

		if (e != 0)
			return e;
		v = *slot;
		if (r->depth > depth) {
			skip_space(r);
			if (r->p == r->end || *r->p != closing(v)) {
				slot = &v->first;
				continue;
			}
			close_container(r, v);
		}
		e = step_on(r, v, &slot);
		if (e != 0)
			return e;
	} while (slot);
	*ret_root = root;
	return 0;
}

static int read_text(struct json_read_reader *r, size_t len, struct value **ret_value)
{
	struct value *root = NULL;
	int e;

	if (len > INT32_MAX)
		return refuse(r->error, REFUSE_TOO_LARGE, "the text is longer than %d bytes",
			      INT32_MAX);
	r->p = r->start;
	r->end = r->start + len;
	r->n_values = 0;
	r->depth = 0;
	e = json_read_read_all(r, &root);
	if (e != 0)
		return e;
	skip_space(r);
	if (r->p != r->end)
		return json_read_bad(r, "unexpected text after the value");
	*ret_value = root;
	return 0;
}

int json_read(struct arena *a, const char *text, size_t len, const struct json_limits *limits,
	      struct value **ret_value, struct error *error)
{
	struct json_read_reader r;

	r.start = text;
	r.arena = a;
	r.scan = NULL;
	r.error = error;
	r.limits = limits;
	return read_text(&r, len, ret_value);
}

/* ---- scanning ---- */

int json_scan(const char *text, size_t len, const struct json_limits *limits,
	      struct json_member *members, unsigned n, struct value *ret_value)
{
	struct value *root = NULL;
	struct json_read_reader r;
	struct json_read_scan s;
	int e;

	for (unsigned i = 0; i < n; i++) {
		members[i].kind = VALUE_NULL;
		members[i].raw = (struct text) {0};
	}
	s.members = members;
	s.n = n;
	r.start = text;
	r.arena = NULL;
	r.scan = &s;
	r.error = NULL;
	r.limits = limits;
	e = read_text(&r, len, &root);
	if (e != 0)
		return e;
	*ret_value = *root;
	if (root->kind >= VALUE_ARRAY)
		ret_value->first = NULL;
	return 0;
}
