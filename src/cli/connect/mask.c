#include "cli/connect/mask.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "cli/connect/edit.h"

/* A string or a comment. */
struct token {
	struct text text; /* with its quotes */
	bool is_key;
	bool is_comment;
};

struct tokens {
	struct text *items;
	size_t n;
	size_t size;
};

static bool begins(struct text t, size_t at, const char *word)
{
	size_t n = strlen(word);

	return t.len - at >= n && memcmp(t.data + at, word, n) == 0;
}

/* Where something that began at `from` ends: behind `end`, or at the end of the text. */
static size_t behind(struct text t, size_t from, const char *end, bool escapes)
{
	for (; from < t.len; from++) {
		if (escapes && t.data[from] == '\\')
			from++;
		else if (begins(t, from, end))
			return from + strlen(end);
	}
	return t.len;
}

static size_t end_of_token(struct text t, size_t at, bool toml, bool *ret_comment)
{
	static const char *const quotes[] = {"\"\"\"", "'''", "\"", "'"};

	*ret_comment = true;
	if (toml ? t.data[at] == '#' : begins(t, at, "//")) {
		while (at < t.len && t.data[at] != '\r' && t.data[at] != '\n')
			at++;
		return at;
	}
	if (!toml && begins(t, at, "/*"))
		return behind(t, at + 2, "*/", false);
	*ret_comment = false;
	for (unsigned i = toml ? 0 : 2; i < (toml ? 4 : 3); i++) {
		if (begins(t, at, quotes[i]))
			return behind(t, at + strlen(quotes[i]), quotes[i], quotes[i][0] == '"');
	}
	return at;
}

static bool is_key(struct text t, size_t end, bool toml)
{
	while (end < t.len && memchr(" \t\r\n", t.data[end], 4))
		end++;
	return end < t.len &&
	       (toml ? t.data[end] == '=' || t.data[end] == '.' : t.data[end] == ':');
}

/* The next string or comment; false: there is none. What is before it begins at *at. */
static bool next_token(struct text t, bool toml, size_t *at, struct token *ret)
{
	for (size_t i = *at; i < t.len; i++) {
		bool comment;
		size_t end = end_of_token(t, i, toml, &comment);

		if (end == i)
			continue;
		*ret = (struct token) {
			.text = {.data = t.data + i, .len = end - i},
			.is_key = !comment && is_key(t, end, toml),
			.is_comment = comment,
		};
		*at = end;
		return true;
	}
	*at = t.len;
	return false;
}

static int compare(const void *a, const void *b)
{
	const struct text *x = a;
	const struct text *y = b;
	int r = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

	return r != 0 ? r : (x->len > y->len) - (x->len < y->len);
}

static int collect(struct text t, bool toml, struct tokens *ret)
{
	struct token token;
	size_t at = 0;

	while (next_token(t, toml, &at, &token)) {
		if (token.is_key)
			continue;
		if (ret->n == ret->size) {
			size_t size = ret->size > 0 ? ret->size * 2 : 64;
			struct text *items = realloc(ret->items, size * sizeof(*items));

			if (!items)
				return -ENOMEM;
			ret->items = items;
			ret->size = size;
		}
		ret->items[ret->n++] = token.text;
	}
	if (ret->n > 0)
		qsort(ret->items, ret->n, sizeof(*ret->items), compare);
	return 0;
}

static bool is_koines(const struct mask *m, struct text t)
{
	for (unsigned i = 0; i < m->n_edits; i++) {
		if (memmem(m->edits[i].value, strlen(m->edits[i].value), t.data, t.len))
			return true;
	}
	return false;
}

static bool is_shown(const struct mask *m, const struct tokens *other, const struct token *t)
{
	return t->is_key || t->text.len <= 2 || is_koines(m, t->text) || other->n == 0 ||
	       !bsearch(&t->text, other->items, other->n, sizeof(*other->items), compare);
}

static void add_hidden(const struct token *t, struct buf *out)
{
	if (t->is_comment) {
		buf_add(out, t->text.data, t->text.data[0] == '#' ? 1 : 2);
		buf_add_str(out, " ...");
		for (size_t i = 0; i < t->text.len; i++) {
			if (t->text.data[i] == '\n')
				buf_add_char(out, '\n');
		}
		if (t->text.data[1] == '*')
			buf_add_str(out, " */");
		return;
	}
	buf_add(out, t->text.data, 1);
	buf_add_str(out, "...");
	buf_add(out, t->text.data, 1);
}

int mask_text(const struct mask *m, struct text t, struct text other, struct buf *out)
{
	bool toml = m->by == &toml_editor;
	struct tokens others = {.n = 0};
	struct token token;
	size_t from = 0;
	size_t at = 0;
	int r = collect(other, toml, &others);

	while (r == 0 && next_token(t, toml, &at, &token)) {
		buf_add(out, t.data + from, (size_t)(token.text.data - t.data) - from);
		if (is_shown(m, &others, &token))
			buf_add(out, token.text.data, token.text.len);
		else
			add_hidden(&token, out);
		from = at;
	}
	if (r == 0)
		buf_add(out, t.data + from, t.len - from);
	free(others.items);
	return r != 0 ? r : out->err;
}
