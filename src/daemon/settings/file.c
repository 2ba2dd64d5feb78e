/* The settings file. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/settings/settings.h"
#include "wire/ini.h"

static void settings_file_copy(char out[INI_LINE_MAX + 1], struct text t)
{
	snprintf(out, INI_LINE_MAX + 1, "%.*s", TEXT_ARGS(t));
}

/* `section` is the section of the lines that follow. */
static int set_line(struct settings *s, const struct ini_line *line, char section[INI_LINE_MAX + 1],
		    struct error *error)
{
	char key[INI_LINE_MAX + 1], value[INI_LINE_MAX + 1];

	switch (line->kind) {
	case INI_EMPTY:
		break;
	case INI_SECTION:
		settings_file_copy(section, line->name);
		return settings_add_section(s, section, error);
	case INI_PAIR:
		settings_file_copy(key, line->name);
		settings_file_copy(value, line->value);
		return settings_set(s, section, key, value, error);
	case INI_INVALID:
		return refuse(error, REFUSE_PARAMS, "%s", line->error);
	}
	return 0;
}

int settings_read_text(struct settings *s, const char *file, const char *text, size_t len,
		       struct error *error)
{
	char section[INI_LINE_MAX + 1] = "";
	struct ini_line line;
	struct error inner;
	struct ini ini;

	ini_init(&ini, (struct text) {.data = text, .len = len});
	while (ini_next(&ini, &line)) {
		snprintf(s->where, sizeof(s->where), "%s:%u", file, line.number);
		if (set_line(s, &line, section, &inner) != 0)
			return refuse(error, REFUSE_PARAMS, "%s:%u: %s", file, line.number,
				      inner.text);
	}
	s->where[0] = '\0';
	return 0;
}

static void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

int settings_read_file(struct settings *s, const char *file, struct error *error)
{
	CLEANUP(fclosep) FILE *f = fopen(file, "re");
	CLEANUP(buf_donep) struct buf text;
	char part[4096];
	size_t n;

	buf_init(&text, 1 << 20);
	if (!f) {
		int fault = errno;

		refuse(error, REFUSE_NOT_FOUND, "cannot read %s: %s", file, strerror(fault));
		return -fault;
	}
	while (text.err == 0 && (n = fread(part, 1, sizeof(part), f)) > 0)
		buf_add(&text, part, n);
	if (ferror(f))
		return refuse(error, REFUSE_UNAVAILABLE, "cannot read %s: %s", file,
			      strerror(errno));
	if (text.err != 0)
		return refuse(error, REFUSE_TOO_LARGE, "%s is larger than 1 MiB", file);
	snprintf(s->config, sizeof(s->config), "%s", file);
	return settings_read_text(s, file, text.len > 0 ? text.data : "", text.len, error);
}
