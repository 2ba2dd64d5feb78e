/* The tables, as a list of steps that bring a file up to date from the version it has. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

struct connection;

/* SQLite's: version n is the result of the first n. */
extern const char *const sqlite_steps[];
extern const int sqlite_n_steps;

/* Refuses a file that a newer program wrote. */
int schema_check(struct connection *c, const char *path, struct error *error);

/* Takes the missing steps, each in a transaction of its own; a new file may have them all at once. After a failure
 * the connection may be inside a transaction: close it. */
int schema_migrate(struct connection *c);

/* One script that makes of nothing what the steps would: columns that a step adds to a table, in a
 * statement for each, are in the table from the start. It ends with NUL. */
int schema_at_once(const char *const *steps, int n, struct buf *out);
