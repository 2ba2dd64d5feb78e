#include "store/move/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/db/driver.h"

enum {
	SQL_MAX = 16 << 10,
	ROW_MAX = 1 << 30,
	PAGE_ROWS = 1000,
	PAGE_FIRST = 50,      /* before it is known what rows take */
	PAGE_BYTES = 4 << 20, /* of rows, about */
	PARAMETER_MAX = MOVE_NAME_MAX + 2,
};

/* ---- the queries of a table ---- */

static void add_names(struct buf *sql, const struct move_table *t, const char *before,
		      const char *after)
{
	for (unsigned i = 0; i < t->n_columns; i++)
		buf_printf(sql, "%s%s%s%s", i > 0 ? ", " : "", before, t->columns[i].name, after);
}

static void add_keys(struct buf *sql, const struct move_table *t, const char *before,
		     const char *after)
{
	for (unsigned i = 0; i < t->n_keys; i++)
		buf_printf(sql, "%s%s%s%s", i > 0 ? ", " : "", before, t->columns[t->keys[i]].name,
			   after);
}

/* What of the table is contents. */
static void add_where(struct buf *sql, const struct move_table *t)
{
	bool meta = strcmp(t->name, "meta") == 0;

	buf_printf(sql, " FROM %s WHERE %s", t->name, meta ? "key <> '" MOVE_KEY "'" : "1 = 1");
}

static void spell_page(struct buf *sql, const struct move_table *t, bool first)
{
	buf_add_str(sql, "SELECT ");
	add_names(sql, t, "\"", "\"");
	add_where(sql, t);
	if (!first) {
		buf_add_str(sql, " AND (");
		add_keys(sql, t, "\"", "\"");
		buf_add_str(sql, ") > (");
		add_keys(sql, t, ":", "");
		buf_add_str(sql, ")");
	}
	buf_add_str(sql, " ORDER BY ");
	add_keys(sql, t, "\"", "\"");
	buf_add_str(sql, first ? " LIMIT :page_limit OFFSET :page_skip" : " LIMIT :page_limit");
}

static void spell(struct move_rows *rows)
{
	const struct move_table *t = rows->table;
	struct buf *sql = rows->texts;

	buf_add_str(&sql[0], "SELECT count(*)");
	add_where(&sql[0], t);
	spell_page(&sql[1], t, true);
	spell_page(&sql[2], t, false);
	buf_printf(&sql[3], "INSERT INTO %s (", t->name);
	add_names(&sql[3], t, "\"", "\"");
	buf_add_str(&sql[3], ") VALUES (");
	add_names(&sql[3], t, ":", "");
	buf_add_str(&sql[3], ")");
}

int move_rows_init(struct move_rows *rows, struct connection *c, const struct move_table *table)
{
	struct query *const queries[] = {&rows->count, &rows->first, &rows->next, &rows->insert};
	int r = 0;

	*rows = (struct move_rows) {.conn = c, .table = table};
	for (int i = 0; i < 4; i++)
		buf_init(&rows->texts[i], SQL_MAX);
	spell(rows);
	for (int i = 0; i < 4; i++) {
		buf_add(&rows->texts[i], "", 1);
		if (r == 0)
			r = rows->texts[i].err;
		queries[i]->sql = rows->texts[i].data;
	}
	return r;
}

void move_rows_done(struct move_rows *rows)
{
	for (int i = 0; i < 4; i++)
		buf_done(&rows->texts[i]);
}

int move_rows_count(struct move_rows *rows, int64_t *ret_n)
{
	return query_find_int(rows->conn, &rows->count, ret_n);
}

/* ---- walking ---- */

void move_walk_init(struct move_walk *w, struct move_rows *rows, int64_t skip)
{
	*w = (struct move_walk) {.rows = rows, .skip = skip, .limit = PAGE_FIRST};
	for (int i = 0; i < MOVE_KEYS_MAX; i++)
		buf_init(&w->texts[i], ROW_MAX);
	buf_init(&w->row, ROW_MAX);
}

void move_walk_done(struct move_walk *w)
{
	for (int i = 0; i < MOVE_KEYS_MAX; i++)
		buf_done(&w->texts[i]);
	buf_done(&w->row);
}

static void name_parameter(char out[PARAMETER_MAX], const struct move_column *column)
{
	out[0] = ':';
	memcpy(out + 1, column->name, MOVE_NAME_MAX);
}

static void add_bytes(struct buf *row, char tag, const void *data, size_t n)
{
	uint64_t len = n;

	buf_add_char(row, tag);
	buf_add(row, &len, sizeof(len));
	buf_add(row, data, n);
}

/* A value behind its kind and its length, so that no two rows have the same bytes. */
static void add_value(struct buf *row, struct statement *q, int i, enum move_kind kind)
{
	int64_t number;
	double real;
	struct text t;

	if (query_null(q, i)) {
		add_bytes(row, 'n', "", 0);
		return;
	}
	switch (kind) {
	case MOVE_INT:
		number = query_int(q, i);
		add_bytes(row, (char)kind, &number, sizeof(number));
		break;
	case MOVE_DOUBLE:
		real = query_double(q, i);
		add_bytes(row, (char)kind, &real, sizeof(real));
		break;
	case MOVE_TEXT:
	case MOVE_BLOB:
		t = kind == MOVE_TEXT ? query_text(q, i) : query_blob(q, i);
		add_bytes(row, (char)kind, t.data, t.len);
		break;
	}
}

