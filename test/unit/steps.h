/* How much work the store does for what is asked of it. */
#pragma once

#include <sqlite3.h>

#include "store/db/driver.h"

/* The steps that the connection's statements took since this was last asked. A row that is read
 * takes a few. */
static inline int64_t steps_taken(const struct connection *c)
{
	int64_t n = 0;

	for (unsigned i = 0; i < c->n_statements; i++) {
		if (c->statements[i].handle)
			n += sqlite3_stmt_status(c->statements[i].handle, SQLITE_STMTSTATUS_VM_STEP,
						 1);
	}
	return n;
}
