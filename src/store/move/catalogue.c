#include "store/move/catalogue.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/db/driver.h"

/* Made by a driver for itself, and not by the steps of the schema. */
static bool is_drivers_own(struct text table)
{
	return table.len > 6 && memcmp(table.data, "koine_", 6) == 0;
}

static int copy_name(char out[MOVE_NAME_MAX], struct text name)
{
	int n = snprintf(out, MOVE_NAME_MAX, "%.*s", TEXT_ARGS(name));

	return n > 0 && n < MOVE_NAME_MAX ? 0 : -EBADMSG;
}

static int read_kind(struct text letter, enum move_kind *ret)
{
	if (letter.len != 1 || !strchr("idtb", letter.data[0]))
		return -EBADMSG;
	*ret = (enum move_kind)letter.data[0];
	return 0;
}

static struct move_table *last_or_new(struct move_catalogue *c, struct text name)
{
	struct move_table *t = c->n > 0 ? &c->tables[c->n - 1] : NULL;

	if (t && text_is(name, t->name))
		return t;
	if (c->n == MOVE_TABLES_MAX)
		return NULL;
	t = &c->tables[c->n++];
	*t = (struct move_table) {.n_columns = 0};
	return copy_name(t->name, name) == 0 ? t : NULL;
}

static int read_column(struct statement *q, struct move_catalogue *c)
{
	struct text name = query_text(q, 0);
	struct move_table *t = is_drivers_own(name) ? NULL : last_or_new(c, name);
	struct move_column *column;
	int r;

	if (is_drivers_own(name))
		return 0;
	if (!t || t->n_columns == MOVE_COLUMNS_MAX)
		return -E2BIG;
	column = &t->columns[t->n_columns++];
	r = copy_name(column->name, query_text(q, 1)) ?: read_kind(query_text(q, 2), &column->kind);
	column->key = (unsigned)query_int(q, 3);
	return r != 0 ? r : query_fault(q);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct move_column *)a)->name, ((const struct move_column *)b)->name);
}

/* Rows are walked along their primary key, so every table must have one. */
static int put_in_order(struct move_table *t)
{
	qsort(t->columns, t->n_columns, sizeof(t->columns[0]), by_name);
	for (unsigned i = 0; i < t->n_columns; i++) {
		unsigned key = t->columns[i].key;

		if (key > MOVE_KEYS_MAX)
			return -E2BIG;
		if (key > 0) {
			t->keys[key - 1] = i;
			t->n_keys++;
		}
	}
	return t->n_keys > 0 ? 0 : -EBADMSG;
}

int move_catalogue_read(struct connection *c, struct move_catalogue *ret)
{
	CLEANUP(query_donep) struct statement *q = query_open(c, &c->ops->columns);
	bool row = false;
	int r;

	ret->n = 0;
	while ((r = query_next(q, &row)) == 0 && row) {
		r = read_column(q, ret);
		if (r != 0)
			return r;
	}
	for (unsigned i = 0; i < ret->n && r == 0; i++)
		r = put_in_order(&ret->tables[i]);
	return r;
}

const struct move_table *move_catalogue_find(const struct move_catalogue *c, const char *name)
{
	for (unsigned i = 0; i < c->n; i++) {
		if (strcmp(c->tables[i].name, name) == 0)
			return &c->tables[i];
	}
	return NULL;
}

static bool same_columns(const struct move_table *a, const struct move_table *b)
{
	if (a->n_columns != b->n_columns)
		return false;
	for (unsigned i = 0; i < a->n_columns; i++) {
		const struct move_column *x = &a->columns[i], *y = &b->columns[i];

		if (strcmp(x->name, y->name) != 0 || x->kind != y->kind || x->key != y->key)
			return false;
	}
	return true;
}

int move_catalogue_compare(const struct move_catalogue *a, const struct move_catalogue *b,
			   struct error *error)
{
	for (unsigned i = 0; i < a->n; i++) {
		const struct move_table *other = move_catalogue_find(b, a->tables[i].name);

		if (!other || !same_columns(&a->tables[i], other))
			return refuse(error, REFUSE_CONFLICT, "table %s differs between the stores",
				      a->tables[i].name);
	}
	if (a->n != b->n)
		return refuse(error, REFUSE_CONFLICT, "one store has %u tables, the other %u", a->n,
			      b->n);
	return 0;
}
