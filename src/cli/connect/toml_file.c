#include "cli/connect/toml_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "base/utf8.h"

enum { NESTING_MAX = 64, ITEMS_MAX = 100000 };

struct connect_toml_file_scan {
	struct text text;
	size_t at;
	struct toml_file *file;
	struct toml_path header;
	unsigned line; /* of the byte `counted` */
	size_t counted;
	struct error *error;
};

static int broken(const struct connect_toml_file_scan *s, const char *what)
{
	return refuse(s->error, REFUSE_PARSE, "line %u: invalid TOML: %s",
		      edit_line(s->text, s->at), what);
}

static bool at_end(const struct connect_toml_file_scan *s)
{
	return s->at >= s->text.len;
}

static bool next_is(const struct connect_toml_file_scan *s, const char *word)
{
	size_t n = strlen(word);

	return s->text.len - s->at >= n && memcmp(s->text.data + s->at, word, n) == 0;
}

static void skip_blanks(struct connect_toml_file_scan *s)
{
	while (next_is(s, " ") || next_is(s, "\t"))
		s->at++;
}

static bool at_newline(const struct connect_toml_file_scan *s)
{
	return next_is(s, "\n") || next_is(s, "\r\n");
}

static void skip_comment(struct connect_toml_file_scan *s)
{
	if (!next_is(s, "#"))
		return;
	while (!at_end(s) && !at_newline(s))
		s->at++;
}

/* Blanks, comments and line ends. */
static void skip_gaps(struct connect_toml_file_scan *s)
{
	size_t before;

	do {
		before = s->at;
		skip_blanks(s);
		skip_comment(s);
		if (at_newline(s))
			s->at += next_is(s, "\r") ? 2 : 1;
	} while (s->at > before);
}

/* ---- strings ---- */

static int skip_long_string(struct connect_toml_file_scan *s, const char *quotes)
{
	bool escapes = quotes[0] == '"';

	for (s->at += 3; !at_end(s); s->at++) {
		if (escapes && next_is(s, "\\")) {
			s->at++;
			continue;
		}
		if (!next_is(s, quotes))
			continue;
		s->at += 3;
		/* Two more quotes may belong to the text. */
		for (int i = 0; i < 2 && !at_end(s) && s->text.data[s->at] == quotes[0]; i++)
			s->at++;
		return 0;
	}
	return broken(s, "unterminated string");
}

static int skip_short_string(struct connect_toml_file_scan *s)
{
	char quote = s->text.data[s->at];

	for (s->at++; !at_end(s) && s->text.data[s->at] != '\n'; s->at++) {
		if (s->text.data[s->at] == quote) {
			s->at++;
			return 0;
		}
		if (quote == '"' && s->text.data[s->at] == '\\')
			s->at++;
	}
	return broken(s, "unterminated string");
}

static int skip_string(struct connect_toml_file_scan *s)
{
	if (next_is(s, "\"\"\""))
		return skip_long_string(s, "\"\"\"");
	if (next_is(s, "'''"))
		return skip_long_string(s, "'''");
	return skip_short_string(s);
}

/* ---- keys ---- */

static bool is_bare(char c)
{
	return isalnum((unsigned char)c) || c == '-' || c == '_';
}

static int read_key(struct connect_toml_file_scan *s, struct text *ret_key)
{
	size_t start = s->at;
	int r;

	if (next_is(s, "\"") || next_is(s, "'")) {
		r = skip_short_string(s);
		if (r != 0)
			return r;
		*ret_key =
			(struct text) {.data = s->text.data + start + 1, .len = s->at - start - 2};
		if (s->text.data[start] == '"' && ret_key->len > 0 &&
		    memchr(ret_key->data, '\\', ret_key->len))
			return refuse(s->error, REFUSE_CONFLICT,
				      "line %u: backslashes in keys are not supported",
				      edit_line(s->text, s->at));
		return 0;
	}
	while (!at_end(s) && is_bare(s->text.data[s->at]))
		s->at++;
	*ret_key = (struct text) {.data = s->text.data + start, .len = s->at - start};
	return s->at > start ? 0 : broken(s, "missing key");
}

/* a . "b" . c, added to the path. */
static int read_path(struct connect_toml_file_scan *s, struct toml_path *p)
{
	int r;

	for (;;) {
		skip_blanks(s);
		if (p->n == TOML_DEPTH_MAX)
			return broken(s, "keys are nested too deeply");
		r = read_key(s, &p->keys[p->n]);
		if (r != 0)
			return r;
		p->n++;
		skip_blanks(s);
		if (!next_is(s, "."))
			return 0;
		s->at++;
	}
}

/* ---- values ---- */

static int skip_value(struct connect_toml_file_scan *s, unsigned depth);

static int skip_list(struct connect_toml_file_scan *s, unsigned depth)
{
	int r;

	s->at++;
	for (;;) {
		skip_gaps(s);
		if (next_is(s, "]"))
			break;
		r = skip_value(s, depth);
		if (r != 0)
			return r;
		skip_gaps(s);
		if (next_is(s, ","))
			s->at++;
		else if (!next_is(s, "]"))
			return broken(s, "unterminated array");
	}
	s->at++;
	return 0;
}

static int skip_pair(struct connect_toml_file_scan *s, unsigned depth)
{
	struct toml_path unused = {.n = 0};
	int r = read_path(s, &unused);

	if (r != 0)
		return r;
	if (!next_is(s, "="))
		return broken(s, "missing '=' after the key");
	s->at++;
	skip_blanks(s);
	return skip_value(s, depth);
}