static int read_row(struct move_walk *w, struct statement *q)
{
	const struct move_table *t = w->rows->table;

	buf_clear(&w->row);
	for (unsigned i = 0; i < t->n_columns; i++)
		add_value(&w->row, q, (int)i, t->columns[i].kind);
	return query_fault(q) ?: w->row.err;
}

static int keep_place(struct move_walk *w, struct statement *q)
{
	const struct move_table *t = w->rows->table;

	for (unsigned k = 0; k < t->n_keys; k++) {
		const struct move_column *column = &t->columns[t->keys[k]];
		struct text text;

		if (column->kind == MOVE_INT) {
			w->ints[k] = query_int(q, (int)t->keys[k]);
			continue;
		}
		if (column->kind != MOVE_TEXT)
			return -EBADMSG;
		text = query_text(q, (int)t->keys[k]);
		buf_clear(&w->texts[k]);
		buf_add(&w->texts[k], text.data, text.len);
		if (w->texts[k].err != 0)
			return w->texts[k].err;
	}
	return query_fault(q);
}

static void bind_place(struct move_walk *w, struct statement *q)
{
	const struct move_table *t = w->rows->table;
	char name[PARAMETER_MAX];

	for (unsigned k = 0; k < t->n_keys; k++) {
		const struct move_column *column = &t->columns[t->keys[k]];
		struct text text = {.data = w->texts[k].len > 0 ? w->texts[k].data : "",
				    .len = w->texts[k].len};

		name_parameter(name, column);
		if (column->kind == MOVE_INT)
			query_bind(q, BIND(name, w->ints[k]));
		else
			query_bind(q, BIND(name, text));
	}
}

/* PostgreSQL's answers are held whole, so a page of large rows has few. */
static void choose_limit(struct move_walk *w, int64_t n_bytes)
{
	int64_t each = w->n > 0 ? n_bytes / w->n + 1 : 1;
	int64_t fits = PAGE_BYTES / each;

	w->limit = fits < 1 ? 1 : fits > PAGE_ROWS ? PAGE_ROWS : fits;
}

static int walk_rows(struct move_walk *w, struct statement *q, move_row_fn fn, void *arg)
{
	int64_t n_bytes = 0;
	bool row = false;
	int r;

	w->n = 0;
	while ((r = query_next(q, &row)) == 0 && row) {
		r = read_row(w, q) ?: fn(w, q, arg);
		if (r != 0)
			return r;
		n_bytes += (int64_t)w->row.len;
		if (++w->n == w->limit)
			return keep_place(w, q) ?: (choose_limit(w, n_bytes), 0);
	}
	/* A page that is not full is the last. */
	w->ended = true;
	return r;
}

int move_walk_page(struct move_walk *w, move_row_fn fn, void *arg)
{
	CLEANUP(query_donep) struct statement *q = NULL;

	if (w->ended) {
		w->n = 0;
		return 0;
	}
	q = query_open(w->rows->conn, w->begun ? &w->rows->next : &w->rows->first,
		       BIND_IF(":page_skip", w->skip), BIND(":page_limit", w->limit));
	if (w->begun)
		bind_place(w, q);
	w->begun = true;
	return walk_rows(w, q, fn, arg);
}

/* ---- writing ---- */

static void bind_value(struct statement *to, const struct move_column *column, struct statement *q,
		       int i)
{
	char name[PARAMETER_MAX];

	name_parameter(name, column);
	if (query_null(q, i)) {
		query_bind(to, BIND_NULL(name));
		return;
	}
	switch (column->kind) {
	case MOVE_INT:
		query_bind(to, BIND(name, query_int(q, i)));
		break;
	case MOVE_DOUBLE:
		query_bind(to, BIND(name, query_double(q, i)));
		break;
	case MOVE_TEXT:
		query_bind(to, BIND(name, query_text(q, i)));
		break;
	case MOVE_BLOB:
		query_bind(to, BIND_BLOB(name, query_blob(q, i)));
		break;
	}
}

int move_rows_insert(struct move_rows *to, const struct move_walk *from, struct statement *row)
{
	CLEANUP(query_donep) struct statement *q = query_open(to->conn, &to->insert);
	const struct move_table *t = from->rows->table;

	for (unsigned i = 0; i < t->n_columns; i++)
		bind_value(q, &t->columns[i], row, (int)i);
	return query_fault(row) ?: query_run(q);
}

/* ---- sums ---- */

void move_sum_add(struct move_sum *sum, const struct move_walk *w, move_digest_fn digest)
{
	char hex[MOVE_DIGEST_HEX + 1];

	digest((struct text) {.data = w->row.data, .len = w->row.len}, hex);
	sum->n++;
	for (int i = 0; i < 4; i++) {
		char part[17] = "";

		memcpy(part, hex + (ptrdiff_t)16 * i, 16);
		sum->sum[i] += strtoull(part, NULL, 16);
	}
}

bool move_sum_same(const struct move_sum *a, const struct move_sum *b)
{
	return a->n == b->n && memcmp(a->sum, b->sum, sizeof(a->sum)) == 0;
}
