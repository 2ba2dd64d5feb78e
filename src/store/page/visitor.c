#include "store/page/visitor.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_visitor_add(struct connection *c, const struct visitor *v)
{
	static const struct query sql = {"INSERT INTO visitor ({columns}) VALUES ({values})",
					 .of = &visitor_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, v);
	return query_run(q);
}

int store_visitor_delete(struct connection *c, struct text id)
{
	static const struct query sql = {"DELETE FROM visitor WHERE id = :id"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return query_run(q);
}

int store_visitor_list(struct connection *c, struct text host, struct arena *arena,
		       struct visitor **ret_rows, unsigned *ret_n)
{
	static const struct row_kind kind = NOUN_KIND(struct visitor, &visitor_portrait);
	static const struct query sql = {"SELECT {columns} FROM visitor WHERE host IS NULL OR host "
					 "= :host ORDER BY entered_ms, id",
					 .of = &visitor_portrait};
	struct row_list list = {.kind = &kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":host", host);
	return rows_take_all(q, &list, ret_rows, ret_n);
}
