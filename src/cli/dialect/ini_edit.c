#include "cli/dialect/ini_edit.h"

#include <stdio.h>
#include <string.h>

#include "cli/connect/edit.h"
#include "cli/kit/value.h"

static const struct text byte_order_mark = {.data = "\xef\xbb\xbf", .len = 3};
static const struct text added = {.data = " ; koine dialects", .len = 17};
static const struct text was = {.data = " ; was ", .len = 7};

/* A line, as places in the file. */
struct line {
	size_t start;
	size_t end;  /* of what it says, without what ends it */
	size_t next; /* where the next one begins */
};

static bool next_line(struct text file, size_t *at, struct line *ret)
{
	const char *newline;

	if (*at >= file.len)
		return false;
	newline = memchr(file.data + *at, '\n', file.len - *at);
	ret->start = *at;
	ret->next = newline ? (size_t)(newline - file.data) + 1 : file.len;
	ret->end = newline ? ret->next - 1 : file.len;
	if (ret->end > ret->start && newline && file.data[ret->end - 1] == '\r')
		ret->end--;
	*at = ret->next;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct text part(struct text file, size_t from, size_t to)
{
	return (struct text) {.data = file.data + from, .len = to - from};
}

static struct text trim(struct text t)
{
	while (t.len > 0 && is_blank(t.data[0]))
		t = text_skip(t, 1);
	while (t.len > 0 && is_blank(t.data[t.len - 1]))
		t.len--;
	return t;
}

/* A comment within a line begins with a semicolon behind a blank. */
static size_t comment_at(struct text t)
{
	for (size_t i = 1; i < t.len; i++) {
		if (t.data[i] == ';' && is_blank(t.data[i - 1]))
			return i;
	}
	return t.len;
}

/* "[listen]", whatever follows. {NULL, 0}: it is no such line. */
static struct text section_of(struct text line)
{
	const char *end;

	line = trim(line);
	end = line.len > 0 && line.data[0] == '[' ? memchr(line.data, ']', line.len) : NULL;
	if (!end)
		return (struct text) {0};
	return (struct text) {.data = line.data + 1, .len = (size_t)(end - line.data) - 1};
}

/* Whether the line is KEY = VALUE. The value is without the comment behind it, and may be empty. */
static bool pair_of(struct text line, struct text *ret_key, struct text *ret_value)
{
	struct text t = trim(line);
	size_t n = 0;

	if (t.len == 0 || t.data[0] == ';' || t.data[0] == '#' || t.data[0] == '[')
		return false;
	while (n < t.len && t.data[n] != '=' && t.data[n] != ':')
		n++;
	if (n == t.len || comment_at(t) < n)
		return false;
	*ret_key = trim((struct text) {.data = t.data, .len = n});
	t = text_skip(t, n + 1);
	t.len = comment_at(t);
	*ret_value = trim(t);
	return true;
}

static size_t skip_mark(struct text file)
{
	return text_begins(file, byte_order_mark) ? byte_order_mark.len : 0;
}

/* ---- where things are ---- */

struct found {
	bool has_section;
	struct line section; /* the first of that name */
	bool has_line;
	struct line line;   /* the last with the key */
	struct line header; /* of its section */
	struct text value;
};

static void look(struct text file, struct ini_key key, struct found *ret)
{
	size_t at = skip_mark(file);
	struct line line, header = {0};
	bool inside = false;

	*ret = (struct found) {.has_section = false};
	while (next_line(file, &at, &line)) {
		struct text text = part(file, line.start, line.end);
		struct text section = section_of(text);
		struct text name, value;

		if (section.data) {
			inside = text_is(section, key.section);
			header = line;
		}
		if (inside && section.data && !ret->has_section) {
			ret->has_section = true;
			ret->section = line;
		}
		if (!inside || section.data || !pair_of(text, &name, &value) ||
		    !text_is(name, key.key))
			continue;
		ret->has_line = true;
		ret->line = line;
		ret->header = header;
		ret->value = value;
	}
}

struct text ini_get(struct text file, struct ini_key key)
{
	struct found f;

	look(file, key, &f);
	return f.has_line ? f.value : (struct text) {0};
}

static bool is_marked(struct text file, struct line line)
{
	struct text t = part(file, line.start, line.end);

	return t.len >= added.len && memcmp(t.data + t.len - added.len, added.data, added.len) == 0;
}

bool ini_has_others(struct text file)
{
	size_t at = skip_mark(file);
	struct line line;

	while (next_line(file, &at, &line)) {
		if (trim(part(file, line.start, line.end)).len > 0 && !is_marked(file, line))
			return true;
	}
	return false;
}

/* What stood there before, behind " ; was "; NULL: nothing says so. */
static struct text former(struct text file, const struct found *f)
{
	size_t end = (size_t)(f->value.data - file.data) + f->value.len;
	struct text t = part(file, end, f->line.end);

	if (!text_begins(t, was))
		return (struct text) {0};
	t = text_skip(t, was.len);
	t.len = comment_at(t);
	return trim(t);
}

/* ---- changing them ---- */

static int check_text(struct text file, struct why *why)
{
	const char *nul = file.len > 0 ? memchr(file.data, '\0', file.len) : NULL;

	if (!nul)
		return 0;
	return refuse(why, REFUSE_PARSE, "line %u has a NUL character",
		      edit_line(file, (size_t)(nul - file.data)));
}

static int check_length(struct text file, const struct found *f, size_t more, struct why *why)
{
	size_t len = trim(part(file, f->line.start, f->line.end)).len + more;

	if (len <= INI_LINE_MAX)
		return 0;
	return refuse(why, REFUSE_TOO_LARGE, "line %u would have more than %d bytes",
		      edit_line(file, f->line.start), INI_LINE_MAX);
}

static int splice(struct text file, size_t at, size_t removed, struct text text, struct buf *out)
{
	const struct splice s = {.at = at, .removed = removed, .added = text};

	return edit_splice(file, &s, 1, out);
}

static int change_value(struct text file, const struct found *f, const char *value, struct buf *out,
			struct why *why)
{
	size_t at = (size_t)(f->value.data - file.data);
	bool ours = is_marked(file, f->line) || former(file, f).data;
	char text[INI_LINE_MAX + 1];
	size_t more = ours ? strlen(value) : strlen(value) + was.len + f->value.len;
	int r = check_length(file, f, more, why);

	if (r != 0)
		return r;
	if (ours)
		snprintf(text, sizeof(text), "%s", value);
	else
		snprintf(text, sizeof(text), "%s%s%.*s", value, was.data, TEXT_ARGS(f->value));
	return splice(file, at, f->value.len, text_of(text), out);
}

static void add_line(struct buf *b, struct ini_key key, const char *value)
{
	buf_add_str(b, key.key);
	buf_add_str(b, " = ");
	buf_add_str(b, value);
	buf_add(b, added.data, added.len);
}

/* Behind the head of its section; its last line may have no end. */
static int add_key(struct text file, const struct found *f, struct ini_key key, const char *value,
		   struct buf *out)
{
	const struct text newline = edit_newline(file);
	bool ends = f->section.next > f->section.end;
	struct buf text;
	int r;

	buf_init(&text, EDIT_FILE_MAX);
	if (!ends)
		buf_add(&text, newline.data, newline.len);
	add_line(&text, key, value);
	if (ends)
		buf_add(&text, newline.data, newline.len);
	r = text.err != 0 ? text.err : splice(file, f->section.next, 0, buf_text(&text), out);
	buf_done(&text);
	return r;
}

/* At the beginning, where no other section ends. */
static int add_section(struct text file, struct ini_key key, const char *value, struct buf *out)
{
	const struct text newline = edit_newline(file);
	size_t at = skip_mark(file);
	struct buf text;
	int r;

	buf_init(&text, EDIT_FILE_MAX);
	buf_add_char(&text, '[');
	buf_add_str(&text, key.section);
	buf_add_char(&text, ']');
	buf_add(&text, added.data, added.len);
	buf_add(&text, newline.data, newline.len);
	add_line(&text, key, value);
	buf_add(&text, newline.data, newline.len);
	if (at < file.len)
		buf_add(&text, newline.data, newline.len);
	r = text.err != 0 ? text.err : splice(file, at, 0, buf_text(&text), out);
	buf_done(&text);
	return r;
}

int ini_put(struct text file, struct ini_key key, const char *value, struct buf *out,
	    struct why *why)
{
	struct found f;
	int r = check_text(file, why);

	if (r != 0)
		return r;
	look(file, key, &f);
	if (f.has_line && text_is(f.value, value))
		return splice(file, 0, 0, TEXT(""), out);
	if (f.has_line)
		return change_value(file, &f, value, out, why);
	if (strlen(key.key) + strlen(" = ") + strlen(value) + added.len > INI_LINE_MAX)
		return refuse(why, REFUSE_TOO_LARGE,
			      "the line for %s would have more than %d bytes", key.key,
			      INI_LINE_MAX);
	if (f.has_section)
		return add_key(file, &f, key, value, out);
	return add_section(file, key, value, out);
}

/* ---- undoing it ---- */

/* Whether a section has nothing but this line. */
static bool is_alone(struct text file, struct line header, struct line only)
{
	size_t at = header.next;
	struct line line;
	struct text name, value;

	while (next_line(file, &at, &line)) {
		struct text text = part(file, line.start, line.end);

		if (section_of(text).data)
			return true;
		if (line.start != only.start && pair_of(text, &name, &value))
			return false;
	}
	return true;
}

/* What we added with the line: the end of the one before it, where that had none; or the head of
 * the section, and a blank line. */
static int remove_line(struct text file, const struct found *f, struct buf *out)
{
	size_t from = f->line.start, to = f->line.next;
	struct line blank;
	size_t at = to;

	if (f->line.next == f->line.end) {
		from -= from > 0 && file.data[from - 1] == '\n';
		from -= from > 0 && file.data[from] == '\n' && file.data[from - 1] == '\r';
	}
	if (!is_marked(file, f->header) || f->header.next != f->line.start ||
	    !is_alone(file, f->header, f->line))
		return splice(file, from, to - from, TEXT(""), out);
	from = f->header.start;
	if (next_line(file, &at, &blank) && blank.end == blank.start)
		to = blank.next;
	return splice(file, from, to - from, TEXT(""), out);
}

int ini_take(struct text file, struct ini_key key, struct buf *out, bool *ret_undone,
	     struct why *why)
{
	struct found f;
	struct text before;
	size_t at;
	int r = check_text(file, why);

	if (r != 0)
		return r;
	look(file, key, &f);
	before = f.has_line ? former(file, &f) : (struct text) {0};
	*ret_undone = f.has_line && (before.data || is_marked(file, f.line));
	if (!*ret_undone)
		return splice(file, 0, 0, TEXT(""), out);
	if (!before.data)
		return remove_line(file, &f, out);
	at = (size_t)(f.value.data - file.data);
	return splice(file, at, (size_t)(before.data + before.len - f.value.data), before, out);
}
