#include <stdio.h>

#include "cli/connect/json_file.h"
#include "cli/kit/value.h"

static const struct text byte_order_mark = TEXT("\xef\xbb\xbf");

/* ---- blanking ---- */

/* The end of the string that begins here. One without an end is left to the parser. */
static size_t end_of_string(struct text t, size_t at)
{
	for (at++; at < t.len && t.data[at] != '"'; at++)
		at += t.data[at] == '\\';
	return at < t.len ? at + 1 : t.len;
}

/* The end of the comment that begins here; `at` if none does, or if it has no end. */
static size_t end_of_comment(struct text t, size_t at)
{
	const char *end;

	if (at + 1 >= t.len || t.data[at] != '/')
		return at;
	if (t.data[at + 1] == '/') {
		end = memchr(t.data + at, '\n', t.len - at);
		return end ? (size_t)(end - t.data) : t.len;
	}
	if (t.data[at + 1] != '*')
		return at;
	end = memmem(t.data + at + 2, t.len - at - 2, "*/", 2);
	return end ? (size_t)(end - t.data) + 2 : at;
}

static void blank_comments(struct buf *b)
{
	struct text t = {.data = b->data, .len = b->len};
	size_t at = 0;

	while (at < t.len) {
		size_t end = end_of_comment(t, at);

		if (end > at)
			memset(b->data + at, ' ', end - at);
		else if (t.data[at] == '"')
			end = end_of_string(t, at);
		at = end > at ? end : at + 1;
	}
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Where the next thing that is no blank stands, in either form; `end` if there is nothing. */
static size_t json_file_skip(const struct buf *b, size_t at, size_t end)
{
	while (at < end && is_blank(b->data[at]))
		at++;
	return at;
}

/* A comma that a bracket follows; not one that follows a bracket or another comma. */
static void blank_trailing_commas(struct buf *b)
{
	struct text t = {.data = b->data, .len = b->len};
	char before = '\0';
	size_t at = 0;

	while (at < t.len) {
		char c = t.data[at];
		size_t next = c == '"' ? end_of_string(t, at) : at + 1;
		size_t then = json_file_skip(b, next, t.len);

		if (c == ',' && then < t.len && (t.data[then] == '}' || t.data[then] == ']') &&
		    before != '{' && before != '[' && before != ',' && before != ':')
			b->data[at] = ' ';
		if (!is_blank(c))
			before = c;
		at = next;
	}
}

static int copy_plain(struct json_file *f, bool comments)
{
	buf_add(&f->plain, f->text.data, f->text.len);
	if (f->plain.err != 0)
		return f->plain.err;
	if (text_begins(f->text, byte_order_mark))
		memset(f->plain.data, ' ', byte_order_mark.len);
	if (comments)
		blank_comments(&f->plain);
	buf_add(&f->strict, f->plain.data, f->plain.len);
	if (f->strict.err == 0 && comments)
		blank_trailing_commas(&f->strict);
	return f->strict.err;
}

/* ---- reading ---- */

/* The parser names the byte; people look for a line. */
static int refuse_broken(const struct json_file *f, const char *reason, struct error *error)
{
	const char *at = strstr(reason, " at byte ");
	size_t byte = 0;

	if (!at || sscanf(at, " at byte %zu", &byte) != 1)
		return refuse(error, REFUSE_PARSE, "invalid JSON: %s", reason);
	return refuse(error, REFUSE_PARSE, "line %u: invalid JSON: %.*s", edit_line(f->text, byte),
		      (int)(at - reason), reason);
}

static int parse(struct json_file *f, struct error *error)
{
	char reason[160] = "";
	size_t first = json_file_skip(&f->strict, 0, f->strict.len);
	int r;

	if (first == f->strict.len)
		return 0;
	r = koine_doc_parse(f->strict.data, f->strict.len, &f->doc, reason, sizeof(reason));
	if (r < 0)
		return r;
	if (r > 0)
		return refuse_broken(f, reason, error);
	f->root = koine_doc_root(f->doc);
	f->span = (struct span) {.start = first, .end = first + text_of_raw(f->root).len};
	return 0;
}

int json_file_open(struct json_file *f, struct text text, bool comments, struct error *error)
{
	int r;

	*f = (struct json_file) {.text = text};
	buf_init(&f->plain, EDIT_FILE_MAX);
	buf_init(&f->strict, EDIT_FILE_MAX);
	if (text.len > EDIT_FILE_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "the file is larger than %d bytes",
			      EDIT_FILE_MAX);
	r = copy_plain(f, comments);
	return r != 0 ? r : parse(f, error);
}

void json_file_close(struct json_file *f)
{
	koine_doc_free(f->doc);
	buf_done(&f->plain);
	buf_done(&f->strict);
}

/* ---- places ---- */

struct span json_file_span(const struct json_file *f, const struct koine_value *v)
{
	struct text raw = text_of_raw(v);
	size_t start = f->span.start + (size_t)(raw.data - text_of_raw(f->root).data);

	return (struct span) {.start = start, .end = start + raw.len};
}

/* From the end of a string to its begin: a quote after an odd number of backslashes is in it. */
static size_t start_of_string(const struct buf *b, size_t end)
{
	size_t at = end - 1;

	while (at > 0) {
		size_t slashes = 0;

		at--;
		if (b->data[at] != '"')
			continue;
		while (slashes < at && b->data[at - 1 - slashes] == '\\')
			slashes++;
		if (slashes % 2 == 0)
			return at;
	}
	return at;
}

/* With its key, if it is a member. */
static struct span json_file_whole(const struct json_file *f, const struct koine_value *v)
{
	struct span span = json_file_span(f, v);
	size_t at = span.start;

	if (!text_of_key(v).data)
		return span;
	while (at > 0 && (is_blank(f->strict.data[at - 1]) || f->strict.data[at - 1] == ':'))
		at--;
	span.start = start_of_string(&f->strict, at);
	return span;
}

int json_file_member(const struct json_file *f, const struct koine_value *v, struct text key,
		     const struct koine_value **ret_member, struct error *error)
{
	const struct koine_value *found = NULL;

	for (v = koine_value_first(v); v; v = koine_value_next(v)) {
		if (!text_equal(text_of_key(v), key))
			continue;
		if (found)
			return refuse(error, REFUSE_CONFLICT, "line %u: duplicate key \"%.*s\"",
				      edit_line(f->text, json_file_span(f, v).start),
				      TEXT_ARGS(key));
		found = v;
	}
	*ret_member = found;
	return 0;
}

bool json_value_equal(const struct koine_value *a, const struct koine_value *b)
{
	const struct koine_value *x = koine_value_first(a);

	if (koine_value_kind(a) != koine_value_kind(b) ||
	    koine_value_count(a) != koine_value_count(b) ||
	    !text_equal(text_of_value(a), text_of_value(b)))
		return false;
	if (koine_value_kind(a) == KOINE_OBJECT) {
		for (; x; x = koine_value_next(x)) {
			const struct koine_value *y = koine_value_first(b);

			while (y && !text_equal(text_of_key(x), text_of_key(y)))
				y = koine_value_next(y);
			if (!y || !json_value_equal(x, y))
				return false;
		}
		return true;
	}
	for (const struct koine_value *y = koine_value_first(b); x && y;
	     x = koine_value_next(x), y = koine_value_next(y)) {
		if (!json_value_equal(x, y))
			return false;
	}
	return true;
}

/* Adding to a JSON file, and removing from it, in its own layout. */

/* A NUL may stand in a comment. */
static bool is_gap(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* ---- style ---- */

static bool has_newline(const struct buf *b, size_t from, size_t to)
{
	return to > from && memchr(b->data + from, '\n', to - from);
}

static size_t start_of_line(struct text t, size_t at)
{
	while (at > 0 && t.data[at - 1] != '\n')
		at--;
	return at;
}

struct text json_indent(const struct json_file *f, size_t at)
{
	size_t start = start_of_line(f->text, at);
	struct text indent = {.data = f->text.data + start};

	while (start + indent.len < at &&
	       (indent.data[indent.len] == ' ' || indent.data[indent.len] == '\t'))
		indent.len++;
	return indent;
}

static bool is_first_in_line(const struct json_file *f, size_t at)
{
	return json_indent(f, at).len == at - start_of_line(f->text, at);
}

struct json_style json_style_of(const struct json_file *f)
{
	struct json_style s = {.newline = edit_newline(f->text), .unit = TEXT("  ")};
	const struct koine_value *first = koine_value_first(f->root);
	struct text indent;
	size_t at;

	s.lines = !first || has_newline(&f->plain, f->span.start, f->span.end);
	if (!first)
		return s;
	at = json_file_whole(f, first).start;
	indent = json_indent(f, at);
	if (indent.len > 0 && is_first_in_line(f, at) && start_of_line(f->text, at) > f->span.start)
		s.unit = indent;
	return s;
}

/* ---- values ---- */

static bool is_scalar(const struct koine_value *v)
{
	return koine_value_kind(v) != KOINE_OBJECT && koine_value_kind(v) != KOINE_ARRAY;
}

static bool has_only_scalars(const struct koine_value *v)
{
	const struct koine_value *child = koine_value_first(v);

	while (child && is_scalar(child))
		child = koine_value_next(child);
	return !child;
}

static void write_key(struct text key, struct buf *out)
{
	buf_add_char(out, '"');
	buf_add(out, key.data, key.len);
	buf_add_str(out, "\": ");
}

static void write_break(const struct json_style *s, struct text indent, unsigned deeper,
			struct buf *out)
{
	buf_add(out, s->newline.data, s->newline.len);
	buf_add(out, indent.data, indent.len);
	while (deeper-- > 0)
		buf_add(out, s->unit.data, s->unit.len);
}

void json_write(const struct json_style *s, const struct koine_value *v, struct text indent,
		unsigned deeper, struct buf *out)
{
	bool is_object = koine_value_kind(v) == KOINE_OBJECT;
	const struct koine_value *child = koine_value_first(v);
	bool broken = s->lines && child && (is_object || !has_only_scalars(v));
	struct text raw = text_of_raw(v);

	if (is_scalar(v)) {
		buf_add(out, raw.data, raw.len);
		return;
	}
	buf_add_char(out, is_object ? '{' : '[');
	for (; child; child = koine_value_next(child)) {
		if (broken)
			write_break(s, indent, deeper + 1, out);
		if (is_object)
			write_key(text_of_key(child), out);
		json_write(s, child, indent, deeper + 1, out);
		if (koine_value_next(child))
			buf_add_str(out, broken ? "," : ", ");
	}
	if (broken)
		write_break(s, indent, deeper, out);
	buf_add_char(out, is_object ? '}' : ']');
}

/* "a": {"b": [VALUE]} */
static void write_child(const struct json_style *s, const struct json_child *c, struct text indent,
			struct buf *out)
{
	unsigned deep = 0;

	for (unsigned i = 0; i < c->n_keys; i++) {
		bool is_last = i + 1 == c->n_keys;

		write_key(c->keys[i], out);
		if (is_last && !c->in_array)
			break;
		buf_add_char(out, is_last ? '[' : '{');
		deep++;
		if (s->lines)
			write_break(s, indent, deep, out);
	}
	json_write(s, c->value, indent, deep, out);
	for (unsigned i = c->n_keys; deep > 0; i--) {
		deep--;
		if (s->lines)
			write_break(s, indent, deep, out);
		buf_add_char(out, c->in_array && i == c->n_keys ? ']' : '}');
	}
}

/* ---- adding ---- */

struct insertion {
	const struct json_file *f;
	struct json_style style;
	struct span into;
	const struct koine_value *last; /* child, or NULL */
	bool spread;                    /* its children have lines of their own */
	struct buf indent;              /* of its children */
	struct buf text;                /* what is added */
	struct splice splices[2];
	unsigned n;
};

static void splice(struct insertion *in, size_t at, const char *data, size_t len)
{
	in->splices[in->n++] = (struct splice) {.at = at, .added = {.data = data, .len = len}};
}

static const struct koine_value *last_child(const struct koine_value *v)
{
	const struct koine_value *last = NULL;

	for (v = koine_value_first(v); v; v = koine_value_next(v))
		last = v;
	return last;
}

static void connect_json_file_look(struct insertion *in, const struct koine_value *into)
{
	const struct json_file *f = in->f;
	const struct koine_value *first = koine_value_first(into);
	size_t first_at = first ? json_file_whole(f, first).start : 0;
	struct text indent;

	in->style = json_style_of(f);
	in->into = json_file_span(f, into);
	in->last = last_child(into);
	in->spread =
		first ? has_newline(&f->plain, in->into.start, first_at)
		      : in->style.lines || has_newline(&f->plain, in->into.start, in->into.end);
	if (in->spread && first && is_first_in_line(f, first_at)) {
		indent = json_indent(f, first_at);
		buf_add(&in->indent, indent.data, indent.len);
		return;
	}
	indent = json_indent(f, in->into.start);
	buf_add(&in->indent, indent.data, indent.len);
	buf_add(&in->indent, in->style.unit.data, in->style.unit.len);
}

/* Behind comments on the same line, so that they stay with what they are about. */
static size_t behind_comments(const struct json_file *f, size_t at, size_t end)
{
	size_t line = at;

	while (line < end && is_gap(f->plain.data[line]))
		line++;
	if (line == end || f->plain.data[line] != '\n')
		return at;
	while (line > at && is_gap(f->text.data[line - 1]))
		line--;
	return line;
}

static void add_behind_last(struct insertion *in, const struct json_child *c)
{
	const struct json_file *f = in->f;
	size_t end = json_file_span(f, in->last).end;
	size_t next = json_file_skip(&f->plain, end, in->into.end);
	bool has_comma = f->plain.data[next] == ',';
	size_t at = has_comma ? next + 1 : end;
	struct text indent = {.data = in->indent.data, .len = in->indent.len};

	in->style.lines = in->spread;
	if (in->spread)
		write_break(&in->style, indent, 0, &in->text);
	else
		buf_add_char(&in->text, ' ');
	write_child(&in->style, c, indent, &in->text);
	if (has_comma)
		buf_add_char(&in->text, ',');
	else
		splice(in, end, ",", 1);
	splice(in, in->spread ? behind_comments(f, at, in->into.end) : at, in->text.data,
	       in->text.len);
}

static void add_first(struct insertion *in, const struct json_child *c)
{
	const struct json_file *f = in->f;
	size_t close = in->into.end - 1;
	size_t at = close;
	struct text indent = {.data = in->indent.data, .len = in->indent.len};

	/* Behind the comments in it. */
	while (at > in->into.start + 1 &&
	       (is_gap(f->text.data[at - 1]) || f->text.data[at - 1] == '\n'))
		at--;
	in->style.lines = in->spread;
	if (in->spread)
		write_break(&in->style, indent, 0, &in->text);
	write_child(&in->style, c, indent, &in->text);
	if (in->spread && !has_newline(&f->plain, at, close))
		write_break(&in->style, json_indent(f, in->into.start), 0, &in->text);
	splice(in, at, in->text.data, in->text.len);
}

int json_insert(const struct json_file *f, const struct koine_value *into,
		const struct json_child *child, struct buf *out)
{
	struct insertion in = {.f = f};
	int r;

	buf_init(&in.indent, EDIT_FILE_MAX);
	buf_init(&in.text, EDIT_FILE_MAX);
	connect_json_file_look(&in, into);
	if (in.last)
		add_behind_last(&in, child);
	else
		add_first(&in, child);
	r = in.indent.err != 0 ? in.indent.err : in.text.err;
	if (r == 0)
		r = edit_splice(f->text, in.splices, in.n, out);
	buf_done(&in.indent);
	buf_done(&in.text);
	return r;
}

/* ---- removing ---- */

/* Whether nothing but blanks and comments follows on this line. */
static bool ends_line(const struct json_file *f, size_t at)
{
	while (at < f->plain.len && is_gap(f->plain.data[at]))
		at++;
	return at == f->plain.len || f->plain.data[at] == '\n';
}

/* Whether the line before this one's begin ends with a comment that needs its end. */
static bool follows_comment(const struct json_file *f, size_t line)
{
	size_t at = line;

	while (at > 0 && is_gap(f->text.data[at - 1]))
		at--;
	return at > 0 && is_gap(f->plain.data[at - 1]);
}

/* The line goes with it, unless something else stands there that must not move up. */
static void widen(const struct json_file *f, size_t behind, bool closes, struct span *s)
{
	size_t at = s->start;

	while (at > 0 && (f->text.data[at - 1] == ' ' || f->text.data[at - 1] == '\t'))
		at--;
	if (at == 0 || f->text.data[at - 1] != '\n') {
		s->start = at;
		return;
	}
	at--;
	if (at > 0 && f->text.data[at - 1] == '\r')
		at--;
	if (ends_line(f, behind) || (closes && !follows_comment(f, at)))
		s->start = at;
}

int json_remove(const struct json_file *f, const struct koine_value *from,
		const struct koine_value *child, struct buf *out)
{
	const struct koine_value *before = NULL;
	struct span s = json_file_whole(f, child);
	size_t end = json_file_span(f, from).end;
	size_t comma = json_file_skip(&f->plain, s.end, end);
	bool has_comma = f->plain.data[comma] == ',';
	struct splice splices[2];
	size_t behind;
	unsigned n = 0;

	for (const struct koine_value *v = koine_value_first(from); v && v != child;
	     v = koine_value_next(v))
		before = v;
	behind = has_comma ? comma + 1 : s.end;
	widen(f, behind, json_file_skip(&f->plain, behind, end) == end - 1, &s);
	if (!has_comma && before)
		splices[n++] = (struct splice) {
			.at = json_file_skip(&f->plain, json_file_span(f, before).end, end),
			.removed = 1};
	splices[n++] = (struct splice) {.at = s.start, .removed = s.end - s.start};
	if (has_comma)
		splices[n++] = (struct splice) {.at = comma, .removed = 1};
	return edit_splice(f->text, splices, n, out);
}
