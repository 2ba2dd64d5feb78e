#include "cli/connect/edit.h"

#include "base/cleanup.h"
#include "cli/kit/value.h"

/* A value of ours has fewer parts; each round changes one. */
enum { ROUNDS_MAX = 32 };

unsigned edit_line(struct text file, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at && i < file.len; i++)
		line += file.data[i] == '\n';
	return line;
}

struct text edit_newline(struct text file)
{
	const char *first = file.len > 0 ? memchr(file.data, '\n', file.len) : NULL;

	if (first && first > file.data && first[-1] == '\r')
		return TEXT("\r\n");
	return TEXT("\n");
}

bool edit_is_empty(struct text file)
{
	return file.len == 0 || text_is(file, "\xef\xbb\xbf");
}

bool edit_lacks_newline(struct text file)
{
	return !edit_is_empty(file) && file.data[file.len - 1] != '\n';
}

unsigned edit_keys(const struct edit *e, struct text keys[EDIT_PATH_MAX])
{
	struct text rest = text_of(e->path);
	unsigned n = 0;

	while (n < EDIT_PATH_MAX && text_next(&rest, '/', &keys[n]))
		n++;
	if (e->key && n < EDIT_PATH_MAX)
		keys[n++] = text_of(e->key);
	return n;
}

int edit_copy(struct text file, struct buf *out)
{
	buf_add(out, file.data, file.len);
	return out->err;
}

int edit_splice(struct text file, const struct splice *splices, unsigned n, struct buf *out)
{
	size_t at = 0;

	for (unsigned i = 0; i < n; i++) {
		buf_add(out, file.data + at, splices[i].at - at);
		buf_add(out, splices[i].added.data, splices[i].added.len);
		at = splices[i].at + splices[i].removed;
	}
	buf_add(out, file.data + at, file.len - at);
	return out->err;
}

int edit_refuse(unsigned line, const struct text *keys, unsigned n, const char *words,
		struct error *error)
{
	CLEANUP(buf_donep) struct buf name;

	buf_init(&name, 1024);
	for (unsigned i = 0; i < n; i++)
		buf_printf(&name, "%s%.*s", i > 0 ? "." : "", TEXT_ARGS(keys[i]));
	if (n == 0)
		buf_add_str(&name, "the file");
	return refuse(error, REFUSE_CONFLICT, "line %u: %.*s %s", line, TEXT_ARGS(buf_text(&name)),
		      words);
}

/* ---- all that belongs to a file ---- */

/* Changes the text in `out`, until there is nothing left to change. */
static int change(struct edit_step *c, edit_fn step, struct buf *out, struct error *error)
{
	CLEANUP(buf_donep) struct buf now;
	int r = 0;

	buf_init(&now, EDIT_FILE_MAX);
	for (int round = 0; r == 0 && round < ROUNDS_MAX; round++) {
		buf_clear(&now);
		r = edit_copy(buf_text(out), &now);
		buf_clear(out);
		if (r == 0)
			r = step(c, buf_text(&now), out, error);
		if (r == 0 && text_equal(buf_text(&now), buf_text(out)))
			return 0;
	}
	return r != 0 ? r : refuse(error, REFUSE_INTERNAL, "cannot edit the file");
}

static int change_all(struct edit_step c, edit_fn step, struct text file, const struct edit *edits,
		      unsigned n, struct buf *out, struct error *error)
{
	int r;

	buf_clear(out);
	r = edit_copy(file, out);
	for (unsigned i = 0; i < n && r == 0; i++) {
		CLEANUP(doc_freep) struct koine_doc *doc = NULL;

		if (step == c.by->take && edits[i].stays)
			continue;
		c.e = &edits[i];
		c.taken = false;
		r = koine_doc_parse(c.e->value, strlen(c.e->value), &doc, NULL, 0);
		c.value = koine_doc_root(doc);
		if (r > 0)
			return refuse(error, REFUSE_INTERNAL, "the entry to add is not valid JSON");
		r = r ?: change(&c, step, out, error);
	}
	return r;
}

int edit_put(const struct editor *by, struct text file, const struct edit *edits, unsigned n,
	     struct buf *out, struct error *error)
{
	return change_all((struct edit_step) {.by = by}, by->put, file, edits, n, out, error);
}

/* Another koine may have been connected, or another socket: then both texts are brought up to date
 * before they are compared. */
static bool differ_only_in_edits(const struct editor *by, struct text file, struct text before,
				 const struct edit *edits, unsigned n)
{
	CLEANUP(buf_donep) struct buf now;
	CLEANUP(buf_donep) struct buf then;

	buf_init(&now, EDIT_FILE_MAX);
	buf_init(&then, EDIT_FILE_MAX);
	return edit_put(by, file, edits, n, &now, NULL) == 0 &&
	       edit_put(by, before, edits, n, &then, NULL) == 0 &&
	       text_equal(buf_text(&now), buf_text(&then));
}

int edit_take_each(const struct editor *by, struct text file, struct text before,
		   const struct edit *edits, unsigned n, struct buf *out, struct error *error)
{
	return change_all((struct edit_step) {.by = by, .before = before}, by->take, file, edits, n,
			  out, error);
}

int edit_take(const struct editor *by, struct text file, struct text before,
	      const struct edit *edits, unsigned n, struct buf *out, struct error *error)
{
	int r = edit_take_each(by, file, before, edits, n, out, error);

	if (r < 0 || (r == 0 && text_equal(buf_text(out), file)) ||
	    !differ_only_in_edits(by, file, before, edits, n))
		return r;
	buf_clear(out);
	return edit_copy(before, out);
}
