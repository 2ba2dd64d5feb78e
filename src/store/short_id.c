#include "store/short_id.h"

#include <string.h>

#include "base/cleanup.h"
#include "store/db/rows.h"

/* The next id, if it begins with the prefix. */
static int next(struct statement *q, struct text prefix, struct arena *arena, struct text *ret_id,
		bool *ret_found)
{
	struct text id = {0};
	bool row;
	int r = query_next(q, &row);

	if (r == 0 && row) {
		id = query_text(q, 0);
		r = query_fault(q);
	}
	*ret_found = r == 0 && row && text_begins(id, prefix);
	if (*ret_found)
		r = rows_copy_text(arena, &id);
	*ret_id = id;
	return r;
}

int short_id_find(struct connection *c, const struct query *sql, struct text prefix,
		  struct arena *arena, struct text ret_ids[2], unsigned *ret_n)
{
	CLEANUP(query_donep) struct statement *q = query_open(c, sql, BIND(":prefix", prefix));
	struct text ids[2] = {{0}};
	bool found = prefix.len > 0;
	unsigned n = 0;
	int r = 0;

	while (r == 0 && found && n < 2) {
		r = next(q, prefix, arena, &ids[n], &found);
		n += found;
	}
	if (r != 0)
		return r;
	memcpy(ret_ids, ids, n * sizeof(ids[0]));
	*ret_n = n;
	return 0;
}
