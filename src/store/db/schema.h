/* The tables, as a list of steps that bring a file up to date from the version it has. */
#pragma once

#include "base/why.h"

struct connection;

/* The version that this program knows. */
int schema_newest(void);
/* The SQL that leads to this version from the previous one; for tests that make an old file. */
const char *schema_step(int version);

/* Refuses a file that a newer program wrote. */
int schema_check(struct connection *c, const char *path, struct why *why);

/* Takes the missing steps, each in a transaction of its own. */
int schema_migrate(struct connection *c);
