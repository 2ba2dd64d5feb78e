#include "store/db/rows.h"

#include "base/cleanup.h"
#include "store/db/driver.h"

void *rows_grow(struct arena *arena, void *rows, unsigned n, unsigned *cap, size_t size)
{
	unsigned more = *cap ? *cap * 2 : 16;
	void *grown = rows;

	if (n == *cap) {
		grown = arena_alloc(arena, more * size);
		if (!grown)
			return NULL;
		if (n > 0)
			memcpy(grown, rows, n * size);
		*cap = more;
		ASAN_POISON_MEMORY_REGION((char *)grown + n * size, (more - n) * size);
	}
	ASAN_UNPOISON_MEMORY_REGION((char *)grown + n * size, size);
	return grown;
}

static const struct member text_members[] = {{.column = "text", .kind = MEMBER_TEXT}};
const struct schema rows_of_texts = SCHEMA(struct text, text_members);

/* Its texts still point to the query's own bytes. */
static int read_row(struct statement *q, void *row)
{
	query_read_members(q, row);
	return q->query->beside ? q->query->beside(q, row) : query_fault(q);
}

int rows_take_one(struct statement *q, struct arena *arena, void *ret_row, bool *ret_found)
{
	bool found;
	int r;

	r = query_next(q, &found);
	if (r == 0 && found)
		r = read_row(q, ret_row) ?: schema_copy(q->query->of, arena, ret_row);
	if (r == 0)
		*ret_found = found;
	return r;
}

static int rows_add(struct statement *q, struct row_list *l, bool *ret_full)
{
	const struct schema *of = q->query->of;
	void *row;
	int r;

	l->rows = rows_grow(l->arena, l->rows, l->n, &l->cap, of->size);
	if (!l->rows)
		return -ENOMEM;
	row = (char *)l->rows + l->n * of->size;
	r = read_row(q, row);
	if (r != 0)
		return r;
	if (l->cut)
		l->cut(row, l->chars);
	l->bytes += schema_bytes(of, row);
	*ret_full = l->n > 0 && l->max_bytes > 0 && l->bytes > l->max_bytes;
	if (*ret_full)
		return 0;
	l->n++;
	r = schema_copy(of, l->arena, row);
	return r == 0 && l->taken ? l->taken(l, row) : r;
}

int rows_take(struct statement *q, struct row_list *list)
{
	bool full = false;
	bool more;
	int r = 0;

	while (!full && (r = query_next(q, &more)) == 0 && more) {
		r = rows_add(q, list, &full);
		if (r != 0)
			return r;
	}
	if (full)
		query_again(q);
	return r;
}

int rows_give(int r, const struct row_list *list, void *ret_rows, unsigned *ret_n)
{
	if (r != 0)
		return r;
	*(void **)ret_rows = list->rows;
	*ret_n = list->n;
	return 0;
}

int rows_take_all(struct statement *q, struct row_list *list, void *ret_rows, unsigned *ret_n)
{
	return rows_give(rows_take(q, list), list, ret_rows, ret_n);
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

/* ---- by their names ---- */

enum { NAMES_MAX = 16 << 20 };

void rows_add_name(const struct connection *c, struct buf *list, struct text name)
{
	if (list->len == 0)
		buf_add_char(list, c->ops->is_shared ? '{' : '[');
	else
		buf_add_char(list, ',');
	buf_add_char(list, '"');
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] == '"' || name.data[i] == '\\')
			buf_add_char(list, '\\');
		buf_add_char(list, name.data[i]);
	}
	buf_add_char(list, '"');
}

int rows_bind_names(struct statement *q, const char *parameter, struct buf *list)
{
	bool shared = q->conn->ops->is_shared;

	if (list->len == 0)
		buf_add_char(list, shared ? '{' : '[');
	buf_add_char(list, shared ? '}' : ']');
	query_bind(q, BIND(parameter, (struct text) {.data = list->data, .len = list->len}));
	return list->err;
}

int rows_named(struct connection *c, const struct query *query, struct arena *arena,
	       const struct text *names, unsigned n, void *ret_rows, unsigned *ret_n)
{
	CLEANUP(query_donep) struct statement *q = query_open(c, query);
	CLEANUP(buf_donep) struct buf list;
	struct row_list rows = {.arena = arena};
	int r;

	buf_init(&list, NAMES_MAX);
	for (unsigned i = 0; i < n; i++)
		rows_add_name(c, &list, names[i]);
	r = rows_bind_names(q, ":names", &list);
	return rows_give(r ?: rows_take(q, &rows), &rows, ret_rows, ret_n);
}
