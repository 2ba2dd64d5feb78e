#include "store/db/rows.h"

#include "base/cleanup.h"
#include "store/db/driver.h"

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

static int read_text(struct statement *q, void *ret)
{
	*(struct text *)ret = query_text(q, 0);
	return query_fault(q);
}

static const uint16_t one_text[] = {0};
const struct row_kind rows_of_texts = ROW_KIND(struct text, read_text, one_text);

static const struct row_kind noun_kind;

static const struct row_kind *kind_of(const struct query *query)
{
	return query->rows ? query->rows : &noun_kind;
}

static struct text *text_at(const struct row_kind *kind, void *row, unsigned i)
{
	return (struct text *)((char *)row + kind->texts[i]);
}

static size_t bytes_of(const struct query *query, void *row)
{
	const struct row_kind *kind = kind_of(query);
	size_t n = kind->size ? 0 : portrait_bytes(query->of, row);

	for (unsigned i = 0; i < kind->n_texts; i++)
		n += text_at(kind, row, i)->len;
	return n;
}

static int read_row(struct statement *q, void *row)
{
	const struct row_kind *kind = kind_of(q->query);

	if (!kind->size)
		query_read_members(q, row);
	return kind->read ? kind->read(q, row) : query_fault(q);
}

/* Copies the texts of a row that was read into the arena. */
static int copy(const struct query *query, struct arena *arena, void *row)
{
	const struct row_kind *kind = kind_of(query);
	int r = kind->size ? 0 : portrait_copy(query->of, arena, row);

	for (unsigned i = 0; i < kind->n_texts && r == 0; i++)
		r = rows_copy_text(arena, text_at(kind, row, i));
	return r;
}

int rows_take_one(struct statement *q, struct arena *arena, void *ret_row, bool *ret_found)
{
	bool found;
	int r;

	r = query_next(q, &found);
	if (r == 0 && found)
		r = read_row(q, ret_row) ?: copy(q->query, arena, ret_row);
	if (r == 0)
		*ret_found = found;
	return r;
}

static int add(struct statement *q, struct row_list *l, bool *ret_full)
{
	size_t size = kind_of(q->query)->size ?: q->query->of->size;
	void *row;
	int r;

	l->rows = rows_grow(l->arena, l->rows, l->n, &l->cap, size);
	if (!l->rows)
		return -ENOMEM;
	row = (char *)l->rows + l->n * size;
	r = read_row(q, row);
	if (r != 0)
		return r;
	if (l->cut)
		l->cut(row, l->chars);
	l->bytes += bytes_of(q->query, row);
	*ret_full = l->n > 0 && l->max_bytes > 0 && l->bytes > l->max_bytes;
	if (*ret_full)
		return 0;
	l->n++;
	return copy(q->query, l->arena, row);
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

int rows_find_with(struct connection *c, const struct query *query, struct arena *arena,
		   void *ret_row, bool *ret_found, const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);

	return rows_take_one(q, arena, ret_row, ret_found);
}

int rows_all_with(struct connection *c, const struct query *query, struct arena *arena,
		  void *ret_rows, unsigned *ret_n, const struct query_value *values)
{
	CLEANUP(query_donep) struct statement *q = query_open_with(c, query, values);
	struct row_list list = {.arena = arena};

	return rows_take_all(q, &list, ret_rows, ret_n);
}
