/*
 * Memories for people and programs. Into a pipe the lines are those of ash's own
 * client, which scripts and models read; a terminal gets tables that fit it.
 */
#include <stdlib.h>

#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/show.h"
#include "cli/kit/value.h"
#include "cli/memory/memory.h"

enum {
	HIT_LINES_MAX = 6,
	NARROW = 40, /* columns; below it only the content is worth showing */
	MIDDLING = 64,
};

int memory_refuse_answer(void)
{
	complain("the response is not a valid memory");
	return EX_PROTOCOL;
}

static int need_array(const struct koine_value *v)
{
	if (koine_value_kind(v) == KOINE_ARRAY)
		return 0;
	complain("the response is not a valid list of memories");
	return EX_PROTOCOL;
}

bool memory_print_cut(FILE *out, struct text text, unsigned most, unsigned pad)
{
	unsigned n = 0;
	size_t at = 0;
	struct glyph g;

	for (; at < text.len && n < most; at += g.used, n++) {
		glyph_read(&g, text.data + at, text.data + text.len);
		fwrite(g.shown, 1, g.len, out);
	}
	if (n < pad)
		fprintf(out, "%*s", (int)(pad - n), "");
	return at < text.len;
}

void memory_say(FILE *out, const char *what, struct text id)
{
	fprintf(out, "%s: ", what);
	memory_print_cut(out, id, SHORT_ID, 0);
	fputc('\n', out);
}

/* ---- search ---- */

static double similarity_of(const struct koine_value *hit)
{
	double similarity = 0;

	koine_value_double(koine_value_get(hit, "similarity"), &similarity);
	return similarity;
}

static void print_hit_plain(const struct koine_value *hit, const char *marks)
{
	struct text content = member_text(hit, "content");

	printf("[%.2f] ", similarity_of(hit));
	if (marks) {
		print_wrapped(stdout, content, marks, SIZE_MAX, 0, 0);
		return;
	}
	print_text(stdout, content);
	fputc('\n', stdout);
}

static void print_hit_row(const struct koine_value *hit, const char *marks, size_t columns)
{
	bool narrow = columns < NARROW;
	unsigned indent = narrow ? 7 : 7 + SHORT_ID + 2;

	printf("%5.2f  ", similarity_of(hit));
	if (!narrow)
		memory_print_cut(stdout, member_text(hit, "id"), SHORT_ID, SHORT_ID + 2);
	print_wrapped(stdout, member_text(hit, "content"), marks,
		      columns > indent + 8 ? columns - indent : 8, indent, HIT_LINES_MAX);
}

static void print_hits_title(const struct cli *cli, size_t columns)
{
	print_style(cli, style_bold);
	fputs(columns < NARROW ? "SCORE  MEMORY" : "SCORE  ID        MEMORY", stdout);
	print_plain(cli);
	fputc('\n', stdout);
}

int memory_print_hits(const struct cli *cli, const struct koine_value *hits)
{
	const struct memory_options *o = cli->own;
	const struct koine_value *hit = koine_value_first(hits);
	size_t columns = terminal_columns();
	int r = need_array(hits);

	if (r != 0)
		return r;
	if (!hit)
		puts("No memories found.");
	else if (cli->terminal)
		print_hits_title(cli, columns);
	for (; hit; hit = koine_value_next(hit)) {
		struct text content = member_text(hit, "content");
		char *marks = cli->color ? match_words(o->query, content) : NULL;

		if (cli->terminal)
			print_hit_row(hit, marks, columns);
		else
			print_hit_plain(hit, marks);
		free(marks);
	}
	return 0;
}

/* ---- list ---- */

static void print_row_plain(const struct koine_value *row)
{
	memory_print_cut(stdout, member_text(row, "id"), SHORT_ID, 10);
	fputc(' ', stdout);
	memory_print_cut(stdout, member_text(row, "source"), 10, 12);
	fputc(' ', stdout);
	puts(memory_print_cut(stdout, member_text(row, "content"), 45, 0) ? "..." : "");
}

static void print_list_plain(const struct koine_value *rows)
{
	const struct koine_value *row = koine_value_first(rows);

	printf("ID         Source       Content\n");
	for (int i = 0; i < 70; i++)
		fputc('-', stdout);
	fputc('\n', stdout);
	for (; row; row = koine_value_next(row))
		print_row_plain(row);
}

static int print_list_table(const struct cli *cli, const struct koine_value *rows)
{
	static const struct column columns[] = {
		{"ID", "id", cell_short_id},
		{"CREATED", "created_at", cell_time, 'l', NARROW},
		{"EXPIRES", "expires_at", cell_time, 'l', MIDDLING, .if_any = true},
		{"SOURCE", "source", NULL, 'l', MIDDLING},
		{"MEMORY", "content"},
		{NULL},
	};

	return list_print(cli, columns, rows);
}

