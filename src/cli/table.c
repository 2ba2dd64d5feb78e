/* A table in text: cells are gathered first, so that columns can be as wide as they must. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "cli/cli.h"

enum { COLUMNS_MAX = 16, TABLE_BYTES_MAX = 64 << 20 };

struct table {
	const char *align; /* one letter for each column */
	struct buf text;   /* the cells, each ended by NUL */
	unsigned widths[COLUMNS_MAX];
	size_t n_cells;
};

struct table *table_new(const char *align)
{
	struct table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->align = align;
	buf_init(&t->text, TABLE_BYTES_MAX);
	return t;
}

void table_free(struct table *t)
{
	if (!t)
		return;
	buf_done(&t->text);
	free(t);
}

void table_freep(struct table **t)
{
	table_free(*t);
}

/* Characters, near enough: bytes that do not continue one. */
static unsigned width_of(const char *text, size_t len)
{
	unsigned width = 0;

	for (size_t i = 0; i < len; i++)
		width += ((unsigned char)text[i] & 0xc0) != 0x80;
	return width;
}

void table_cell(struct table *t, const char *text, size_t len)
{
	size_t column = t->n_cells++ % strlen(t->align);
	size_t before = t->text.len;
	unsigned width;

	for (size_t i = 0; i < len; i++) {
		/* A cell is one line, and must not steer the terminal. */
		bool control = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ||
			       ((unsigned char)text[i] == 0xc2 && i + 1 < len &&
				(unsigned char)text[i + 1] < 0xa0);

		buf_add_char(&t->text, control ? '?' : text[i]);
		i += control && (unsigned char)text[i] == 0xc2;
	}
	width = width_of(t->text.data + before, t->text.len - before);
	buf_add_char(&t->text, '\0');
	if (width > t->widths[column])
		t->widths[column] = width;
}

void table_cell_str(struct table *t, const char *text)
{
	table_cell(t, text, strlen(text));
}

void table_cell_value(struct table *t, const struct koine_value *v)
{
	const char *text;
	size_t len;

	if (koine_value_kind(v) == KOINE_NULL) {
		table_cell_str(t, "-");
		return;
	}
	text = koine_value_text(v, &len);
	if (!text)
		text = koine_value_raw(v, &len);
	table_cell(t, text, len);
}

static void pad(FILE *out, unsigned n)
{
	while (n-- > 0)
		fputc(' ', out);
}

int table_print(const struct table *t, FILE *out, bool bold_first_row)
{
	size_t n_columns = strlen(t->align);
	const char *cell = t->text.data;

	if (t->text.err != 0) {
		complain("out of memory");
		return EX_SOFTWARE;
	}
	for (size_t i = 0; i < t->n_cells; i++, cell += strlen(cell) + 1) {
		size_t column = i % n_columns;
		unsigned spare = t->widths[column] - width_of(cell, strlen(cell));
		bool is_last = column + 1 == n_columns;
		bool bold = bold_first_row && i < n_columns;

		if (t->align[column] == 'r')
			pad(out, spare);
		fprintf(out, "%s%s%s", bold ? "\033[1m" : "", cell, bold ? "\033[0m" : "");
		if (t->align[column] != 'r' && !is_last)
			pad(out, spare);
		fputs(is_last ? "\n" : "  ", out);
	}
	return 0;
}
