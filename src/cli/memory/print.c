/*
 * Memories for people and programs. Into a pipe the lines are those of ash's own
 * client, which scripts and models read; a terminal gets tables that fit it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/kit/glyph.h"
#include "cli/kit/match.h"
#include "cli/memory/memory.h"

enum {
	ID_SHOWN = 8,
	HIT_LINES_MAX = 6,
	NARROW = 40, /* columns; below it only the content is worth showing */
	MIDDLING = 64,
};

static int out_of_memory(void)
{
	complain("out of memory");
	return EX_SOFTWARE;
}

/* Of a string or number; "" for anything else. */
static const char *member_text(const struct koine_value *v, const char *key, size_t *ret_len)
{
	const char *text = koine_value_text(koine_value_get(v, key), ret_len);

	if (!text)
		*ret_len = 0;
	return text ? text : "";
}

static int need_array(const struct koine_value *v)
{
	if (koine_value_kind(v) == KOINE_ARRAY)
		return 0;
	complain("the answer is no list of memories");
	return EX_PROTOCOL;
}

bool print_cut(FILE *out, const char *text, size_t len, unsigned most, unsigned pad)
{
	const char *end = text + len;
	unsigned n = 0;
	struct glyph g;

	for (; text < end && n < most; text += g.used, n++) {
		glyph_read(&g, text, end);
		fwrite(g.shown, 1, g.len, out);
	}
	if (n < pad)
		fprintf(out, "%*s", (int)(pad - n), "");
	return text < end;
}

/* ---- search ---- */

static void print_hit_plain(const struct koine_value *hit, const char *marks)
{
	double similarity = 0;
	size_t len;
	const char *content = member_text(hit, "content", &len);

	koine_value_double(koine_value_get(hit, "similarity"), &similarity);
	printf("[%.2f] ", similarity);
	if (marks)
		print_wrapped(stdout, content, len, marks, SIZE_MAX, 0, 0);
	else
		print_text(stdout, content, len);
	if (!marks)
		fputc('\n', stdout);
}

static void print_hit_row(const struct koine_value *hit, const char *marks, size_t columns)
{
	bool narrow = columns < NARROW;
	unsigned indent = narrow ? 7 : 7 + ID_SHOWN + 2;
	double similarity = 0;
	size_t len;
	const char *text = member_text(hit, "id", &len);

	koine_value_double(koine_value_get(hit, "similarity"), &similarity);
	printf("%5.2f  ", similarity);
	if (!narrow)
		print_cut(stdout, text, len, ID_SHOWN, ID_SHOWN + 2);
	text = member_text(hit, "content", &len);
	print_wrapped(stdout, text, len, marks, columns > indent + 8 ? columns - indent : 8, indent,
		      HIT_LINES_MAX);
}

static void print_hits_title(const struct cli *cli, size_t columns)
{
	printf("%s%s%s\n", cli->color ? "\033[1m" : "",
	       columns < NARROW ? "SCORE  MEMORY" : "SCORE  ID        MEMORY",
	       cli->color ? "\033[0m" : "");
}

int memory_print_hits(const struct cli *cli, const struct koine_value *hits, const char *query)
{
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
		size_t len;
		const char *content = member_text(hit, "content", &len);
		char *marks = cli->color ? match_words(query, content, len) : NULL;

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
	size_t len;
	const char *text = member_text(row, "id", &len);

	print_cut(stdout, text, len, ID_SHOWN, 10);
	fputc(' ', stdout);
	text = member_text(row, "source", &len);
	print_cut(stdout, text, len, 10, 12);
	fputc(' ', stdout);
	text = member_text(row, "content", &len);
	fputs(print_cut(stdout, text, len, 45, 0) ? "...\n" : "\n", stdout);
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
	printf("\nTotal: %zu memory(ies)\n", koine_value_count(rows));
}

static void id_cell(struct table *t, const struct koine_value *v)
{
	size_t len;
	const char *text = koine_value_text(v, &len);

	if (text)
		table_cell(t, text, len < ID_SHOWN ? len : ID_SHOWN);
	else
		table_cell_str(t, "-");
}

static const struct column {
	const char *title;
	const char *member;
	size_t from; /* columns that a terminal must have for it */
	void (*cell)(struct table *t, const struct koine_value *v);
} columns_of_list[] = {
	{"ID", "id", 0, id_cell},
	{"CREATED", "created_at", NARROW, table_cell_time},
	{"EXPIRES", "expires_at", MIDDLING, table_cell_time},
	{"SOURCE", "source", MIDDLING, table_cell_value},
	{"MEMORY", "content", 0, table_cell_value},
};

enum { N_LIST_COLUMNS = sizeof(columns_of_list) / sizeof(columns_of_list[0]) };

static bool some_expire(const struct koine_value *rows)
{
	const struct koine_value *row = koine_value_first(rows);

	for (; row; row = koine_value_next(row)) {
		if (koine_value_kind(koine_value_get(row, "expires_at")) == KOINE_STRING)
			return true;
	}
	return false;
}

