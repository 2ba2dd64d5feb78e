#include "cli/dialect/ini_edit.h"

#include <stdio.h>
#include <string.h>

#include "cli/connect/edit.h"
#include "cli/kit/value.h"

static const struct text added = {.data = " ; koine dialects", .len = 17};
static const struct text was = {.data = " ; was ", .len = 7};

/* ---- where things are ---- */

struct dialect_ini_edit_found {
	bool has_section;
	struct ini_line section; /* the first of that name */
	bool has_line;
	struct ini_line line;   /* the last with the key */
	struct ini_line header; /* of its section */
};

static void dialect_ini_edit_look(struct text file, struct ini_key key,
				  struct dialect_ini_edit_found *ret)
{
	struct ini_line line, header = {0};
	bool inside = false;
	struct ini ini;

	*ret = (struct dialect_ini_edit_found) {.has_section = false};
	ini_init(&ini, file);
	while (ini_next(&ini, &line)) {
		if (line.kind == INI_SECTION) {
			inside = text_is(line.name, key.section);
			header = line;
		}
		if (inside && line.kind == INI_SECTION && !ret->has_section) {
			ret->has_section = true;
			ret->section = line;
		}
		if (!inside || line.kind != INI_PAIR || !text_is(line.name, key.key))
			continue;
		ret->has_line = true;
		ret->line = line;
		ret->header = header;
	}
}

static size_t start_of(struct text file, const struct ini_line *line)
{
	return (size_t)(line->whole.data - file.data);
}

/* Where the line after it begins. */
static size_t next_of(struct text file, const struct ini_line *line)
{
	return start_of(file, line) + line->whole.len + line->end.len;
}

struct text ini_get(struct text file, struct ini_key key)
{
	struct dialect_ini_edit_found f;

	dialect_ini_edit_look(file, key, &f);
	return f.has_line ? f.line.value : (struct text) {0};
}

static bool is_marked(const struct ini_line *line)
{
	return text_ends(line->whole, added);
}

bool ini_has_others(struct text file)
{
	struct ini_line line;
	struct ini ini;

	ini_init(&ini, file);
	while (ini_next(&ini, &line)) {
		if (text_trim(line.whole, TEXT_SPACE).len > 0 && !is_marked(&line))
			return true;
	}
	return false;
}

/* What stood there before, behind " ; was "; NULL: nothing says so. */
static struct text former(const struct ini_line *line)
{
	size_t end = (size_t)(line->value.data - line->whole.data) + line->value.len;
	struct text t = text_skip(line->whole, end);

	if (!text_begins(t, was))
		return (struct text) {0};
	return text_trim(ini_uncommented(text_skip(t, was.len)), TEXT_SPACE);
}

/* ---- changing them ---- */

static int check_text(struct text file, struct error *error)
{
	const char *nul = file.len > 0 ? memchr(file.data, '\0', file.len) : NULL;

	if (!nul)
		return 0;
	return refuse(error, REFUSE_PARSE, "line %u contains a NUL character",
		      edit_line(file, (size_t)(nul - file.data)));
}

static int check_length(const struct dialect_ini_edit_found *f, size_t more, struct error *error)
{
	size_t len = text_trim(f->line.whole, TEXT_SPACE).len + more;

	if (len <= INI_LINE_MAX)
		return 0;
	return refuse(error, REFUSE_TOO_LARGE, "line %u would be longer than %d bytes",
		      f->line.number, INI_LINE_MAX);
}

static int splice(struct text file, size_t at, size_t removed, struct text text, struct buf *out)
{
	const struct splice s = {.at = at, .removed = removed, .added = text};

	return edit_splice(file, &s, 1, out);
}

static int change_value(struct text file, const struct dialect_ini_edit_found *f, const char *value,
			struct buf *out, struct error *error)
{
	struct text before = f->line.value;
	size_t at = (size_t)(before.data - file.data);
	bool ours = is_marked(&f->line) || former(&f->line).data;
	char text[INI_LINE_MAX + 1];
	size_t more = ours ? strlen(value) : strlen(value) + was.len + before.len;
	int r = check_length(f, more, error);

	if (r != 0)
		return r;
	if (ours)
		snprintf(text, sizeof(text), "%s", value);
	else
		snprintf(text, sizeof(text), "%s%s%.*s", value, was.data, TEXT_ARGS(before));
	return splice(file, at, before.len, text_of(text), out);
}

