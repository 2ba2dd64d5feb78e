/*
 * One table of a TOML file: [mcp_servers.koine] with its keys. It is added at the end of the
 * file, where it cannot come into another table. A key with single quotes and others that need
 * quotes cannot be written: do not ask for one.
 */
#include <ctype.h>

#include <koine/koine.h>

#include "base/cleanup.h"
#include "cli/connect/json_file.h"
#include "cli/connect/ours.h"
#include "cli/connect/toml_file.h"
#include "cli/kit/value.h"

struct connect_toml_edit_table {
	struct toml_path path;
	const struct toml_item *header; /* NULL: none */
	const struct toml_item *last;   /* its last key, or else the header */
	const struct toml_item *command;
};

static int refuse_place(const struct toml_item *item, const struct connect_toml_edit_table *t,
			const char *words, struct error *error)
{
	return edit_refuse(item->line, t->path.keys, t->path.n, words, error);
}

/* ---- finding it ---- */

static bool is_key_of(const struct toml_item *item, const struct connect_toml_edit_table *t,
		      struct text key)
{
	return item->kind == TOML_KEY && item->header == t->path.n &&
	       item->path.n == t->path.n + 1 && toml_path_begins(&item->path, &t->path) &&
	       text_equal(item->path.keys[t->path.n], key);
}

/* What makes the place something else than a table that we may write. */
static int check_item(const struct toml_item *item, const struct connect_toml_edit_table *t,
		      struct error *error)
{
	bool is_below = toml_path_begins(&item->path, &t->path);
	bool is_above = toml_path_begins(&t->path, &item->path);

	switch (item->kind) {
	case TOML_KEY:
		if (is_above)
			return refuse_place(item, t,
					    "has a different value, or is in an inline table, "
					    "which koine cannot edit",
					    error);
		if (is_below && item->header < t->path.n)
			return refuse_place(item, t, "has dotted keys, which koine cannot edit",
					    error);
		return 0;
	case TOML_TABLE_ARRAY:
		return is_above ? refuse_place(item, t,
					       "is in an array of tables, which koine cannot edit",
					       error)
				: 0;
	case TOML_TABLE:
		if (t->header && toml_path_equal(&item->path, &t->path))
			return refuse_place(item, t, "is a duplicate", error);
		return 0;
	}
	return 0;
}

static int connect_toml_edit_find(const struct toml_file *f, const struct edit *e,
				  struct connect_toml_edit_table *t, struct error *error)
{
	int r;

	*t = (struct connect_toml_edit_table) {.header = NULL};
	t->path.n = edit_keys(e, t->path.keys);
	for (size_t n = 0; n < f->n_items; n++) {
		const struct toml_item *i = &f->items[n];

		r = check_item(i, t, error);
		if (r != 0)
			return r;
		if (i->kind == TOML_TABLE && toml_path_equal(&i->path, &t->path))
			t->header = t->last = i;
		if (i->kind == TOML_KEY && i->header == t->path.n &&
		    toml_path_begins(&i->path, &t->path))
			t->last = i;
		if (!is_key_of(i, t, TEXT("command")))
			continue;
		if (t->command)
			return refuse_place(i, t, "has two command keys", error);
		t->command = i;
	}
	return 0;
}

static bool is_ours(const struct connect_toml_edit_table *t)
{
	struct text v = t->command ? t->command->value : (struct text) {0};

	if (v.len < 2 || (v.data[0] != '"' && v.data[0] != '\'') || v.data[v.len - 1] != v.data[0])
		return false;
	return ours_is_program((struct text) {.data = v.data + 1, .len = v.len - 2});
}

/* ---- putting in ---- */

/* Strings, whole numbers, truths and lists of them are the same in JSON and TOML. */
static void write_pair(const struct koine_value *part, struct text newline, struct buf *out)
{
	struct text raw = text_of_raw(part);

	buf_printf(out, "%.*s = ", TEXT_ARGS(text_of_key(part)));
	buf_add(out, raw.data, raw.len);
	buf_add(out, newline.data, newline.len);
}

static bool is_bare(struct text key)
{
	for (size_t i = 0; i < key.len; i++) {
		if (!isalnum((unsigned char)key.data[i]) && key.data[i] != '-' &&
		    key.data[i] != '_')
			return false;
	}
	return key.len > 0;
}

static void write_key(struct text key, struct buf *out)
{
	bool has_escapes = memchr(key.data, '"', key.len) || memchr(key.data, '\\', key.len);
	const char *quote = is_bare(key) ? "" : has_escapes ? "'" : "\"";

	buf_printf(out, "%s%.*s%s", quote, TEXT_ARGS(key), quote);
}

