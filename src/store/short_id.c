#include "store/short_id.h"

#include "store/db/rows.h"

/* Those that have the prefix come first. */
int short_id_find(struct connection *c, const struct query *sql, struct text prefix,
		  struct arena *arena, struct text ret_ids[2], unsigned *ret_n)
{
	struct text *ids = NULL;
	unsigned n = 0;
	int r = prefix.len > 0 ? rows_all(c, sql, arena, &ids, &n, BIND(":prefix", prefix)) : 0;

	if (r != 0)
		return r;
	*ret_n = 0;
	while (*ret_n < n && text_begins(ids[*ret_n], prefix)) {
		ret_ids[*ret_n] = ids[*ret_n];
		++*ret_n;
	}
	return 0;
}
