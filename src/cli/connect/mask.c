#include "cli/connect/mask.h"

#include "cli/connect/ours.h"

/* A string or a comment. */
struct token {
	struct text text; /* with its quotes */
	bool is_key;
	bool is_comment;
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

/* In TOML up to two quotes may stand before the three that end a string. */
static size_t behind_long_string(struct text t, size_t at, const char *quotes)
{
	size_t end = behind(t, at + 3, quotes, quotes[0] == '"');

	for (unsigned i = 0; i < 2 && end < t.len && t.data[end] == quotes[0]; i++)
		end++;
	return end;
}

static size_t end_of_token(struct text t, size_t at, bool toml, bool *ret_comment)
{
	static const char *const long_quotes[] = {"\"\"\"", "'''"};
	static const char *const quotes[] = {"\"", "'"};

	*ret_comment = true;
	if (toml ? t.data[at] == '#' : begins(t, at, "//")) {
		while (at < t.len && t.data[at] != '\r' && t.data[at] != '\n')
			at++;
		return at;
	}
	if (!toml && begins(t, at, "/*"))
		return behind(t, at + 2, "*/", false);
	*ret_comment = false;
	for (unsigned i = 0; toml && i < 2; i++) {
		if (begins(t, at, long_quotes[i]))
			return behind_long_string(t, at, long_quotes[i]);
	}
	for (unsigned i = 0; i < (toml ? 2 : 1); i++) {
		if (begins(t, at, quotes[i]))
			return behind(t, at + 1, quotes[i], quotes[i][0] == '"');
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

/* A koine of another place or version is koine's, too. */
static bool is_koines(const struct mask *m, struct text t)
{
	for (unsigned i = 0; i < m->n_edits; i++) {
		if (memmem(m->edits[i].value, strlen(m->edits[i].value), t.data, t.len))
			return true;
	}
	return ours_is_command((struct text) {.data = t.data + 1, .len = t.len - 2});
}

static bool is_shown(const struct mask *m, const struct token *t)
{
	return t->is_key || t->text.len <= 2 || (!t->is_comment && is_koines(m, t->text));
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
		if (t->text.data[0] == '/' && t->text.data[1] == '*')
			buf_add_str(out, " */");
		return;
	}
	buf_add(out, t->text.data, 1);
	buf_add_str(out, "...");
	buf_add(out, t->text.data, 1);
}

void mask_text(const struct mask *m, struct text t, struct buf *out)
{
	struct token token;
	size_t from = 0;
	size_t at = 0;

	while (next_token(t, m->by == &toml_editor, &at, &token)) {
		buf_add(out, t.data + from, (size_t)(token.text.data - t.data) - from);
		if (is_shown(m, &token))
			buf_add(out, token.text.data, token.text.len);
		else
			add_hidden(&token, out);
		from = at;
	}
	buf_add(out, t.data + from, t.len - from);
}