static int append_table(const struct toml_file *f, const struct connect_toml_edit_table *t,
			const struct koine_value *value, struct buf *out)
{
	struct text newline = edit_newline(f->text);

	buf_add(out, f->text.data, f->text.len);
	if (edit_lacks_newline(f->text))
		buf_add(out, newline.data, newline.len);
	if (!edit_is_empty(f->text))
		buf_add(out, newline.data, newline.len);
	buf_add_char(out, '[');
	for (unsigned i = 0; i < t->path.n; i++) {
		buf_add_str(out, i > 0 ? "." : "");
		write_key(t->path.keys[i], out);
	}
	buf_add_char(out, ']');
	buf_add(out, newline.data, newline.len);
	for (EACH(part, koine_value_first(value)))
		write_pair(part, newline, out);
	return out->err;
}

static int find_key(const struct toml_file *f, const struct connect_toml_edit_table *t,
		    struct text key, const struct toml_item **ret_item, struct error *error)
{
	*ret_item = NULL;
	for (size_t n = 0; n < f->n_items; n++) {
		const struct toml_item *i = &f->items[n];

		if (!is_key_of(i, t, key))
			continue;
		if (*ret_item)
			return refuse_place(i, t, "has a duplicate key", error);
		*ret_item = i;
	}
	return 0;
}

static int add_key(const struct toml_file *f, const struct connect_toml_edit_table *t,
		   const struct koine_value *part, struct buf *out)
{
	CLEANUP(buf_donep) struct buf line;
	struct text newline = edit_newline(f->text);
	struct splice s = {.at = t->last->end};

	buf_init(&line, EDIT_FILE_MAX);
	if (f->text.data[s.at - 1] != '\n')
		buf_add(&line, newline.data, newline.len);
	write_pair(part, newline, &line);
	s.added = buf_text(&line);
	return line.err != 0 ? line.err : edit_splice(f->text, &s, 1, out);
}

/* TOML allows a comma behind the last item. */
static void drop_comma(struct buf *json)
{
	size_t n = json->len;

	while (n > 0 && memchr(" \t\r\n", json->data[n - 1], 4))
		n--;
	if (n > 0 && json->data[n - 1] == ',')
		json->len = n - 1;
}

/* A list of strings as JSON. False: it is not one, or has something in it that JSON lacks. */
static bool list_as_json(struct text list, struct koine_doc **ret_doc)
{
	CLEANUP(json_freep) struct koine_json *j = NULL;
	CLEANUP(buf_donep) struct buf json;
	const char *text;
	size_t len;

	buf_init(&json, EDIT_FILE_MAX);
	for (size_t at = 0; at < list.len; at++) {
		const char *begin = list.data + at;
		const char *end;

		if (*begin == '#') {
			end = memchr(begin, '\n', list.len - at) ?: list.data + list.len - 1;
		} else if (*begin == '"') {
			for (end = begin + 1; end < list.data + list.len - 1 && *end != '"'; end++)
				end += *end == '\\';
			buf_add(&json, begin, (size_t)(end - begin) + 1);
		} else if (*begin == '\'') {
			end = memchr(begin + 1, '\'', list.len - at - 1);
			if (!end || koine_json_new(&j) != 0)
				return false;
			koine_json_text_n(j, begin + 1, (size_t)(end - begin) - 1);
			text = koine_json_text(j, &len);
			buf_add(&json, text, text ? len : 0);
			json_freep(&j);
			j = NULL;
		} else {
			end = begin;
			if (*begin == ']')
				drop_comma(&json);
			buf_add(&json, begin, 1);
		}
		at = (size_t)(end - list.data);
	}
	return json.err == 0 && koine_doc_parse(json.data, json.len, ret_doc, NULL, 0) == 0;
}

/* What the key should have: with what users have added to a list. */
static int value_of(const struct toml_item *item, const struct koine_value *part,
		    struct koine_doc **joined, struct text *ret_value)
{
	CLEANUP(doc_freep) struct koine_doc *is = NULL;
	int r = 0;

	*ret_value = text_of_raw(part);
	if (item && koine_value_kind(part) == KOINE_ARRAY && list_as_json(item->value, &is)) {
		r = ours_join(text_of_key(part), koine_doc_root(is), part, joined);
		if (*joined && json_value_equal(koine_doc_root(*joined), koine_doc_root(is)))
			*ret_value = item->value;
		else if (*joined)
			*ret_value = text_of_raw(koine_doc_root(*joined));
	}
	return r;
}

/* Ours, but not as it should be: changes or adds the first key that differs. */
static int mend(const struct toml_file *f, const struct connect_toml_edit_table *t,
		const struct koine_value *value, struct buf *out, struct error *error)
{
	const struct toml_item *item = NULL;
	struct splice s;

	for (EACH(part, koine_value_first(value))) {
		CLEANUP(doc_freep) struct koine_doc *joined = NULL;
		int r = find_key(f, t, text_of_key(part), &item, error)
				?: value_of(item, part, &joined, &s.added);

		if (r != 0)
			return r;
		if (!item)
			return add_key(f, t, part, out);
		if (text_equal(item->value, s.added))
			continue;
		s.at = (size_t)(item->value.data - f->text.data);
		s.removed = item->value.len;
		return edit_splice(f->text, &s, 1, out);
	}
	return edit_copy(f->text, out);
}

