/* The settings file: INI, read by inih. What inih accepts silently is checked here: sections
 * without keys, and long lines. */
#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/settings/settings.h"

struct ini_text {
	struct settings *settings;
	const char *file;
	const char *at;
	const char *end;
	unsigned line;
	int result;
	struct why *why;
};

static int ini_refuse(struct ini_text *t, const char *text)
{
	t->result = refuse(t->why, REFUSE_PARAMS, "%s:%u: %s", t->file, t->line, text);
	return t->result;
}

static void say_where(const struct ini_text *t)
{
	snprintf(t->settings->where, sizeof(t->settings->where), "%s:%u", t->file, t->line);
}

/* inih reports keys only: an unknown section without keys would go unnoticed. */
static int check_section(struct ini_text *t, size_t len)
{
	const char *end = memchr(t->at, ']', len);
	char section[64];
	struct why inner;

	if (*t->at != '[' || !end)
		return 0;
	snprintf(section, sizeof(section), "%.*s", (int)(end - t->at - 1), t->at + 1);
	say_where(t);
	return settings_add_section(t->settings, section, &inner) == 0 ? 0
								       : ini_refuse(t, inner.text);
}

/* The last line may lack its newline; `whole` is the line's length with it. */
static int check_line(struct ini_text *t, size_t len, size_t whole, size_t size)
{
	char words[64];

	if (memchr(t->at, '\0', len))
		return ini_refuse(t, "contains a NUL character");
	if (whole < size)
		return check_section(t, len);
	snprintf(words, sizeof(words), "line is longer than %zu bytes", size - 2);
	return ini_refuse(t, words);
}

/* Gives inih one line, without its indentation. A line longer than inih's buffer would be read as
 * two, and an indented one as a continuation of the value before it, even a comment. */
static char *ini_line(char *out, int size, void *stream)
{
	struct ini_text *t = stream;
	const char *newline;
	size_t len;

	if (t->at == t->end || t->result != 0)
		return NULL;
	newline = memchr(t->at, '\n', (size_t)(t->end - t->at));
	len = (size_t)((newline ? newline + 1 : t->end) - t->at);
	t->line++;
	while (len > 1 && isspace((unsigned char)*t->at)) {
		t->at++;
		len--;
	}
	if (check_line(t, len, len + !newline, (size_t)size) != 0)
		return NULL;
	memcpy(out, t->at, len);
	out[len] = '\0';
	t->at += len;
	return out;
}

static int ini_setting(void *user, const char *section, const char *key, const char *value)
{
	struct ini_text *t = user;
	struct why inner;
	int r;

	if (t->result != 0)
		return 0;
	say_where(t);
	r = settings_set(t->settings, section, key, value, &inner);
	if (r != 0)
		ini_refuse(t, inner.text);
	return r == 0;
}

int settings_read_text(struct settings *s, const char *file, const char *text, size_t len,
		       struct why *why)
{
	static const char mark[] = "\xef\xbb\xbf"; /* some editors start a file with it */
	struct ini_text t = {
		.settings = s,
		.file = file,
		.at = text,
		.end = text + len,
		.why = why,
	};
	int line;

	if (len >= strlen(mark) && memcmp(text, mark, strlen(mark)) == 0)
		t.at += strlen(mark);
	line = ini_parse_stream(ini_line, &t, ini_setting, &t);
	if (t.result != 0)
		return t.result;
	if (line != 0) {
		t.line = (unsigned)(line > 0 ? line : 0);
		return ini_refuse(&t, "expected [section], a comment or KEY = VALUE");
	}
	s->where[0] = '\0';
	return 0;
}

static void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

int settings_read_file(struct settings *s, const char *file, struct why *why)
{
	CLEANUP(fclosep) FILE *f = fopen(file, "re");
	CLEANUP(buf_donep) struct buf text;
	char part[4096];
	size_t n;

	buf_init(&text, 1 << 20);
	if (!f) {
		int error = errno;

		refuse(why, REFUSE_NOT_FOUND, "cannot read %s: %s", file, strerror(error));
		return -error;
	}
	while (text.err == 0 && (n = fread(part, 1, sizeof(part), f)) > 0)
		buf_add(&text, part, n);
	if (ferror(f))
		return refuse(why, REFUSE_UNAVAILABLE, "cannot read %s: %s", file, strerror(errno));
	if (text.err != 0)
		return refuse(why, REFUSE_TOO_LARGE, "%s is larger than 1 MiB", file);
	snprintf(s->config, sizeof(s->config), "%s", file);
	return settings_read_text(s, file, text.len > 0 ? text.data : "", text.len, why);
}
