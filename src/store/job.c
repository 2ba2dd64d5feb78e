#include "store/job.h"

#include "base/cleanup.h"
#include "store/query.h"
#include "store/rows.h"

int store_job_put(struct connection *c, const struct job_row *row)
{
	static const struct query sql = {"INSERT INTO job (id, data, created_ms, updated_ms)"
					 " VALUES (:id, :data, :created, :updated)"
					 " ON CONFLICT (id) DO UPDATE SET data = excluded.data,"
					 " updated_ms = excluded.updated_ms"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":id", row->id);
	query_bind_blob(q, ":data", row->data.data, row->data.len);
	query_bind_int(q, ":created", row->created_ms);
	query_bind_int(q, ":updated", row->updated_ms);
	return query_run(q);
}

int store_job_delete(struct connection *c, struct text id, bool *ret_found)
{
	static const struct query sql = {"DELETE FROM job WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = NULL;
	int r;

	r = query_start(c, &sql, &q);
	if (r != 0)
		return r;
	query_bind_text(q, ":id", id);
	return query_run_found(q, ret_found);
}

int store_job_list(struct connection *c, struct arena *arena, struct job_row **ret_rows,
		   unsigned *ret_n)
{
	static const struct query sql = {
		"SELECT id, data, created_ms, updated_ms FROM job ORDER BY seq"};
	CLEANUP(query_donep) struct statement *q = NULL;
	struct job_row *rows = NULL;
	unsigned n = 0, cap = 0;
	bool row;
	int r;

	r = query_start(c, &sql, &q);
	while (r == 0 && (r = query_next(q, &row)) == 0 && row) {
		rows = rows_grow(arena, rows, n, &cap, sizeof(rows[0]));
		if (!rows)
			return -ENOMEM;
		rows[n] = (struct job_row) {
			.id = query_text(q, 0),
			.data = query_blob(q, 1),
			.created_ms = query_int(q, 2),
			.updated_ms = query_int(q, 3),
		};
		r = rows_copy_text(arena, &rows[n].id);
		if (r == 0)
			r = rows_copy_text(arena, &rows[n].data);
		n++;
	}
	if (r != 0)
		return r;
	*ret_rows = rows;
	*ret_n = n;
	return 0;
}
