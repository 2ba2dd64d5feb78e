#include "wire/ini.h"

#include <string.h>

static bool ini_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct text part(struct text t, size_t from, size_t to)
{
	return (struct text) {.data = t.data + from, .len = to - from};
}

/* Where one of two characters is, or else a comment, or the end. */
static size_t ini_find(struct text t, char one, char other)
{
	size_t i = 0;

	while (i < t.len && t.data[i] != one && t.data[i] != other &&
	       !(i > 0 && t.data[i] == ';' && ini_is_blank(t.data[i - 1])))
		i++;
	return i;
}

struct text ini_uncommented(struct text t)
{
	return part(t, 0, ini_find(t, '\n', '\n'));
}

void ini_init(struct ini *ini, struct text file)
{
	static const struct text mark =
		TEXT("\xef\xbb\xbf"); /* some editors start a file with it */

	if (file.len >= mark.len && memcmp(file.data, mark.data, mark.len) == 0)
		file = part(file, mark.len, file.len);
	*ini = (struct ini) {.rest = file};
}

static bool read_section(struct ini_line *line, struct text t)
{
	struct text inside = part(t, 1, t.len);
	size_t n = ini_find(inside, ']', ']');

	line->name = part(inside, 0, n);
	return n < inside.len && inside.data[n] == ']';
}

static bool read_pair(struct ini_line *line, struct text t)
{
	size_t n = ini_find(t, '=', ':');

	if (n == t.len || t.data[n] == ';')
		return false;
	line->name = text_trim(part(t, 0, n), TEXT_SPACE);
	line->value = text_trim(ini_uncommented(part(t, n + 1, t.len)), TEXT_SPACE);
	return true;
}

_Static_assert(INI_LINE_MAX == 8192, "the error names the limit");

static enum ini_kind ini_read_line(struct ini_line *line, struct text t)
{
	if (t.len > 0 && memchr(t.data, '\0', t.len)) {
		line->error = "contains a NUL character";
		return INI_INVALID;
	}
	if (t.len > INI_LINE_MAX) {
		line->error = "line is longer than 8192 bytes";
		return INI_INVALID;
	}
	if (t.len == 0 || t.data[0] == ';' || t.data[0] == '#')
		return INI_EMPTY;
	if (t.data[0] == '[' ? read_section(line, t) : read_pair(line, t))
		return t.data[0] == '[' ? INI_SECTION : INI_PAIR;
	line->error = "expected [section], a comment or KEY = VALUE";
	return INI_INVALID;
}

bool ini_next(struct ini *ini, struct ini_line *ret_line)
{
	struct text rest = ini->rest;
	const char *newline = rest.len > 0 ? memchr(rest.data, '\n', rest.len) : NULL;
	size_t end = newline ? (size_t)(newline - rest.data) : rest.len;
	size_t next = newline ? end + 1 : end;

	if (rest.len == 0)
		return false;
	if (newline && end > 0 && rest.data[end - 1] == '\r')
		end--;
	*ret_line = (struct ini_line) {
		.number = ++ini->n_lines,
		.whole = part(rest, 0, end),
		.end = part(rest, end, next),
	};
	ret_line->kind = ini_read_line(ret_line, text_trim(ret_line->whole, TEXT_SPACE));
	ini->rest = part(rest, next, rest.len);
	return true;
}
