#include "cli/connect/edit.h"

#include "base/cleanup.h"
#include "cli/kit/value.h"

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

/* ---- all that belongs to a file ---- */

struct change {
	const struct editor *by;
	struct text before;
	bool takes;
};

static int change_once(const struct change *c, struct text file, const struct edit *e,
		       struct buf *out, struct why *why)
{
	if (!c->takes)
		return c->by->put(file, e, out, why);
	if (!e->stays)
		return c->by->take(file, c->before, e, out, why);
	buf_add(out, file.data, file.len);
	return out->err;
}

static int change_all(const struct change *c, struct text file, const struct edit *edits,
		      unsigned n, struct buf *out, struct why *why)
{
	CLEANUP(buf_donep) struct buf now;
	int r = 0;

	buf_init(&now, EDIT_FILE_MAX);
	buf_clear(out);
	buf_add(out, file.data, file.len);
	for (unsigned i = 0; i < n && out->err == 0 && r == 0; i++) {
		buf_clear(&now);
		buf_add(&now, out->data, out->len);
		buf_clear(out);
		r = now.err != 0 ? now.err : change_once(c, buf_text(&now), &edits[i], out, why);
	}
	return r != 0 ? r : out->err;
}

int edit_put(const struct editor *by, struct text file, const struct edit *edits, unsigned n,
	     struct buf *out, struct why *why)
{
	return change_all(&(struct change) {.by = by}, file, edits, n, out, why);
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

int edit_take(const struct editor *by, struct text file, struct text before,
	      const struct edit *edits, unsigned n, struct buf *out, struct why *why)
{
	struct change c = {.by = by, .before = before, .takes = true};
	int r = change_all(&c, file, edits, n, out, why);

	if (r < 0 || (r == 0 && text_equal(buf_text(out), file)) ||
	    !differ_only_in_edits(by, file, before, edits, n))
		return r;
	buf_clear(out);
	buf_add(out, before.data, before.len);
	return out->err;
}
