/*
 * Memories as tables; where ash's variables are set, as the lines of ash's own client, which its
 * scripts and models read.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/kit/glyph.h"
#include "cli/kit/list.h"
#include "cli/kit/show.h"
#include "cli/kit/value.h"
#include "cli/memory/memory.h"

/* ---- which words of a memory match a query ---- */

enum { WORDS_MAX = 64, LETTERS_MAX = 32 };

/* In scripts written without spaces a word is two characters. */
struct memory_print_word {
	size_t from; /* where it is in its text */
	size_t to;
	unsigned n;
	uint32_t letters[LETTERS_MAX];
	bool spaceless;
};

/* U+00C0 to U+00FF without case and accents. */
static const char plain_latin[] =
	"aaaaaaaceeeeiiiidnooooo*ouuuuytsaaaaaaaceeeeiiiidnooooo/ouuuuyty";

/* Words that are never marked, so that a question does not mark everything. */
static const char *const too_common[] = {
	"a",    "about", "all",   "am",   "an",   "and",  "any",  "are", "as",   "at",
	"be",   "been",  "by",    "can",  "did",  "do",   "does", "for", "from", "had",
	"has",  "have",  "he",    "her",  "his",  "how",  "i",    "in",  "is",   "it",
	"its",  "me",    "my",    "of",   "on",   "or",   "our",  "she", "so",   "that",
	"the",  "their", "them",  "they", "this", "to",   "was",  "we",  "were", "what",
	"when", "where", "which", "who",  "why",  "will", "with", "you", "your",
};

/* What may follow the part that two forms of a word share. */
static const char *const endings[] = {"",    "s",  "es", "ed", "ing", "ings", "er",
				      "ers", "ly", "e",  "y",  "ies", "ied",  "ier"};

static uint32_t fold(uint32_t c)
{
	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	if (c >= 0xc0 && c <= 0xff)
		return (unsigned char)plain_latin[c - 0xc0];
	if (c >= 0x100 && c <= 0x17f)
		return c | 1;
	/* Greek and Cyrillic capitals. */
	if ((c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 32;
	return c >= 0x400 && c <= 0x40f ? c + 80 : c;
}

static bool is_letter(uint32_t c)
{
	if (c < 0x80)
		return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
	/* Except signs, general punctuation, and that of East Asia. */
	return c >= 0xc0 && c != 0xd7 && c != 0xf7 && !(c >= 0x2000 && c <= 0x2bff) &&
	       !(c >= 0x3000 && c <= 0x3004) && !(c >= 0x3007 && c <= 0x3030) &&
	       !(c >= 0xff00 && c <= 0xff0f) && !(c >= 0xff1a && c <= 0xff20);
}

/* Thai, Lao, Khmer, kana and Han. */
static bool is_spaceless(uint32_t c)
{
	return (c >= 0xe00 && c <= 0xeff) || (c >= 0x1780 && c <= 0x17ff) ||
	       (c >= 0x3005 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) ||
	       (c >= 0xf900 && c <= 0xfaff) || (c >= 0x20000 && c <= 0x3ffff);
}

static uint32_t decode(const char *text, size_t at, size_t len, size_t *ret_used)
{
	const unsigned char *p = (const unsigned char *)text + at;
	size_t n = p[0] < 0x80 ? 1 : utf8_sequence(text + at, text + len);
	uint32_t c = n <= 1 ? p[0] : p[0] & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	*ret_used = n == 0 ? 1 : n;
	return n == 0 ? ' ' : c;
}

static bool next_word(const char *text, size_t len, size_t *at, struct memory_print_word *w)
{
	size_t used;
	uint32_t c = 0;

	for (; *at < len; *at += used) {
		c = decode(text, *at, len, &used);
		if (is_letter(c))
			break;
	}
	*w = (struct memory_print_word) {.from = *at, .spaceless = is_spaceless(c)};
	for (size_t i = *at; i < len; i += used) {
		c = decode(text, i, len, &used);
		if (!is_letter(c) || is_spaceless(c) != w->spaceless || (w->spaceless && w->n == 2))
			break;
		if (w->n < LETTERS_MAX)
			w->letters[w->n] = fold(c);
		w->n++;
		w->to = i + used;
		/* Each pair of characters is a word; the next starts at the second of them. */
		if (w->n == 1 || !w->spaceless)
			*at = w->to;
	}
	return w->n > 0;
}

static bool is_too_common(const struct memory_print_word *w)
{
	for (size_t i = 0; i < sizeof(too_common) / sizeof(too_common[0]); i++) {
		const char *s = too_common[i];
		unsigned n = 0;

		while (n < w->n && s[n] != '\0' && w->letters[n] == (unsigned char)s[n])
			n++;
		if (n == w->n && s[n] == '\0')
			return true;
	}
	return false;
}

static bool is_ending(const struct memory_print_word *w, unsigned from)
{
	/* "running": the letter was doubled before the ending. */
	if (from < w->n && w->letters[from] == w->letters[from - 1])
		from++;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const char *s = endings[i];
		unsigned n = from;

		while (n < w->n && *s != '\0' && w->letters[n] == (unsigned char)*s) {
			n++;
			s++;
		}
		if (n == w->n && *s == '\0')
			return true;
	}
	/* "liked", "rider" */
	return w->letters[from - 1] == 'e' && w->n == from + 1 &&
	       (w->letters[from] == 'd' || w->letters[from] == 'r');
}

static bool is_same(const struct memory_print_word *a, const struct memory_print_word *b)
{
	unsigned n = 0;

	if (a->n > LETTERS_MAX || b->n > LETTERS_MAX || a->spaceless != b->spaceless)
		return false;
	while (n < a->n && n < b->n && a->letters[n] == b->letters[n])
		n++;
	if (n == a->n && n == b->n)
		return true;
	return n >= 3 && !a->spaceless && is_ending(a, n) && is_ending(b, n);
}

static unsigned read_query(const char *query, struct memory_print_word words[WORDS_MAX], bool all)
{
	size_t len = strlen(query);
	unsigned n = 0;
	size_t at = 0;

	while (n < WORDS_MAX && next_word(query, len, &at, &words[n]))
		n += all || !is_too_common(&words[n]);
	return n;
}

static bool memory_print_is_wanted(const struct memory_print_word *w,
				   const struct memory_print_word *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (is_same(w, &words[i]))
			return true;
	}
	return false;
}