static void add_line(struct buf *b, struct ini_key key, const char *value)
{
	buf_add_str(b, key.key);
	buf_add_str(b, " = ");
	buf_add_str(b, value);
	buf_add(b, added.data, added.len);
}

/* Behind the head of its section; its last line may have no end. */
static int add_key(struct text file, const struct dialect_ini_edit_found *f, struct ini_key key,
		   const char *value, struct buf *out)
{
	const struct text newline = edit_newline(file);
	bool ends = f->section.end.len > 0;
	struct buf text;
	int r;

	buf_init(&text, EDIT_FILE_MAX);
	if (!ends)
		buf_add(&text, newline.data, newline.len);
	add_line(&text, key, value);
	if (ends)
		buf_add(&text, newline.data, newline.len);
	r = text.err != 0 ? text.err
			  : splice(file, next_of(file, &f->section), 0, buf_text(&text), out);
	buf_done(&text);
	return r;
}

/* At the beginning, where no other section ends. */
static int add_section(struct text file, struct ini_key key, const char *value, struct buf *out)
{
	const struct text newline = edit_newline(file);
	struct buf text;
	struct ini ini;
	size_t at;
	int r;

	ini_init(&ini, file);
	at = file.len - ini.rest.len;
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
	    struct error *error)
{
	struct dialect_ini_edit_found f;
	int r = check_text(file, error);

	if (r != 0)
		return r;
	dialect_ini_edit_look(file, key, &f);
	if (f.has_line && text_is(f.line.value, value))
		return splice(file, 0, 0, TEXT(""), out);
	if (f.has_line)
		return change_value(file, &f, value, out, error);
	if (strlen(key.key) + strlen(" = ") + strlen(value) + added.len > INI_LINE_MAX)
		return refuse(error, REFUSE_TOO_LARGE,
			      "the line for %s would be longer than %d bytes", key.key,
			      INI_LINE_MAX);
	if (f.has_section)
		return add_key(file, &f, key, value, out);
	return add_section(file, key, value, out);
}

/* ---- undoing it ---- */

/* Whether a section has nothing but this line. */
static bool is_alone(struct text file, const struct dialect_ini_edit_found *f)
{
	struct ini ini = {.rest = text_skip(file, next_of(file, &f->header))};
	struct ini_line line;

	while (ini_next(&ini, &line) && line.kind != INI_SECTION) {
		if (line.kind == INI_PAIR && line.whole.data != f->line.whole.data)
			return false;
	}
	return true;
}

/* What we added with the line: the end of the one before it, where that had none; or the head of
 * the section, and a blank line. */
static int remove_line(struct text file, const struct dialect_ini_edit_found *f, struct buf *out)
{
	size_t from = start_of(file, &f->line), to = next_of(file, &f->line);
	struct ini ini = {.rest = text_skip(file, to)};
	struct ini_line next;

	if (f->line.end.len == 0) {
		from -= from > 0 && file.data[from - 1] == '\n';
		from -= from > 0 && file.data[from] == '\n' && file.data[from - 1] == '\r';
	}
	if (!is_marked(&f->header) || next_of(file, &f->header) != start_of(file, &f->line) ||
	    !is_alone(file, f))
		return splice(file, from, to - from, TEXT(""), out);
	from = start_of(file, &f->header);
	if (ini_next(&ini, &next) && next.whole.len == 0)
		to = next_of(file, &next);
	return splice(file, from, to - from, TEXT(""), out);
}

int ini_take(struct text file, struct ini_key key, struct buf *out, bool *ret_undone,
	     struct error *error)
{
	struct dialect_ini_edit_found f;
	struct text before;
	size_t at;
	int r = check_text(file, error);

	if (r != 0)
		return r;
	dialect_ini_edit_look(file, key, &f);
	before = f.has_line ? former(&f.line) : (struct text) {0};
	*ret_undone = f.has_line && (before.data || is_marked(&f.line));
	if (!*ret_undone)
		return splice(file, 0, 0, TEXT(""), out);
	if (!before.data)
		return remove_line(file, &f, out);
	at = (size_t)(f.line.value.data - file.data);
	return splice(file, at, (size_t)(before.data + before.len - f.line.value.data), before,
		      out);
}
