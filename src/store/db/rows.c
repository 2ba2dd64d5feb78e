#include "store/db/rows.h"

void *rows_grow(struct arena *arena, void *rows, unsigned n, unsigned *cap, size_t size)
{
	unsigned more = *cap ? *cap * 2 : 16;
	void *grown;

	if (n < *cap)
		return rows;
	grown = arena_alloc(arena, more * size);
	if (!grown)
		return NULL;
	if (n > 0)
		memcpy(grown, rows, n * size);
	*cap = more;
	return grown;
}

static struct text *text_at(const struct row_kind *kind, void *row, unsigned i)
{
	return (struct text *)((char *)row + kind->texts[i]);
}

static size_t bytes_of(const struct row_kind *kind, void *row)
{
	size_t n = 0;

	for (unsigned i = 0; i < kind->n_texts; i++)
		n += text_at(kind, row, i)->len;
	return kind->of ? n + portrait_bytes(kind->of, row) : n;
}

static int read(const struct row_kind *kind, struct statement *q, void *row)
{
	if (kind->of)
		query_read_members(q, row);
	return kind->read ? kind->read(q, row) : query_fault(q);
}

int rows_copy(const struct row_kind *kind, struct arena *arena, void *row)
{
	int r = kind->of ? portrait_copy(kind->of, arena, row) : 0;

	for (unsigned i = 0; i < kind->n_texts && r == 0; i++)
		r = rows_copy_text(arena, text_at(kind, row, i));
	return r;
}

int rows_take_one(const struct row_kind *kind, struct statement *q, struct arena *arena,
		  void *ret_row, bool *ret_found)
{
	bool found;
	int r;

	r = query_next(q, &found);
	if (r == 0 && found)
		r = read(kind, q, ret_row);
	if (r == 0 && found)
		r = rows_copy(kind, arena, ret_row);
	if (r == 0)
		*ret_found = found;
	return r;
}

static int add(struct statement *q, struct row_list *l, bool *ret_full)
{
	void *row;
	int r;

	l->rows = rows_grow(l->arena, l->rows, l->n, &l->cap, l->kind->size);
	if (!l->rows)
		return -ENOMEM;
	row = (char *)l->rows + l->n * l->kind->size;
	r = read(l->kind, q, row);
	if (r != 0)
		return r;
	if (l->cut)
		l->cut(row, l->chars);
	l->bytes += bytes_of(l->kind, row);
	*ret_full = l->n > 0 && l->max_bytes > 0 && l->bytes > l->max_bytes;
	if (*ret_full)
		return 0;
	l->n++;
	return rows_copy(l->kind, l->arena, row);
}

int rows_take(struct statement *q, struct row_list *list)
{
	bool full = false;
	bool more;
	int r = 0;

	while (!full && (r = query_next(q, &more)) == 0 && more) {
		r = add(q, list, &full);
		if (r != 0)
			return r;
	}
	if (full)
		query_again(q);
	return r;
}

int rows_take_all(struct statement *q, struct row_list *list, void *ret_rows, unsigned *ret_n)
{
	int r = rows_take(q, list);

	if (r != 0)
		return r;
	*(void **)ret_rows = list->rows;
	*ret_n = list->n;
	return 0;
}
