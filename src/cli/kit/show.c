#include "cli/kit/show.h"

#include <string.h>

#include "cli/kit/duration.h"
#include "cli/kit/glyph.h"
#include "cli/kit/value.h"

void show_label(const struct show *s, const char *label)
{
	if (!s->form->bold) {
		printf("%-*s ", s->form->width, label);
		return;
	}
	print_style(s->cli, style_bold);
	printf("%-*s", s->form->width, label);
	print_plain(s->cli);
	fputs("  ", stdout);
}

static bool is_named(const struct show_row *rows, const char *member)
{
	for (; rows->label; rows++) {
		if (strcmp(rows->member, member) == 0)
			return true;
	}
	return false;
}

/* As the schema says what kind of member it is. */
static void show_by_kind(const struct show *s, const struct show_row *row)
{
	uint8_t kind = MEMBER_TEXT;

	if (s->form->schema) {
		schema_each(m, s->form->schema)
		{
			if (m->name && strcmp(m->name, row->member) == 0)
				kind = m->kind;
		}
	}
	if (kind == MEMBER_TIME)
		show_time(s, row);
	else if (kind == MEMBER_TEXTS || kind == MEMBER_ENV)
		show_names(s, row);
	else if (kind == MEMBER_BOOL || kind == MEMBER_PACKED)
		show_value(s, row);
	else
		show_text(s, row);
}

/* "exit_status" is shown as "exit status". */
static void show_member(const struct show *s, const struct member *m)
{
	char label[32];
	const struct show_row row = {.label = label, .member = m->name};

	snprintf(label, sizeof(label), "%s", m->name);
	for (char *c = strchr(label, '_'); c; c = strchr(c, '_'))
		*c = ' ';
	show_by_kind(s, &row);
}

static void show_others(const struct show *s)
{
	schema_each(m, s->form->schema)
	{
		if (m->name && !is_named(s->form->rows, m->name))
			show_member(s, m);
	}
}

void show_print(const struct cli *cli, const struct show_form *form,
		const struct koine_value *thing)
{
	const struct show s = {.cli = cli, .form = form, .thing = thing};
	bool others = form->schema != NULL;

	for (const struct show_row *row = form->rows; row->label; row++) {
		/* Long texts come after everything else. */
		if (others && row->print == show_long) {
			show_others(&s);
			others = false;
		}
		if (row->label[0] != '\0')
			(row->print ? row->print : show_by_kind)(&s, row);
	}
	if (others)
		show_others(&s);
}

/* ---- kinds ---- */

static void kit_show_print_line(const struct show *s, const char *label, struct text text)
{
	show_label(s, label);
	PRINT(stdout, text, TEXT("\n"));
}

void show_text(const struct show *s, const struct show_row *row)
{
	struct text text = member_text(s->thing, row->member);

	if (text.len > 0)
		kit_show_print_line(s, row->label, text);
}

void show_value(const struct show *s, const struct show_row *row)
{
	const struct koine_value *v = koine_value_get(s->thing, row->member);

	if (koine_value_kind(v) == KOINE_NULL)
		return;
	show_label(s, row->label);
	print_fitting(stdout, text_of_any(v), SIZE_MAX);
	fputc('\n', stdout);
}

void show_number(const struct show *s, const struct show_row *row)
{
	if (!member_is(s->thing, row->member, "0"))
		show_text(s, row);
}

void show_time(const struct show *s, const struct show_row *row)
{
	char shown[TIME_SHOWN];

	if (member_time(s->thing, row->member) == 0)
		return;
	format_time(koine_value_get(s->thing, row->member), shown);
	kit_show_print_line(s, row->label, text_of(shown));
}

void show_span(const struct show *s, const struct show_row *row)
{
	int64_t ms = member_number(s->thing, row->member);
	char shown[SPAN_SHOWN];

	if (ms == 0)
		return;
	duration_format(ms, shown);
	kit_show_print_line(s, row->label, text_of(shown));
}

void show_names(const struct show *s, const struct show_row *row)
{
	const struct koine_value *v = member_first(s->thing, row->member);

	if (!v)
		return;
	show_label(s, row->label);
	for (; v; v = koine_value_next(v)) {
		print_text(stdout, text_of_value(v));
		fputs(koine_value_next(v) ? " " : "\n", stdout);
	}
}

void show_long(const struct show *s, const struct show_row *row)
{
	struct text text = text_without_newlines(member_text(s->thing, row->member));

	if (text.len > 0)
		PRINT(stdout, TEXT("\n"), text_of(row->label), TEXT("\n"), text, TEXT("\n"));
}
