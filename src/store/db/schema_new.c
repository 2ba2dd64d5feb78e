/*
 * The tables of a new file, made at once. SQLite reads all of its schema again after each ALTER
 * TABLE, so step after step takes several times as long as the tables that they end with.
 */
#include "store/db/schema.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

static const char create_table[] = "CREATE TABLE ";
static const char alter_table[] = "ALTER TABLE ";
static const char add_column[] = " ADD COLUMN ";

/* "ALTER TABLE task ADD COLUMN label TEXT;" */
struct added {
	struct text table;
	struct text column; /* with its type */
	const char *end;
};

static struct text up_to(const char *from, const char *end)
{
	return (struct text) {from, (size_t)(end - from)};
}

/* The next from there on; false: there is none, or it is another change of a table. */
static bool next_added(const char *from, struct added *ret)
{
	const char *at = strstr(from, alter_table);
	const char *table = at ? at + strlen(alter_table) : "";
	const char *add = table + strcspn(table, " ;");
	const char *column = add + strlen(add_column);

	if (strncmp(add, add_column, strlen(add_column)) != 0)
		return false;
	*ret = (struct added) {
		.table = up_to(table, add),
		.column = up_to(column, column + strcspn(column, ";")),
	};
	ret->end = column + ret->column.len;
	ret->end += *ret->end == ';';
	return true;
}

/* The bracket that closes the first one from there on. */
static const char *closing(const char *from)
{
	const char *at = strchr(from, '(');
	int depth = 0;

	for (; at && *at; at++) {
		depth += (*at == '(') - (*at == ')');
		if (depth == 0)
			return at;
	}
	return NULL;
}

/* Writes the table that begins there, with the columns that are added to it later; returns where it ends. */
static const char *write_table(const char *from, struct buf *out)
{
	const char *name = from + strlen(create_table);
	const char *end = closing(from);
	struct added a = {.end = end};

	if (!end)
		return NULL;
	buf_add(out, from, (size_t)(end - from));
	while (next_added(a.end, &a)) {
		if (!text_equal(a.table, up_to(name, name + strcspn(name, " "))))
			continue;
		buf_add_str(out, ", ");
		buf_add(out, a.column.data, a.column.len);
	}
	return end;
}

static const char *earlier(const char *a, const char *b)
{
	return a && (!b || a < b) ? a : b;
}

static int fold(const char *at, struct buf *out)
{
	const char *table, *next;
	struct added a;

	while ((next = earlier(table = strstr(at, create_table), strstr(at, alter_table)))) {
		buf_add(out, at, (size_t)(next - at));
		if (next == table)
			at = write_table(next, out);
		else
			at = next_added(next, &a) ? a.end : NULL;
		if (!at)
			return -EINVAL;
	}
	buf_add_str(out, at);
	buf_add_char(out, '\0');
	return out->err;
}

int schema_at_once(const char *const *steps, int n, struct buf *out)
{
	CLEANUP(buf_donep) struct buf all;

	buf_init(&all, out->max);
	for (int i = 0; i < n; i++)
		buf_add_str(&all, steps[i]);
	buf_add_char(&all, '\0');
	return all.err != 0 ? all.err : fold(all.data, out);
}
