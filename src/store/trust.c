#include "store/trust.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_trust_put(struct connection *c, const struct trust_row *row)
{
	static const struct query sql = {
		"INSERT INTO project_trust (folder, digest, trusted_ms)"
		" VALUES (:folder, :digest, :trusted) ON CONFLICT (folder) DO UPDATE"
		" SET digest = excluded.digest, trusted_ms = excluded.trusted_ms"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":folder", row->folder);
	query_bind_text(q, ":digest", row->digest);
	query_bind_int(q, ":trusted", row->trusted_ms);
	return query_run(q);
}

int store_trust_delete(struct connection *c, struct text folder)
{
	static const struct query sql = {"DELETE FROM project_trust WHERE folder = :folder"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":folder", folder);
	return query_run(q);
}

static int read_trust(struct statement *q, void *ret)
{
	*(struct trust_row *)ret = (struct trust_row) {
		.folder = query_text(q, 0),
		.digest = query_text(q, 1),
		.trusted_ms = query_int(q, 2),
	};
	return query_fault(q);
}

static const uint16_t trust_texts[] = {
	offsetof(struct trust_row, folder),
	offsetof(struct trust_row, digest),
};

static const struct row_kind trust_kind = ROW_KIND(struct trust_row, read_trust, trust_texts);

int store_trust_list(struct connection *c, struct arena *arena, struct trust_row **ret_rows,
		     unsigned *ret_n)
{
	static const struct query sql = {
		"SELECT folder, digest, trusted_ms FROM project_trust ORDER BY folder"};
	struct row_list list = {.kind = &trust_kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int r;

	r = rows_take(q, &list);
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	return 0;
}
