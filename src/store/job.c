#include "store/job.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

int store_job_put(struct connection *c, const struct job *job)
{
	static const struct query sql = {"INSERT INTO job ({columns}) VALUES ({values})"
					 " ON CONFLICT (id) DO UPDATE SET data = excluded.data,"
					 " updated_ms = excluded.updated_ms",
					 .of = &job_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, job);
	return query_run(q);
}

int store_job_delete(struct connection *c, struct text id, bool *ret_found)
{
	static const struct query sql = {"DELETE FROM job WHERE id = :id RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return query_run_found(q, ret_found);
}

int store_job_list(struct connection *c, struct arena *arena, struct job **ret_rows,
		   unsigned *ret_n)
{
	static const struct row_kind kind = NOUN_KIND(struct job, &job_portrait);
	static const struct query sql = {"SELECT {columns} FROM job ORDER BY seq",
					 .of = &job_portrait};
	struct row_list list = {.kind = &kind, .arena = arena};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	return rows_take_all(q, &list, ret_rows, ret_n);
}