/* One byte for each byte of the text, not 0 where it belongs to a word of the query. The caller
 * frees it. NULL when nothing matches, or memory ran out. */
static char *match_words(const char *query, struct text text)
{
	struct memory_print_word words[WORDS_MAX];
	unsigned n = read_query(query, words, false);
	char *marks = calloc(text.len + 1, 1);
	bool found = false;
	struct memory_print_word w;
	size_t at = 0;

	if (n == 0)
		n = read_query(query, words, true);
	while (marks && next_word(text.data, text.len, &at, &w)) {
		if (!memory_print_is_wanted(&w, words, n))
			continue;
		memset(marks + w.from, 1, w.to - w.from);
		found = true;
	}
	if (found)
		return marks;
	free(marks);
	return NULL;
}

enum {
	HIT_LINES_MAX = 6,
	MIDDLING = 64, /* columns; below it, only the id and the memory are shown */
	WIDE = 100,
};

int memory_refuse_answer(void)
{
	return fail_with(EX_PROTOCOL, "the response is not a valid memory");
}

static int need_array(const struct koine_value *v)
{
	if (koine_value_kind(v) == KOINE_ARRAY)
		return 0;
	return fail_with(EX_PROTOCOL, "the response is not a valid list of memories");
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

static void print_hits_as_ash(const struct cli *cli, const struct koine_value *hits)
{
	const struct memory_options *o = cli->own;

	for (EACH(hit, koine_value_first(hits))) {
		struct text content = member_text(hit, "content");
		char *marks = cli->color ? match_words(o->query, content) : NULL;

		printf("[%.2f] ", similarity_of(hit));
		if (marks)
			print_wrapped(stdout, content, marks, SIZE_MAX, 0, 0);
		else
			PRINT(stdout, content, TEXT("\n"));
		free(marks);
	}
}

static void cell_similarity(const struct cell *c)
{
	char shown[16];

	snprintf(shown, sizeof(shown), "%.2f", similarity_of(c->row));
	table_cell_str(c->table, shown);
}

static const struct column hit_columns[] = {
	{"SCORE", "similarity", cell_similarity, 'r'},
	{"ID", "id", cell_short_id},
	{"MEMORY", "content"},
	{NULL},
};

/* The row of such a table, with the words of the query in bold, and more than one line. */
static void print_hit_row(const struct koine_value *hit, const char *marks, size_t columns)
{
	unsigned indent = 7 + SHORT_ID + 2;

	printf("%5.2f  ", similarity_of(hit));
	memory_print_cut(stdout, member_text(hit, "id"), SHORT_ID, SHORT_ID + 2);
	print_wrapped(stdout, member_text(hit, "content"), marks,
		      columns > indent + 8 ? columns - indent : 8, indent, HIT_LINES_MAX);
}

static void print_hits_for_terminal(const struct cli *cli, const struct koine_value *hits)
{
	const struct memory_options *o = cli->own;

	print_styled(cli, style_bold, TEXT("SCORE  ID        MEMORY"));
	fputc('\n', stdout);
	for (EACH(hit, koine_value_first(hits))) {
		char *marks =
			cli->color ? match_words(o->query, member_text(hit, "content")) : NULL;

		print_hit_row(hit, marks, terminal_columns());
		free(marks);
	}
}

int memory_print_hits(const struct cli *cli, const struct koine_value *hits)
{
	int r = need_array(hits);

	if (r != 0)
		return r;
	if (!koine_value_first(hits))
		puts("No memories found.");
	else if (memory_is_ash())
		print_hits_as_ash(cli, hits);
	else if (!cli->terminal && !cli->color)
		return list_print(cli, hit_columns, hits);
	else
		print_hits_for_terminal(cli, hits);
	return 0;
}

/* ---- list ---- */

static void print_row_as_ash(const struct koine_value *row)
{
	memory_print_cut(stdout, member_text(row, "id"), SHORT_ID, 10);
	fputc(' ', stdout);
	memory_print_cut(stdout, member_text(row, "source"), 10, 12);
	fputc(' ', stdout);
	puts(memory_print_cut(stdout, member_text(row, "content"), 45, 0) ? "..." : "");
}

static void print_list_as_ash(const struct koine_value *rows)
{
	printf("ID         Source       Content\n");
	for (int i = 0; i < 70; i++)
		fputc('-', stdout);
	fputc('\n', stdout);
	for (EACH(row, koine_value_first(rows)))
		print_row_as_ash(row);
	printf("\nTotal: %zu memory(ies)\n", koine_value_count(rows));
}

static void cell_day(const struct cell *c)
{
	char shown[TIME_SHOWN];

	format_time(koine_value_get(c->row, c->member), shown);
	shown[strcspn(shown, " ")] = '\0';
	table_cell_str(c->table, shown);
}

/* The memory gets most of the width. */
static const struct column columns[] = {
	{"ID", "id", cell_short_id},
	{"CREATED", "created_at", cell_day, 'l', MIDDLING},
	{"EXPIRES", "expires_at", cell_day, 'l', MIDDLING, .if_any = true},
	{"SOURCE", "source", NULL, 'l', WIDE},
	{"MEMORY", "content"},
	{NULL},
};

int memory_print_list(const struct cli *cli, const struct koine_value *rows)
{
	int r = need_array(rows);

	if (r != 0)
		return r;
	if (memory_is_ash())
		print_list_as_ash(rows);
	else if (!koine_value_first(rows))
		puts("No memories found.");
	else
		return list_print(cli, columns, rows);
	return 0;
}

void memory_say_hidden(int64_t shown, int64_t all)
{
	if (all < 0 || all > shown)
		list_say_hidden("newest", shown, all, shown < MEMORY_LIST_MAX);
}

/* ---- history ---- */

static const struct column version_columns[] = {
	{"FROM", "valid_from", cell_time},
	{"UNTIL", "valid_until", cell_time, 'l', MIDDLING, .if_any = true},
	{"ID", "id", cell_short_id},
	{"MEMORY", "content"},
	{NULL},
};

int memory_print_history(const struct cli *cli, const struct koine_value *rows)
{
	return need_array(rows) ?: list_print(cli, version_columns, rows);
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
	if (s->cli->terminal)
		print_wrapped(stdout, content, NULL, terminal_columns(), 0, 0);
	else
		PRINT(stdout, content, TEXT("\n"));
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
	return fail_with(EX_PROTOCOL, "the response contains no statistics");
}
