#include "store/job.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_job_add(struct connection *c, const struct job *job, bool *ret_added)
{
	QUERY sql = {"INSERT INTO job ({columns}) VALUES ({values})"
		     " ON CONFLICT (id) DO NOTHING RETURNING seq",
		     .of = &job_portrait};

	return query_find(c, &sql, ret_added, BIND_NOUN(job));
}

int store_job_change(struct connection *c, const struct job *job, int64_t was_ms, bool *ret_changed)
{
	QUERY sql = {"UPDATE job SET data = :data, updated_ms = :updated WHERE id = :id"
		     " AND updated_ms = :was RETURNING seq"};

	return query_find(c, &sql, ret_changed, BIND(":id", job->id),
			  BIND_BLOB(":data", job->data.bytes), BIND(":updated", job->updated_ms),
			  BIND(":was", was_ms));
}

int store_job_delete(struct connection *c, struct text id, bool *ret_found)
{
	QUERY sql = {"DELETE FROM job WHERE id = :id RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":id", id));
}

int store_job_find(struct connection *c, struct text id, struct arena *arena, struct job *ret_row,
		   bool *ret_found)
{
	QUERY sql = {"SELECT {columns} FROM job WHERE id = :id", .of = &job_portrait};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":id", id));
}

int store_job_list(struct connection *c, struct arena *arena, struct job **ret_rows,
		   unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM job ORDER BY seq", .of = &job_portrait};

	return rows_all(c, &sql, arena, ret_rows, ret_n);
}
