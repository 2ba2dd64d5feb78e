#include "store/rule.h"

#include "store/db/query.h"
#include "store/db/rows.h"

/*
 * How long claims are remembered: the newest CLAIMS_KEPT of a rule, and all that are younger than
 * CLAIMS_KEPT_MS. So setting the clock back by an hour repeats nothing.
 */
enum { CLAIMS_KEPT = 100, CLAIMS_KEPT_MS = 2 * 60 * 60 * 1000, CLAIMS_DROPPED_AT_ONCE = 8 };

static int drop_old_claims(struct connection *c, struct text rule, int64_t now_ms)
{
	QUERY sql = {"DELETE FROM rule_claim WHERE claimed_ms < :before AND seq IN"
		     " (SELECT seq FROM rule_claim WHERE rule = :rule AND seq <="
		     " (SELECT seq FROM rule_claim WHERE rule = :rule"
		     " ORDER BY seq DESC LIMIT 1 OFFSET :kept) ORDER BY seq LIMIT :limit)"};

	return query_do(c, &sql, BIND(":rule", rule), BIND(":before", now_ms - CLAIMS_KEPT_MS),
			BIND(":kept", CLAIMS_KEPT), BIND(":limit", CLAIMS_DROPPED_AT_ONCE));
}

static int claim(struct connection *c, struct text rule, int64_t occurrence_ms, int64_t now_ms,
		 bool *ret_claimed)
{
	QUERY sql = {"INSERT INTO rule_claim (rule, occurrence_ms, claimed_ms)"
		     " VALUES (:rule, :occurrence, :now)"
		     " ON CONFLICT (rule, occurrence_ms) DO NOTHING RETURNING seq"};

	return query_find(c, &sql, ret_claimed, BIND(":rule", rule),
			  BIND(":occurrence", occurrence_ms), BIND(":now", now_ms));
}

int store_rule_claim(struct connection *c, struct text rule, int64_t occurrence_ms, int64_t now_ms,
		     bool *ret_claimed)
{
	bool claimed = false;
	int r;

	r = claim(c, rule, occurrence_ms, now_ms, &claimed);
	if (r == 0 && claimed)
		r = drop_old_claims(c, rule, now_ms);
	if (r == 0)
		*ret_claimed = claimed;
	return r;
}

int store_rule_unclaim(struct connection *c, struct text rule, int64_t occurrence_ms)
{
	QUERY sql = {"DELETE FROM rule_claim WHERE rule = :rule AND occurrence_ms = :occurrence"};

	return query_do(c, &sql, BIND(":rule", rule), BIND(":occurrence", occurrence_ms));
}

int store_rule_last(struct connection *c, struct text rule, int64_t *ret_occurrence_ms)
{
	QUERY sql = {"SELECT max(occurrence_ms) FROM rule_claim WHERE rule = :rule"
		     " AND occurrence_ms > 0"};
	return query_find_int(c, &sql, ret_occurrence_ms, BIND(":rule", rule));
}

int store_rule_find(struct connection *c, struct text name, struct arena *arena,
		    struct rule_memory *ret_memory)
{
	QUERY sql = {"SELECT {columns} FROM rule WHERE name = :name", .of = &rule_memory_schema};
	struct rule_memory memory = {.name = name, .enabled = -1};
	bool found;
	int r = rows_find(c, &sql, arena, &memory, &found, BIND(":name", name));

	if (r == 0)
		*ret_memory = memory;
	return r;
}

int store_rule_put(struct connection *c, const struct rule_memory *memory)
{
	QUERY sql = {"INSERT INTO rule ({columns}) VALUES ({values})"
		     " ON CONFLICT (name) DO UPDATE SET fired_ms = CASE WHEN excluded.fired_ms = 0"
		     " THEN rule.fired_ms ELSE excluded.fired_ms END, enabled = CASE WHEN"
		     " excluded.enabled < 0 THEN rule.enabled ELSE excluded.enabled END,"
		     " n_fired = rule.n_fired + excluded.n_fired",
		     .of = &rule_memory_schema};

	return query_do(c, &sql, BIND_NOUN(memory));
}

/* ---- jobs ---- */

int store_job_add(struct connection *c, const struct job *job, bool *ret_added)
{
	QUERY sql = {"INSERT INTO job ({columns}) VALUES ({values})"
		     " ON CONFLICT (id) DO NOTHING RETURNING seq",
		     .of = &job_schema};

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

int store_rule_find_named(struct connection *c, const struct text *names, unsigned n,
			  struct arena *arena, struct rule_memory **ret_rows, unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM rule WHERE name IN {names}", .of = &rule_memory_schema};

	return rows_named(c, &sql, arena, names, n, ret_rows, ret_n);
}

int store_job_find_named(struct connection *c, const struct text *ids, unsigned n,
			 struct arena *arena, struct job **ret_rows, unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM job WHERE id IN {names}", .of = &job_schema};

	return rows_named(c, &sql, arena, ids, n, ret_rows, ret_n);
}

int store_job_ids(struct connection *c, struct arena *arena, struct text **ret_ids, unsigned *ret_n)
{
	QUERY sql = {"SELECT id FROM job", .of = &rows_of_texts};

	return rows_all(c, &sql, arena, ret_ids, ret_n);
}

int store_job_list(struct connection *c, struct arena *arena, struct job **ret_rows,
		   unsigned *ret_n)
{
	QUERY sql = {"SELECT {columns} FROM job ORDER BY seq", .of = &job_schema};

	return rows_all(c, &sql, arena, ret_rows, ret_n);
}

/* ---- trusted projects ---- */

int store_trust_put(struct connection *c, const struct project_trust *trust)
{
	QUERY sql = {
		"INSERT INTO project_trust ({columns}) VALUES ({values}) ON CONFLICT (folder) DO "
		"UPDATE"
		" SET digest = excluded.digest, trusted_ms = excluded.trusted_ms",
		.of = &trust_schema};

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
	QUERY sql = {"SELECT {columns} FROM project_trust ORDER BY folder", .of = &trust_schema};

	return rows_all(c, &sql, arena, ret_rows, ret_n);
}