static int toml_put(struct edit_step *c, struct text file, struct buf *out, struct error *error)
{
	CLEANUP(toml_file_close) struct toml_file f;
	struct connect_toml_edit_table t = {.header = NULL};
	int r = toml_file_open(&f, file, error) ?: connect_toml_edit_find(&f, c->e, &t, error);

	if (r != 0)
		return r;
	if (!t.header)
		return append_table(&f, &t, c->value, out);
	if (!c->e->ours && !is_ours(&t))
		return refuse_place(t.header, &t, "already has a different value", error);
	return mend(&f, &t, c->value, out, error);
}

/* ---- taking out ---- */

/* The empty line that we have put before the header. */
static size_t before_header(struct text file, size_t start)
{
	if (start >= 2 && file.data[start - 1] == '\n' && file.data[start - 2] == '\n')
		return start - 1;
	if (start >= 4 && memcmp(file.data + start - 4, "\r\n\r\n", 4) == 0)
		return start - 2;
	return start;
}

/* Our table was the last; the line before it had no end when we came. */
static void drop_newline(struct text before, struct buf *out)
{
	if (!edit_lacks_newline(before))
		return;
	if (out->len > 0 && out->data[out->len - 1] == '\n')
		out->len--;
	if (out->len > 0 && out->data[out->len - 1] == '\r')
		out->len--;
}

/* The table and what is below it, without the tables of others between them. */
static int whole_table(const struct toml_file *f, const struct connect_toml_edit_table *t,
		       struct buf *out)
{
	size_t end = 0; /* of the item before, if that was a part of it */

	for (size_t n = 0; n < f->n_items; n++) {
		const struct toml_item *i = &f->items[n];
		size_t start = end > 0 ? end : i->start;

		end = toml_path_begins(&i->path, &t->path) ? i->end : 0;
		if (end > 0)
			buf_add(out, f->text.data + start, end - start);
	}
	/* Another line may follow there. */
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_add_str(out, edit_newline(f->text).data);
	return out->err;
}

/* The table and what is below it: without its command the rest would be a broken server. Comments
 * behind its last key stay. What was there before koine connect takes its place. */
static int cut(const struct toml_file *f, const struct connect_toml_edit_table *t,
	       struct text before, struct text was, struct buf *out)
{
	const bool comes_back = was.len > 0;
	struct text gap;
	size_t at = 0;

	for (size_t n = 0; n < f->n_items; n++) {
		const struct toml_item *i = &f->items[n];
		size_t start = i->start;

		if (!toml_path_begins(&i->path, &t->path))
			continue;
		if (i->kind != TOML_KEY && !comes_back)
			start = before_header(f->text, start);
		if (start < at)
			start = at;
		gap = (struct text) {.data = f->text.data + at, .len = start - at};
		/* Blank lines within the old table are a part of it. */
		if (at == 0 || !comes_back || text_trim(gap, " \t\r\n").len > 0)
			buf_add(out, gap.data, gap.len);
		if (was.len > 0)
			buf_add(out, was.data, was.len);
		was.len = 0;
		at = i->end;
	}
	buf_add(out, f->text.data + at, f->text.len - at);
	if (at == f->text.len)
		drop_newline(before, out);
	return out->err;
}

static int take_from(const struct toml_file *f, const struct edit_step *c, struct buf *out,
		     struct error *error)
{
	struct connect_toml_edit_table t = {.header = NULL};
	struct connect_toml_edit_table then = {.header = NULL};
	CLEANUP(buf_donep) struct buf was;
	CLEANUP(toml_file_close) struct toml_file old = {.n_items = 0};
	int r = connect_toml_edit_find(f, c->e, &t, error);

	buf_init(&was, EDIT_FILE_MAX);
	if (r != 0)
		return r;
	if (!t.header || !(c->e->ours || is_ours(&t)))
		return edit_copy(f->text, out);
	if (toml_file_open(&old, c->before, NULL) == 0 &&
	    connect_toml_edit_find(&old, c->e, &then, NULL) == 0 && then.header)
		r = whole_table(&old, &then, &was);
	return r ?: cut(f, &t, c->before, buf_text(&was), out);
}

static int toml_take(struct edit_step *c, struct text file, struct buf *out, struct error *error)
{
	CLEANUP(toml_file_close) struct toml_file f;

	return toml_file_open(&f, file, error) ?: take_from(&f, c, out, error);
}

const struct editor toml_editor = {.put = toml_put, .take = toml_take};
