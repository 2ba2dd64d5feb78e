#include "store/job.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_job_put(struct connection *c, const struct job_row *row)
{
	static const struct query sql = {"INSERT INTO job (id, data, created_ms, updated_ms)"
					 " VALUES (:id, :data, :created, :updated)"
					 " ON CONFLICT (id) DO UPDATE SET data = excluded.data,"
					 " updated_ms = excluded.updated_ms"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", row->id);
	query_bind_blob(q, ":data", row->data.data, row->data.len);
	query_bind_int(q, ":created", row->created_ms);
	query_bind_int(q, ":updated", row->updated_ms);
	return query_run(q);
}

int store_job_delete(struct connection *c, struct text id, bool *ret_found)
{
	static const struct query sql = {"DELETE FROM job WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return query_run_found(q, ret_found);
}

static int read_job(struct statement *q, void *ret)
{
	*(struct job_row *)ret = (struct job_row) {
		.id = query_text(q, 0),
		.data = query_blob(q, 1),
		.created_ms = query_int(q, 2),
		.updated_ms = query_int(q, 3),
	};
	return query_fault(q);
}

static const uint16_t job_texts[] = {
	offsetof(struct job_row, id),
	offsetof(struct job_row, data),
};

static const struct row_kind job_kind = ROW_KIND(struct job_row, read_job, job_texts);

int store_job_list(struct connection *c, struct arena *arena, struct job_row **ret_rows,
		   unsigned *ret_n)
{
	static const struct query sql = {
		"SELECT id, data, created_ms, updated_ms FROM job ORDER BY seq"};
	struct row_list list = {.kind = &job_kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	int r;

	r = rows_take(q, &list);
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	return 0;
}
