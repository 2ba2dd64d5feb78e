#include "store/trust.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_trust_put(struct connection *c, const struct project_trust *trust)
{
	QUERY sql = {
		"INSERT INTO project_trust ({columns}) VALUES ({values}) ON CONFLICT (folder) DO "
		"UPDATE"
		" SET digest = excluded.digest, trusted_ms = excluded.trusted_ms",
		.of = &trust_portrait};

	return query_do(c, &sql, BIND_NOUN(trust));
}

int store_trust_delete(struct connection *c, struct text folder)
{
	QUERY sql = {"DELETE FROM project_trust WHERE folder = :folder"};

	return query_do(c, &sql, BIND(":folder", folder));
}

int store_trust_list(struct connection *c, struct arena *arena, struct project_trust **ret_rows,
		     unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM project_trust ORDER BY folder", .of = &trust_portrait};

	return rows_all(c, &sql, arena, ret_rows, ret_n);
}
