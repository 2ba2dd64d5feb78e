/* The tables of a store and their columns, as its database names them: a new table needs no code for moves. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/db/query.h"

enum {
	MOVE_TABLES_MAX = 64,
	MOVE_COLUMNS_MAX = 60, /* all of a row are bound at once */
	MOVE_KEYS_MAX = 8,
	MOVE_NAME_MAX = 64,
};

/* What is kept in a column: the letters that store_ops.columns answers. */
enum move_kind { MOVE_INT = 'i', MOVE_DOUBLE = 'd', MOVE_TEXT = 't', MOVE_BLOB = 'b' };

struct move_column {
	char name[MOVE_NAME_MAX];
	enum move_kind kind;
	unsigned key; /* its place in the primary key, from 1; 0: none */
};

/* Columns are in the order of their names, which is the same in every database. */
struct move_table {
	char name[MOVE_NAME_MAX];
	struct move_column columns[MOVE_COLUMNS_MAX];
	unsigned n_columns;
	unsigned keys[MOVE_KEYS_MAX]; /* the columns of the primary key, in its order */
	unsigned n_keys;
};

/* In the order in which they were made, so that a table comes after those it refers to. */
struct move_catalogue {
	struct move_table tables[MOVE_TABLES_MAX];
	unsigned n;
};

/* Without the tables that a kind of database has for itself. */
int move_catalogue_read(struct connection *c, struct move_catalogue *ret);

/* Refuses two that differ in more than the order of their tables. */
int move_catalogue_compare(const struct move_catalogue *a, const struct move_catalogue *b,
			   struct error *error);

const struct move_table *move_catalogue_find(const struct move_catalogue *c, const char *name);
