#include "cli/connect/json_file.h"

#include <errno.h>

#include "base/cleanup.h"
#include "cli/connect/ours.h"
#include "cli/kit/value.h"

/* ---- the place ---- */

static int json_place_refuse(const struct json_file *f, const struct json_place *p,
			     const char *words, struct error *error)
{
	unsigned line = edit_line(f->text, json_file_span(f, p->at).start);

	return edit_refuse(line, p->keys, p->depth, words, error);
}

/* Refuses a path that leads through something else than objects, or to something else than an
 * array if the edit is an element. */
static int json_place_find(const struct json_file *f, const struct edit *e,
			   struct json_place *ret_place, struct error *error)
{
	struct json_place p = {.at = f->root};
	const struct koine_value *next = NULL;
	int r = 0;

	p.n_keys = edit_keys(e, p.keys);
	while (p.depth < p.n_keys) {
		if (koine_value_kind(p.at) != KOINE_OBJECT)
			return json_place_refuse(f, &p, "is not an object", error);
		r = json_file_member(f, p.at, p.keys[p.depth], &next, error);
		if (r != 0)
			return r;
		if (!next)
			break;
		p.over = p.at;
		p.at = next;
		p.depth++;
	}
	if (p.depth == p.n_keys && e->kind == EDIT_ELEMENT && koine_value_kind(p.at) != KOINE_ARRAY)
		return json_place_refuse(f, &p, "is not a list", error);
	*ret_place = p;
	return 0;
}

/* ---- putting in ---- */

/* What users have put into an object that koine leaves empty is theirs. */
static bool will_do(const struct koine_value *is, const struct koine_value *should)
{
	if (koine_value_kind(should) == KOINE_OBJECT && koine_value_count(should) == 0)
		return koine_value_kind(is) == KOINE_OBJECT;
	return json_value_equal(is, should);
}

/* On one line, or on several, as the value that it replaces. */
static int replace(const struct json_file *f, const struct koine_value *is,
		   const struct koine_value *should, struct buf *out)
{
	struct span span = json_file_span(f, is);
	struct splice s = {.at = span.start, .removed = span.end - span.start};
	struct json_style style = json_style_of(f);
	CLEANUP(buf_donep) struct buf text;

	buf_init(&text, EDIT_FILE_MAX);
	if (koine_value_first(is))
		style.lines = memchr(f->text.data + s.at, '\n', s.removed) != NULL;
	json_write(&style, should, json_indent(f, s.at), 0, &text);
	s.added = buf_text(&text);
	return text.err != 0 ? text.err : edit_splice(f->text, &s, 1, out);
}

/* Ours, but not as it should be. Changes the first part that differs, with what users have added to a
 * list, or adds the first that is missing. */
static int mend(const struct json_file *f, const struct koine_value *ours,
		const struct koine_value *value, struct buf *out, struct error *error)
{
	for (EACH(part, koine_value_first(value))) {
		CLEANUP(doc_freep) struct koine_doc *joined = NULL;
		const struct koine_value *is = NULL, *should;
		struct text key = text_of_key(part);
		int r = json_file_member(f, ours, key, &is, error);

		if (r == 0 && !is)
			return json_insert(
				f, ours,
				&(struct json_child) {.keys = &key, .n_keys = 1, .value = part},
				out);
		r = r ?: ours_join(key, is, part, &joined);
		if (r != 0)
			return r;
		should = joined ? koine_doc_root(joined) : part;
		if (!will_do(is, should))
			return replace(f, is, should, out);
	}
	return edit_copy(f->text, out);
}

static int put_member(const struct json_file *f, const struct json_place *p,
		      const struct koine_value *value, struct buf *out, struct error *error)
{
	bool mixed;

	if (json_value_equal(p->at, value))
		return edit_copy(f->text, out);
	if (koine_value_kind(p->at) == KOINE_OBJECT && ours_is(p->at, &mixed))
		return mend(f, p->at, value, out, error);
	return json_place_refuse(f, p, "already has a different value", error);
}

