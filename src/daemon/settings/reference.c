/*
 * koined --settings: every setting on a line with tabs between section and key, type, default,
 * environment variable and description. koine.conf(5) contains this text, and a test compares
 * them.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "daemon/settings/settings.h"

/* "0..3600"; a limit that only the type sets is not shown. */
static void write_range(const struct setting *row, FILE *out)
{
	if (row->min > 0 || row->max > 0)
		fprintf(out, " %" PRIu64 "..%" PRIu64, row->min, row->max);
}

static void write_type(const struct setting *row, FILE *out)
{
	static const char *const names[] = {
		[SET_BOOL] = "yes|no",         [SET_UNSIGNED] = "number",
		[SET_SIZE] = "size",           [SET_SECONDS] = "seconds",
		[SET_DECIMAL] = "decimal",     [SET_WORD] = "",
		[SET_UIDS] = "users",          [SET_TEXT] = "text",
		[SET_PATH] = "path",           [SET_URL] = "URL",
		[SET_SECRET] = "secret",       [SET_VARIABLE] = "variable name",
		[SET_VARIABLES] = "variables",
	};

	const char *bar = "";

	fputs(names[row->type], out);
	for (unsigned i = 0; row->words && row->words[i]; i++) {
		/* The kind that was not given has an empty word. */
		fprintf(out, "%s%s", row->words[i][0] ? bar : "", row->words[i]);
		bar = row->words[i][0] ? "|" : "";
	}
	if (row->type == SET_UNSIGNED || row->type == SET_SIZE || row->type == SET_SECONDS ||
	    row->type == SET_DECIMAL)
		write_range(row, out);
}

static void write_row(const struct setting *row, const void *base, FILE *out)
{
	char variable[ENV_NAME_MAX];

	setting_variable(row->section, row->key, variable);
	fprintf(out, "%s.%s\t", row->section, row->key);
	write_type(row, out);
	fputc('\t', out);
	if (setting_is_text(row))
		fputs((const char *)base + row->offset, out);
	else
		setting_write_value(row, base, out);
	fprintf(out, "\t%s\t%s\n", variable, row->doc);
}

/* A section that users name: "agent.NAME.url". A kind that was not given has no word. */
static void write_kind(const struct section_kind *kind, FILE *out)
{
	CLEANUP(freep) char *section = calloc(1, kind->size);
	char name[SECTION_NAME_MAX + 8];

	if (section && kind->init)
		kind->init(section, "", "");
	snprintf(name, sizeof(name), "%s.NAME", kind->word);
	for (unsigned i = 0; section && i < kind->n_keys; i++) {
		struct setting row = kind->rows[i];

		row.section = name;
		write_row(&row, section, out);
	}
}

void settings_write_reference(const struct settings *defaults, FILE *out)
{
	const struct setting *row;
	void *base;

	for (unsigned i = 0; (row = settings_row(defaults, i, &base)); i++)
		write_row(row, base, out);
	for (unsigned i = 0; i < N_SECTION_KINDS; i++)
		write_kind(section_kinds[i], out);
}
