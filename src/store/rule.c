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
	QUERY sql = {"SELECT {columns} FROM rule WHERE name = :name", .of = &rule_memory_portrait};
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
		     .of = &rule_memory_portrait};

	return query_do(c, &sql, BIND_NOUN(memory));
}
