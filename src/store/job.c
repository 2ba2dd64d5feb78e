#include "store/job.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

static const struct row_kind kind = NOUN_KIND(struct job, &job_portrait);

int store_job_add(struct connection *c, const struct job *job, bool *ret_added)
{
	QUERY sql = {"INSERT INTO job ({columns}) VALUES ({values})"
		     " ON CONFLICT (id) DO NOTHING RETURNING seq",
		     .of = &job_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, job);
	return query_run_found(q, ret_added);
}

int store_job_change(struct connection *c, const struct job *job, int64_t was_ms, bool *ret_changed)
{
	QUERY sql = {"UPDATE job SET data = :data, updated_ms = :updated WHERE id = :id"
		     " AND updated_ms = :was RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", job->id);
	query_bind_blob(q, ":data", job->data.bytes.data, job->data.bytes.len);
	query_bind_int(q, ":updated", job->updated_ms);
	query_bind_int(q, ":was", was_ms);
	return query_run_found(q, ret_changed);
}

int store_job_delete(struct connection *c, struct text id, bool *ret_found)
{
	QUERY sql = {"DELETE FROM job WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return query_run_found(q, ret_found);
}

int store_job_find(struct connection *c, struct text id, struct arena *arena, struct job *ret_row,
		   bool *ret_found)
{
	QUERY sql = {"SELECT {columns} FROM job WHERE id = :id", .of = &job_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return rows_take_one(&kind, q, arena, ret_row, ret_found);
}

int store_job_list(struct connection *c, struct arena *arena, struct job **ret_rows,
		   unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM job ORDER BY seq", .of = &job_portrait};
	struct row_list list = {.kind = &kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return rows_take_all(q, &list, ret_rows, ret_n);
}