static int put_element(const struct json_file *f, const struct json_place *p,
		       const struct koine_value *value, struct buf *out)
{
	const struct koine_value *v = koine_value_first(p->at);
	bool mixed;

	for (; v; v = koine_value_next(v)) {
		if (json_value_equal(v, value))
			return edit_copy(f->text, out);
	}
	for (v = koine_value_first(p->at); v && !ours_is(v, &mixed); v = koine_value_next(v)) {
		/* Somebody has put it beside something of their own; it is there. */
		if (mixed)
			return edit_copy(f->text, out);
	}
	return v ? replace(f, v, value, out)
		 : json_insert(f, p->at, &(struct json_child) {.value = value}, out);
}

static int put_into(const struct json_file *f, const struct edit_step *c, struct buf *out,
		    struct error *error)
{
	bool is_member = c->e->kind == EDIT_MEMBER;
	struct json_place p;
	int r = json_place_find(f, c->e, &p, error);

	if (r != 0)
		return r;
	if (p.depth < p.n_keys)
		return json_insert(f, p.at,
				   &(struct json_child) {.keys = p.keys + p.depth,
							 .n_keys = p.n_keys - p.depth,
							 .value = c->value,
							 .in_array = !is_member},
				   out);
	return is_member ? put_member(f, &p, c->value, out, error)
			 : put_element(f, &p, c->value, out);
}

/* There is nothing in the file but perhaps comments. */
static int begin_file(struct text file, struct buf *out)
{
	struct text newline = edit_newline(file);

	buf_add(out, file.data, file.len);
	if (edit_lacks_newline(file))
		buf_add(out, newline.data, newline.len);
	buf_add_str(out, "{}");
	buf_add(out, newline.data, newline.len);
	return out->err;
}

static int json_put(struct edit_step *c, struct text file, struct buf *out, struct error *error)
{
	CLEANUP(json_file_close) struct json_file f;
	int r = json_file_open(&f, file, c->by->comments, error);

	return r ?: (f.root ? put_into(&f, c, out, error) : begin_file(file, out));
}

/* ---- taking out ---- */

static const char blanks[] = " \t\r\n";

/* What stands between the brackets: if it has no children, blanks and comments. */
static struct text inside_of(const struct json_file *f, const struct koine_value *v)
{
	struct span s = json_file_span(f, v);

	return (struct text) {.data = f->text.data + s.start + 1, .len = s.end - s.start - 2};
}

static bool is_empty(const struct koine_value *v)
{
	return koine_value_kind(v) >= KOINE_ARRAY && koine_value_count(v) == 0;
}

/* Whether both have the same comments. */
static bool differ_in_blanks(struct text a, struct text b)
{
	for (;;) {
		a = text_trim(a, blanks);
		b = text_trim(b, blanks);
		if (a.len == 0 || b.len == 0 || a.data[0] != b.data[0])
			return a.len == 0 && b.len == 0;
		a = text_skip(a, 1);
		b = text_skip(b, 1);
	}
}

/* Whether it was there before, and if it was empty then, what stood in it. If the old file cannot
 * be read, everything was there: then only what is surely ours is taken. */
static bool find_before(const struct edit_step *c, const struct json_place *p,
			struct text *ret_inside)
{
	const struct koine_value *v = c->old ? c->old->root : NULL;

	for (unsigned i = 0; i < p->depth && v; i++) {
		if (json_file_member(c->old, v, p->keys[i], &v, NULL) != 0)
			break;
	}
	if (is_empty(v))
		*ret_inside = inside_of(c->old, v);
	return !c->old || v;
}

/* We have emptied the deepest part of the path: removes it if it was not there before, or else
 * makes it look as it did. */
static int prune(const struct json_file *f, const struct json_place *p, const struct edit_step *c,
		 struct buf *out)
{
	struct text before = {0};
	struct splice again;
	bool was_there;

	if (!c->taken || !is_empty(p->at))
		return edit_copy(f->text, out);
	was_there = find_before(c, p, &before);
	again.added = inside_of(f, p->at);
	again.at = (size_t)(again.added.data - f->text.data);
	again.removed = again.added.len;
	if (!was_there && p->over && text_trim(again.added, blanks).len == 0)
		return json_remove(f, p->over, p->at, out);
	if (before.data && differ_in_blanks(before, again.added))
		again.added = before;
	else if (text_trim(again.added, blanks).len == 0)
		again.added.len = 0;
	return edit_splice(f->text, &again, 1, out);
}

static int take_out(const struct json_file *f, const struct koine_value *from,
		    const struct koine_value *child, struct edit_step *c, struct buf *out)
{
	c->taken = true;
	return json_remove(f, from, child, out);
}

