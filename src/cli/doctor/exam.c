#include "cli/doctor/exam.h"

#include <stdarg.h>
#include <stdio.h>

unsigned exam_patience(const struct exam *e, unsigned ms)
{
	return e->cli->options.timeout_ms ? e->cli->options.timeout_ms : ms;
}

/* ---- findings ---- */

void exam_find(struct exam *e, enum mark mark, const char *format, ...)
{
	struct finding *f = &e->findings[e->n];
	va_list args;

	if (e->n == FINDINGS_MAX)
		return;
	e->n++;
	*f = (struct finding) {.check = e->check, .mark = mark};
	va_start(args, format);
	vsnprintf(f->text, sizeof(f->text), format, args);
	va_end(args);
}

static void fill(char *out, const char *format, va_list args)
{
	vsnprintf(out, MEND_MAX, format, args);
}

void exam_command(struct exam *e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(e->findings[e->n - 1].command, format, args);
	va_end(args);
}

void exam_advise(struct exam *e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(e->findings[e->n - 1].advice, format, args);
	va_end(args);
}

bool exam_is_well(const struct exam *e)
{
	for (unsigned i = 0; i < e->n; i++) {
		if (e->findings[i].mark == MARK_BAD)
			return false;
	}
	return true;
}

/* ---- commands ---- */

void exam_socket_option(const struct exam *e, char out[PATH_MAX + 16])
{
	const char *path = e->cli->options.socket;

	out[0] = '\0';
	if (path && !strchr(path, '\''))
		snprintf(out, PATH_MAX + 16, " --socket '%s'", path);
}

/* ---- what koined --check has said ---- */

bool exam_next_line(const struct exam *e, struct text *rest, struct text *ret_line)
{
	if (!rest->data)
		*rest = buf_text(&e->said);
	return text_next(rest, '\n', ret_line) && ret_line->len > 0;
}
