#include <stdio.h>

#include "base/cleanup.h"
#include "cli/doctor/exam.h"
#include "cli/kit/call.h"
#include "cli/kit/glyph.h"
#include "cli/kit/print.h"

enum { NAME_WIDTH = 10, INDENT = 18, COLUMNS_MAX = 80, COLUMNS_MIN = 40 };

static const struct {
	const char *word;  /* for people */
	const char *state; /* for programs */
	enum color color;
} marks[] = {
	[MARK_OK] = {"ok", "ok", COLOR_GREEN},
	[MARK_WARN] = {"warn", "warning", COLOR_YELLOW},
	[MARK_BAD] = {"BAD", "bad", COLOR_RED},
	[MARK_SKIPPED] = {"-", "skipped", COLOR_GREY},
};

static size_t columns(void)
{
	size_t n = terminal_columns();

	return n > COLUMNS_MAX ? COLUMNS_MAX : n < COLUMNS_MIN ? COLUMNS_MIN : n;
}

static void print_below(const char *before, const char *text)
{
	size_t left = columns() - INDENT - strlen(before);

	if (!text[0])
		return;
	printf("%*s%s", INDENT, "", before);
	print_wrapped(stdout, text_of(text), NULL, left, INDENT + (unsigned)strlen(before), 0);
}

/* A line for a shell stays on one line, so that it can be copied. */
static void print_command(const struct cli *cli, const char *command)
{
	if (!command[0])
		return;
	printf("%*sfix: ", INDENT, "");
	print_style(cli, style_bold);
	print_text(stdout, text_of(command));
	print_plain(cli);
	putchar('\n');
}

static void print_finding(const struct cli *cli, const struct finding *f, const char *name)
{
	print_style(cli, color_begin(marks[f->mark].color));
	printf("%-4s", marks[f->mark].word);
	print_plain(cli);
	printf("  %-*s  ", NAME_WIDTH, name);
	print_wrapped(stdout, text_of(f->text), NULL, columns() - INDENT, INDENT, 0);
	if (f->mark != MARK_OK && f->mark != MARK_SKIPPED) {
		print_command(cli, f->command);
		print_below(f->command[0] ? "" : "fix: ", f->advice);
	}
}

static unsigned count(const struct exam *e, enum mark mark)
{
	unsigned n = 0;

	for (unsigned i = 0; i < e->n; i++)
		n += e->findings[i].mark == mark;
	return n;
}

int exam_print(const struct exam *e)
{
	const char *last = "";
	unsigned bad = count(e, MARK_BAD);
	unsigned warn = count(e, MARK_WARN);

	for (unsigned i = 0; i < e->n; i++) {
		const struct finding *f = &e->findings[i];

		print_finding(e->cli, f, strcmp(last, f->check) == 0 ? "" : f->check);
		last = f->check;
	}
	putchar('\n');
	if (bad > 0)
		printf("%u problem%s to fix", bad, bad == 1 ? "" : "s");
	else
		printf("No problems found");
	if (warn > 0)
		printf(", %u warning%s", warn, warn == 1 ? "" : "s");
	puts(".");
	return EX_OK;
}

int exam_print_json(const struct exam *e)
{
	CLEANUP(json_freep) struct koine_json *j = params_new();
	const char *text;

	if (!j)
		return out_of_memory();
	params_add_bool(j, "ok", exam_is_well(e));
	koine_json_key(j, "findings");
	koine_json_begin_array(j);
	for (unsigned i = 0; i < e->n; i++) {
		const struct finding *f = &e->findings[i];

		koine_json_begin_object(j);
		params_add(j, "check", f->check);
		params_add(j, "state", marks[f->mark].state);
		params_add(j, "text", f->text);
		params_add(j, "command", f->command[0] ? f->command : NULL);
		params_add(j, "advice", f->advice[0] ? f->advice : NULL);
		koine_json_end_object(j);
	}
	koine_json_end_array(j);
	text = params_end(j);
	return text ? (puts(text), EX_OK) : out_of_memory();
}
