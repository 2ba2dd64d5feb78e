#include "store/short_id.h"

#include <string.h>

#include "base/cleanup.h"
#include "store/rows.h"

static bool begins(struct text t, struct text prefix)
{
	return t.len >= prefix.len && memcmp(t.data, prefix.data, prefix.len) == 0;
}

/* The next id, where it begins with the prefix. */
static int next(struct statement *q, struct text prefix, struct text *ret_id, bool *ret_found)
{
	struct text id = {0};
	bool row;
	int r;

	r = query_next(q, &row);
	if (r == 0 && row) {
		id = query_text(q, 0);
		r = query_fault(q);
	}
	if (r != 0)
		return r;
	*ret_found = row && begins(id, prefix);
	*ret_id = id;
	return 0;
}

int short_id_find(struct connection *c, const struct query *sql, struct text prefix,
		  struct arena *arena, struct text *ret_id, unsigned *ret_n)
{
	CLEANUP(query_donep) struct statement *q = NULL;
	bool first = false, second = false;
	struct text id = {0}, other;
	int r = 0;

	if (prefix.len > 0)
		r = query_start(c, sql, &q);
	if (q) {
		query_bind_text(q, ":prefix", prefix);
		r = next(q, prefix, &id, &first);
	}
	if (r == 0 && first)
		r = rows_copy_text(arena, &id);
	if (r == 0 && first && id.len > prefix.len)
		r = next(q, prefix, &other, &second);
	if (r != 0)
		return r;
	if (first && !second)
		*ret_id = id;
	*ret_n = (unsigned)first + second;
	return 0;
}