int memory_print_list(const struct cli *cli, const struct koine_value *rows)
{
	int r = need_array(rows);

	if (r != 0)
		return r;
	if (cli->terminal && koine_value_count(rows) == 0) {
		puts("No memories found.");
		return 0;
	}
	if (cli->terminal)
		r = print_list_table(cli, rows);
	else
		print_list_plain(rows);
	if (memory_is_ash())
		printf("\nTotal: %zu memory(ies)\n", koine_value_count(rows));
	return r;
}

void memory_say_hidden(int64_t shown, int64_t all)
{
	if (all >= 0 && all <= shown)
		return;
	fflush(stdout);
	fputs(all < 0 ? "showing the newest " : "", stderr);
	print_count(stderr, shown);
	if (all >= 0) {
		fputs(" of ", stderr);
		print_count(stderr, all);
	}
	fputs(shown < MEMORY_LIST_MAX ? " (-n N for more)\n" : "\n", stderr);
}

/* ---- history ---- */

static void print_version_plain(const struct koine_value *row)
{
	struct text until = member_text(row, "valid_until");

	print_text(stdout, member_text(row, "valid_from"));
	fputc(' ', stdout);
	print_text(stdout, until.data ? until : TEXT("now"));
	fputc(' ', stdout);
	print_text(stdout, member_text(row, "content"));
	fputc('\n', stdout);
}

static int print_versions(const struct cli *cli, const struct koine_value *rows)
{
	static const struct column columns[] = {
		{"FROM", "valid_from", cell_time},
		{"UNTIL", "valid_until", cell_time, 'l', NARROW, .if_any = true},
		{"ID", "id", cell_short_id, 'l', MIDDLING},
		{"MEMORY", "content"},
		{NULL},
	};

	return list_print(cli, columns, rows);
}

int memory_print_history(const struct cli *cli, const struct koine_value *rows)
{
	int r = need_array(rows);

	if (r != 0)
		return r;
	if (cli->terminal)
		return print_versions(cli, rows);
	for (const struct koine_value *row = koine_value_first(rows); row;
	     row = koine_value_next(row))
		print_version_plain(row);
	return 0;
}

/* ---- show, stats ---- */

static void show_subjects(const struct show *s, const struct show_row *row)
{
	const struct koine_value *v = member_first(s->thing, row->member);

	if (!v)
		return;
	show_label(s, row->label);
	for (; v; v = koine_value_next(v)) {
		print_fitting(stdout, text_of_value(v), SIZE_MAX);
		fputs(koine_value_next(v) ? ", " : "\n", stdout);
	}
}

static void show_metadata(const struct show *s, const struct show_row *row)
{
	const struct koine_value *metadata = koine_value_get(s->thing, row->member);

	if (koine_value_count(metadata) == 0)
		return;
	show_label(s, row->label);
	print_json_compact(stdout, metadata);
}

static void show_content(const struct show *s, const struct show_row *row)
{
	struct text content = member_text(s->thing, row->member);

	fputc('\n', stdout);
	if (s->cli->terminal) {
		print_wrapped(stdout, content, NULL, terminal_columns(), 0, 0);
		return;
	}
	print_text(stdout, content);
	fputc('\n', stdout);
}

int memory_print_one(const struct cli *cli, const struct koine_value *memory)
{
	static const struct show_row rows[] = {
		{"id", "id", show_value},
		{"source", "source", show_value},
		{"category", "category", show_value},
		{"importance", "importance", show_value},
		{"user", "user_id", show_value},
		{"chat", "chat_id", show_value},
		{"project", "project", show_value},
		{"shared", "shared", show_value},
		{"created", "created_at", show_value},
		{"updated", "updated_at", show_value},
		{"expires", "expires_at", show_value},
		{"since", "valid_from", show_value},
		{"until", "valid_until", show_value},
		{"replaces", "replaces", show_value},
		{"successor", "replaced_by", show_value},
		{"origin", "origin", show_value},
		{"review", "review", show_value},
		{"subjects", "subjects", show_subjects},
		{"metadata", "metadata", show_metadata},
		{"content", "content", show_content},
		{NULL},
	};
	static const struct show_form form = {.rows = rows, .width = 10, .bold = true};

	if (koine_value_kind(memory) != KOINE_OBJECT)
		return memory_refuse_answer();
	show_print(cli, &form, memory);
	return 0;
}

int memory_print_stats(const struct cli *cli, const struct koine_value *stats)
{
	if (koine_value_kind(stats) == KOINE_OBJECT)
		return list_print_counts(stats, NULL);
	complain("the response contains no statistics");
	return EX_PROTOCOL;
}