static struct text bytes_of(const struct json_file *f, const struct koine_value *v)
{
	struct span span = json_file_span(f, v);

	return (struct text) {.data = f->text.data + span.start, .len = span.end - span.start};
}

static bool connect_json_edit_is_wanted(const struct koine_value *v, const struct edit_step *c)
{
	bool mixed;

	return json_value_equal(v, c->value) ||
	       (koine_value_kind(v) == KOINE_OBJECT && ours_is(v, &mixed));
}

/* An entry that was there before koine connect gets its own bytes again. */
static int put_back(const struct json_file *f, const struct koine_value *v,
		    const struct edit_step *c, const struct koine_value *was, struct buf *out)
{
	struct span span = json_file_span(f, v);

	return edit_splice(f->text,
			   &(struct splice) {.at = span.start,
					     .removed = span.end - span.start,
					     .added = bytes_of(c->old, was)},
			   1, out);
}

static int take_member(const struct json_file *f, const struct json_place *p,
		       const struct koine_value *was, struct edit_step *c, struct buf *out)
{
	if (!connect_json_edit_is_wanted(p->at, c))
		return edit_copy(f->text, out);
	return was ? put_back(f, p->at, c, was, out) : take_out(f, p->over, p->at, c, out);
}

/* The next entry of ours that was there before. */
static const struct koine_value *next_ours(const struct koine_value *v, const struct edit_step *c)
{
	while (v && !connect_json_edit_is_wanted(v, c))
		v = koine_value_next(v);
	return v;
}

static bool has_equal(const struct koine_value *list, const struct koine_value *value)
{
	const struct koine_value *v = koine_value_first(list);

	while (v && !json_value_equal(v, value))
		v = koine_value_next(v);
	return v != NULL;
}

static int take_element(const struct json_file *f, struct json_place *p,
			const struct koine_value *before, struct edit_step *c, struct buf *out,
			struct error *error)
{
	const struct koine_value *was = next_ours(koine_value_first(before), c);
	bool mixed = false;

	for (EACH(v, koine_value_first(p->at))) {
		if (connect_json_edit_is_wanted(v, c) && !was)
			return take_out(f, p->at, v, c, out);
		if (connect_json_edit_is_wanted(v, c)) {
			if (!text_equal(bytes_of(f, v), bytes_of(c->old, was)))
				return put_back(f, v, c, was, out);
			was = next_ours(koine_value_next(was), c);
			continue;
		}
		(void)ours_is(v, &mixed);
		if (!mixed || has_equal(before, v))
			continue;
		p->at = v;
		return json_place_refuse(
			f, p,
			"contains koine's hook and another hook in the same group: remove koine's "
			"hook manually",
			error);
	}
	return prune(f, p, c, out);
}

/* The value at the path in the file as it was before; NULL if there was none. */
static const struct koine_value *value_before(const struct json_file *before,
					      const struct json_place *p)
{
	const struct koine_value *v = before ? before->root : NULL;

	for (unsigned i = 0; i < p->n_keys && v; i++) {
		if (json_file_member(before, v, p->keys[i], &v, NULL) != 0)
			v = NULL;
	}
	return v;
}

static int take_from(const struct json_file *f, struct edit_step *c, struct buf *out,
		     struct error *error)
{
	const struct koine_value *was;
	struct json_place p;
	int r = json_place_find(f, c->e, &p, error);

	if (r != 0)
		return r;
	if (p.depth < p.n_keys)
		return prune(f, &p, c, out);
	was = value_before(c->old, &p);
	return c->e->kind == EDIT_MEMBER ? take_member(f, &p, was, c, out)
					 : take_element(f, &p, was, c, out, error);
}

static int json_take(struct edit_step *c, struct text file, struct buf *out, struct error *error)
{
	CLEANUP(json_file_close) struct json_file old;
	CLEANUP(json_file_close) struct json_file f;
	int r = json_file_open(&f, file, c->by->comments, error);

	c->old = json_file_open(&old, c->before, c->by->comments, NULL) == 0 ? &old : NULL;
	return r ?: (f.root ? take_from(&f, c, out, error) : edit_copy(file, out));
}

const struct editor json_editor = {.put = json_put, .take = json_take};
const struct editor jsonc_editor = {.put = json_put, .take = json_take, .comments = true};
