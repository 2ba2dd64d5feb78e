#include "cli/doctor/exam.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/connect/probe.h"
#include "cli/kit/options.h"

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

/* The path of the program that a shell would need; NULL if its name is enough. */
static const char *path_of(const struct exam *e, const char *name, char path[PATH_MAX])
{
	const char *own = e->koined;
	struct stat a, b;
	struct probe found;
	ssize_t n;

	if (strcmp(name, "koine") == 0) {
		n = readlink("/proc/self/exe", path, PATH_MAX - 1);
		path[n > 0 ? n : 0] = '\0';
		own = path;
	}
	if (!own[0] || stat(own, &a) != 0)
		return NULL;
	return probe_find(&found, name) && stat(found.program, &b) == 0 && a.st_ino == b.st_ino &&
			       a.st_dev == b.st_dev
		       ? NULL
		       : own;
}

/* With the socket that was asked about, and with a path where a shell finds no such program, or
 * another. */
static void complete(const struct exam *e, const char *line, char out[MEND_MAX])
{
	const char *socket = e->cli->options.socket;
	const char *rest = strchr(line, ' ') ?: "";
	char name[16];
	char path[PATH_MAX];
	char word[WORD_MAX];
	char before[WORD_MAX + 16] = "";
	const char *program;

	snprintf(name, sizeof(name), "%.*s", (int)(rest - line), line);
	if (strcmp(name, "koine") != 0 && strcmp(name, "koined") != 0) {
		snprintf(out, MEND_MAX, "%s", line);
		return;
	}
	program = path_of(e, name, path);
	if (socket && !strstr(line, " --socket "))
		snprintf(before, sizeof(before), "KOINE_SOCKET=%s ", exam_word(socket, word));
	snprintf(out, MEND_MAX, "%s%s%s", before, program ? exam_word(program, word) : name, rest);
}

void exam_command(struct exam *e, const char *format, ...)
{
	char line[MEND_MAX];
	va_list args;

	va_start(args, format);
	fill(line, format, args);
	va_end(args);
	complete(e, line, e->findings[e->n - 1].command);
}

void exam_advise(struct exam *e, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fill(e->findings[e->n - 1].advice, format, args);
	va_end(args);
}

void exam_daemon_command(struct exam *e, const char *verb)
{
	if (option_means_own_daemon(e->cli))
		exam_command(e, "koine daemon %s", verb);
	else
		exam_advise(e, "%c%s the koined that listens at %s the same way it was started.",
			    verb[0] - 'a' + 'A', verb + 1, e->cli->address);
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

const char *exam_word(const char *word, char out[WORD_MAX])
{
	size_t n = 0;

	out[n++] = '\'';
	for (; *word && n < WORD_MAX - 6; word++) {
		if (*word == '\'') {
			memcpy(out + n, "'\\''", 4);
			n += 4;
		} else {
			out[n++] = *word;
		}
	}
	out[n++] = '\'';
	out[n] = '\0';
	return out;
}

void exam_socket_option(const struct exam *e, char out[WORD_MAX + 16])
{
	const char *path = e->cli->options.socket;
	char word[WORD_MAX];

	out[0] = '\0';
	if (path)
		snprintf(out, WORD_MAX + 16, " --socket %s", exam_word(path, word));
}

/* ---- what koined --check has said ---- */

bool exam_next_line(const struct exam *e, struct text *rest, struct text *ret_line)
{
	if (!rest->data)
		*rest = buf_text(&e->said);
	return text_next(rest, '\n', ret_line) && ret_line->len > 0;
}