static int skip_inline_table(struct connect_toml_file_scan *s, unsigned depth)
{
	bool is_first = true;
	int r;

	s->at++;
	for (;; is_first = false) {
		skip_blanks(s);
		if (is_first && next_is(s, "}"))
			break;
		r = skip_pair(s, depth);
		if (r != 0)
			return r;
		skip_blanks(s);
		if (next_is(s, "}"))
			break;
		if (!next_is(s, ","))
			return broken(s, "unterminated inline table");
		s->at++;
	}
	s->at++;
	return 0;
}

/* A number, a truth or a time. Between a date and its time there may be one blank. */
static int skip_word(struct connect_toml_file_scan *s)
{
	size_t start = s->at;

	while (!at_end(s)) {
		char c = s->text.data[s->at];
		bool is_date = s->at - start == 10 && s->text.data[start + 4] == '-';

		if (!is_bare(c) && c != '+' && c != '.' && c != ':' &&
		    !(c == ' ' && is_date && s->at + 1 < s->text.len &&
		      isdigit((unsigned char)s->text.data[s->at + 1])))
			break;
		s->at++;
	}
	return s->at > start ? 0 : broken(s, "missing value");
}

static int skip_value(struct connect_toml_file_scan *s, unsigned depth)
{
	if (depth > NESTING_MAX)
		return broken(s, "values are nested too deeply");
	if (next_is(s, "\"") || next_is(s, "'"))
		return skip_string(s);
	if (next_is(s, "["))
		return skip_list(s, depth + 1);
	if (next_is(s, "{"))
		return skip_inline_table(s, depth + 1);
	return skip_word(s);
}

/* ---- lines ---- */

static int add_item(struct connect_toml_file_scan *s, const struct toml_item *item)
{
	struct toml_file *f = s->file;
	struct toml_item *items = f->items;

	if (f->n_items == ITEMS_MAX)
		return broken(s, "too many keys");
	/* Doubled whenever the number is a power of two. */
	if ((f->n_items & (f->n_items - 1)) == 0) {
		items = realloc(items, (f->n_items > 0 ? f->n_items * 2 : 1) * sizeof(*items));
		if (!items)
			return -ENOMEM;
		f->items = items;
	}
	f->items[f->n_items++] = *item;
	return 0;
}

static int read_header(struct connect_toml_file_scan *s, struct toml_item *item)
{
	bool is_array = next_is(s, "[[");
	const char *close = is_array ? "]]" : "]";
	int r;

	s->at += strlen(close);
	item->kind = is_array ? TOML_TABLE_ARRAY : TOML_TABLE;
	r = read_path(s, &item->path);
	if (r != 0)
		return r;
	if (!next_is(s, close))
		return broken(s, "unterminated table header");
	s->at += strlen(close);
	item->header = item->path.n;
	s->header = item->path;
	return 0;
}

static int read_pair(struct connect_toml_file_scan *s, struct toml_item *item)
{
	size_t start;
	int r;

	item->kind = TOML_KEY;
	item->path = s->header;
	item->header = s->header.n;
	r = read_path(s, &item->path);
	if (r != 0)
		return r;
	if (!next_is(s, "="))
		return broken(s, "missing '=' after the key");
	s->at++;
	skip_blanks(s);
	start = s->at;
	r = skip_value(s, 0);
	item->value = (struct text) {.data = s->text.data + start, .len = s->at - start};
	return r;
}

/* Each byte is looked at once. */
static unsigned count_lines(struct connect_toml_file_scan *s)
{
	for (; s->counted < s->at; s->counted++)
		s->line += s->text.data[s->counted] == '\n';
	return s->line;
}

static int read_line(struct connect_toml_file_scan *s)
{
	struct toml_item item = {.start = s->at};
	int r;

	skip_blanks(s);
	skip_comment(s);
	if (at_end(s) || at_newline(s)) {
		skip_gaps(s);
		return 0;
	}
	item.line = count_lines(s);
	r = next_is(s, "[") ? read_header(s, &item) : read_pair(s, &item);
	if (r != 0)
		return r;
	skip_blanks(s);
	skip_comment(s);
	if (!at_end(s) && !at_newline(s))
		return broken(s, "unexpected text at the end of the line");
	if (!at_end(s))
		s->at += next_is(s, "\r") ? 2 : 1;
	item.end = s->at;
	return add_item(s, &item);
}

int toml_file_open(struct toml_file *f, struct text text, struct error *error)
{
	struct connect_toml_file_scan s = {.text = text, .file = f, .line = 1, .error = error};
	int r = 0;

	*f = (struct toml_file) {.text = text};
	if (text.len > EDIT_FILE_MAX)
		return refuse(error, REFUSE_TOO_LARGE, "the file is larger than %d bytes",
			      EDIT_FILE_MAX);
	if (text.len > 0 &&
	    (memchr(text.data, '\0', text.len) || !utf8_is_valid(text.data, text.len)))
		return refuse(error, REFUSE_PARSE, "invalid TOML: the file is not UTF-8");
	if (next_is(&s, "\xef\xbb\xbf"))
		s.at = 3;
	while (r == 0 && !at_end(&s))
		r = read_line(&s);
	return r;
}

void toml_file_close(struct toml_file *f)
{
	free(f->items);
}

bool toml_path_begins(const struct toml_path *p, const struct toml_path *with)
{
	if (p->n < with->n)
		return false;
	for (unsigned i = 0; i < with->n; i++) {
		if (!text_equal(p->keys[i], with->keys[i]))
			return false;
	}
	return true;
}

bool toml_path_equal(const struct toml_path *a, const struct toml_path *b)
{
	return a->n == b->n && toml_path_begins(a, b);
}
