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
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, trust);
	return query_run(q);
}

int store_trust_delete(struct connection *c, struct text folder)
{
	QUERY sql = {"DELETE FROM project_trust WHERE folder = :folder"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":folder", folder);
	return query_run(q);
}

int store_trust_list(struct connection *c, struct arena *arena, struct project_trust **ret_rows,
		     unsigned *ret_n)
{
	static const struct row_kind kind = NOUN_KIND(struct project_trust, &trust_portrait);
	QUERY sql = {"SELECT {columns} FROM project_trust ORDER BY folder", .of = &trust_portrait};
	struct row_list list = {.kind = &kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return rows_take_all(q, &list, ret_rows, ret_n);
}
