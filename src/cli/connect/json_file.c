#include "cli/connect/json_file.h"

#include <errno.h>
#include <stdio.h>

#include "cli/kit/value.h"

static const char byte_order_mark[] = "\xef\xbb\xbf";

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

size_t json_file_skip(const struct buf *b, size_t at, size_t end)
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
	if (f->text.len >= 3 && memcmp(f->text.data, byte_order_mark, 3) == 0)
		memset(f->plain.data, ' ', 3);
	if (comments)
		blank_comments(&f->plain);
	buf_add(&f->strict, f->plain.data, f->plain.len);
	if (f->strict.err == 0 && comments)
		blank_trailing_commas(&f->strict);
	return f->strict.err;
}

/* ---- reading ---- */

/* The parser names the byte; people look for a line. */
static int refuse_broken(const struct json_file *f, const char *error, struct why *why)
{
	const char *at = strstr(error, " at byte ");
	size_t byte = 0;

	if (!at || sscanf(at, " at byte %zu", &byte) != 1)
		return refuse(why, REFUSE_PARSE, "not valid JSON: %s", error);
	return refuse(why, REFUSE_PARSE, "line %u: not valid JSON: %.*s", edit_line(f->text, byte),
		      (int)(at - error), error);
}

static int parse(struct json_file *f, struct why *why)
{
	char error[160] = "";
	size_t first = json_file_skip(&f->strict, 0, f->strict.len);
	size_t len;
	int r;

	if (first == f->strict.len)
		return 0;
	r = koine_doc_parse(f->strict.data, f->strict.len, &f->doc, error, sizeof(error));
	if (r < 0)
		return r;
	if (r > 0)
		return refuse_broken(f, error, why);
	f->root = koine_doc_root(f->doc);
	(void)koine_value_raw(f->root, &len);
	f->span = (struct span) {.start = first, .end = first + len};
	return 0;
}

int json_file_open(struct json_file *f, struct text text, bool comments, struct why *why)
{
	int r;

	*f = (struct json_file) {.text = text};
	buf_init(&f->plain, EDIT_FILE_MAX);
	buf_init(&f->strict, EDIT_FILE_MAX);
	if (text.len > EDIT_FILE_MAX)
		return refuse(why, REFUSE_TOO_LARGE, "the file is larger than %d bytes",
			      EDIT_FILE_MAX);
	r = copy_plain(f, comments);
	return r != 0 ? r : parse(f, why);
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
	size_t len;
	const char *root = koine_value_raw(f->root, &len);
	const char *raw = koine_value_raw(v, &len);
	size_t start = f->span.start + (size_t)(raw - root);

	return (struct span) {.start = start, .end = start + len};
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

struct span json_file_whole(const struct json_file *f, const struct koine_value *v)
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
		     const struct koine_value **ret_member, struct why *why)
{
	const struct koine_value *found = NULL;

	for (v = koine_value_first(v); v; v = koine_value_next(v)) {
		if (!text_equal(text_of_key(v), key))
			continue;
		if (found)
			return refuse(why, REFUSE_CONFLICT, "line %u: duplicate key \"%.*s\"",
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
