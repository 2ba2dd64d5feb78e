#include "store/rule.h"

#include "base/cleanup.h"
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
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":rule", rule);
	query_bind_int(q, ":before", now_ms - CLAIMS_KEPT_MS);
	query_bind_int(q, ":kept", CLAIMS_KEPT);
	query_bind_int(q, ":limit", CLAIMS_DROPPED_AT_ONCE);
	return query_run(q);
}

static int claim(struct connection *c, struct text rule, int64_t occurrence_ms, int64_t now_ms,
		 bool *ret_claimed)
{
	QUERY sql = {"INSERT INTO rule_claim (rule, occurrence_ms, claimed_ms)"
		     " VALUES (:rule, :occurrence, :now)"
		     " ON CONFLICT (rule, occurrence_ms) DO NOTHING RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":rule", rule);
	query_bind_int(q, ":occurrence", occurrence_ms);
	query_bind_int(q, ":now", now_ms);
	return query_run_found(q, ret_claimed);
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
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":rule", rule);
	query_bind_int(q, ":occurrence", occurrence_ms);
	return query_run(q);
}

int store_rule_last(struct connection *c, struct text rule, int64_t *ret_occurrence_ms)
{
	QUERY sql = {"SELECT max(occurrence_ms) FROM rule_claim WHERE rule = :rule"
		     " AND occurrence_ms > 0"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool row;
	int r;

	query_bind_text(q, ":rule", rule);
	r = query_next(q, &row);
	if (r == 0)
		*ret_occurrence_ms = query_null(q, 0) ? 0 : query_int(q, 0);
	return r;
}

int store_rule_find(struct connection *c, struct text name, struct arena *arena,
		    struct rule_memory *ret_memory)
{
	static const struct row_kind kind = NOUN_KIND(struct rule_memory, &rule_memory_portrait);
	QUERY sql = {"SELECT {columns} FROM rule WHERE name = :name", .of = &rule_memory_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct rule_memory memory = {.name = name, .enabled = -1};
	bool found;
	int r;

	query_bind_text(q, ":name", name);
	r = rows_take_one(&kind, q, arena, &memory, &found);
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
		     .of = &rule_memory_portrait};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_members(q, memory);
	return query_run(q);
}