static unsigned choose_columns(const struct koine_value *rows, size_t columns,
			       const struct column *chosen[N_LIST_COLUMNS])
{
	bool expiry = some_expire(rows);
	unsigned n = 0;

	for (int i = 0; i < N_LIST_COLUMNS; i++) {
		const struct column *c = &columns_of_list[i];

		if (columns >= c->from && (expiry || strcmp(c->member, "expires_at") != 0))
			chosen[n++] = c;
	}
	return n;
}

static int print_list_table(const struct cli *cli, const struct koine_value *rows)
{
	const struct column *chosen[N_LIST_COLUMNS];
	unsigned n = choose_columns(rows, terminal_columns(), chosen);
	CLEANUP(table_freep) struct table *t = table_new(&"lllll"[N_LIST_COLUMNS - n]);
	const struct koine_value *row = koine_value_first(rows);
	int r;

	if (!t)
		return out_of_memory();
	table_fit(t, terminal_columns());
	for (unsigned i = 0; i < n; i++)
		table_cell_str(t, chosen[i]->title);
	for (; row; row = koine_value_next(row)) {
		for (unsigned i = 0; i < n; i++)
			chosen[i]->cell(t, koine_value_get(row, chosen[i]->member));
	}
	r = table_print(t, stdout, cli->color);
	printf("\nTotal: %zu memory(ies)\n", koine_value_count(rows));
	return r;
}

int memory_print_list(const struct cli *cli, const struct koine_value *rows)
{
	int r = need_array(rows);

	if (r != 0)
		return r;
	if (cli->terminal && koine_value_count(rows) > 0)
		return print_list_table(cli, rows);
	if (cli->terminal)
		puts("No memories found.");
	else
		print_list_plain(rows);
	return 0;
}

/* ---- show, stats ---- */

static const struct {
	const char *title;
	const char *member;
} members[] = {
	{"id", "id"},
	{"source", "source"},
	{"category", "category"},
	{"importance", "importance"},
	{"user", "user_id"},
	{"chat", "chat_id"},
	{"shared", "shared"},
	{"created", "created_at"},
	{"updated", "updated_at"},
	{"expires", "expires_at"},
};

enum { N_MEMBERS = sizeof(members) / sizeof(members[0]) };

static void print_title(const struct cli *cli, const char *title)
{
	printf("%s%-10s%s  ", cli->color ? "\033[1m" : "", title, cli->color ? "\033[0m" : "");
}

static void print_member(const struct cli *cli, const char *title, const struct koine_value *v)
{
	size_t len;
	const char *text = koine_value_text(v, &len);

	if (koine_value_kind(v) == KOINE_NULL)
		return;
	print_title(cli, title);
	if (!text)
		text = koine_value_raw(v, &len);
	print_fitting(stdout, text, len, NULL, SIZE_MAX);
	fputc('\n', stdout);
}

static void print_subjects(const struct cli *cli, const struct koine_value *subjects)
{
	const struct koine_value *s = koine_value_first(subjects);

	if (!s)
		return;
	print_title(cli, "subjects");
	for (; s; s = koine_value_next(s)) {
		size_t len;
		const char *text = koine_value_text(s, &len);

		print_fitting(stdout, text ? text : "", text ? len : 0, NULL, SIZE_MAX);
		fputs(koine_value_next(s) ? ", " : "\n", stdout);
	}
}

int memory_print_one(const struct cli *cli, const struct koine_value *memory)
{
	const struct koine_value *metadata = koine_value_get(memory, "metadata");
	size_t len;
	const char *content = member_text(memory, "content", &len);

	if (koine_value_kind(memory) != KOINE_OBJECT) {
		complain("the answer is no memory");
		return EX_PROTOCOL;
	}
	for (int i = 0; i < N_MEMBERS; i++)
		print_member(cli, members[i].title, koine_value_get(memory, members[i].member));
	print_subjects(cli, koine_value_get(memory, "subjects"));
	if (koine_value_count(metadata) > 0) {
		print_title(cli, "metadata");
		print_json_compact(stdout, metadata);
	}
	fputc('\n', stdout);
	if (cli->terminal) {
		print_wrapped(stdout, content, len, NULL, terminal_columns(), 0, 0);
	} else {
		print_text(stdout, content, len);
		fputc('\n', stdout);
	}
	return 0;
}

int memory_print_stats(const struct cli *cli, const struct koine_value *stats)
{
	CLEANUP(table_freep) struct table *t = table_new("lr");
	const struct koine_value *v = koine_value_first(stats);

	if (koine_value_kind(stats) != KOINE_OBJECT) {
		complain("the answer holds no counts");
		return EX_PROTOCOL;
	}
	if (!t)
		return out_of_memory();
	for (; v; v = koine_value_next(v)) {
		size_t len;
		const char *key = koine_value_key(v, &len);

		table_cell(t, key, len);
		table_cell_value(t, v);
	}
	return table_print(t, stdout, false);
}
