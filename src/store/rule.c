#include "store/rule.h"

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"

/*
 * How long claims are remembered: the newest so many of a rule, and all that are younger.
 * A clock that is set back an hour brings nothing again.
 */
enum { CLAIMS_KEPT = 100, CLAIMS_KEPT_MS = 2 * 60 * 60 * 1000, CLAIMS_DROPPED_AT_ONCE = 8 };

static int drop_old_claims(struct connection *c, struct text rule, int64_t now_ms)
{
	static const struct query sql = {
		"DELETE FROM rule_claim WHERE claimed_ms < :before AND seq IN"
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
	static const struct query sql = {
		"INSERT INTO rule_claim (rule, occurrence_ms, claimed_ms)"
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
	static const struct query sql = {
		"DELETE FROM rule_claim WHERE rule = :rule AND occurrence_ms = :occurrence"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":rule", rule);
	query_bind_int(q, ":occurrence", occurrence_ms);
	return query_run(q);
}

int store_rule_last(struct connection *c, struct text rule, int64_t *ret_occurrence_ms)
{
	static const struct query sql = {
		"SELECT max(occurrence_ms) FROM rule_claim WHERE rule = :rule"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	bool row;
	int r;

	query_bind_text(q, ":rule", rule);
	r = query_next(q, &row);
	if (r == 0)
		*ret_occurrence_ms = query_null(q, 0) ? 0 : query_int(q, 0);
	return r;
}

int store_rule_find(struct connection *c, struct text rule, struct arena *arena,
		    struct rule_row *ret_row)
{
	static const struct query sql = {
		"SELECT fired_ms, enabled, n_fired FROM rule WHERE name = :name"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);
	struct rule_row row = {.rule = rule, .enabled = -1};
	bool found;
	int r;

	query_bind_text(q, ":name", rule);
	r = query_next(q, &found);
	if (r == 0)
		r = rows_copy_text(arena, &row.rule);
	if (r != 0)
		return r;
	if (found) {
		row.fired_ms = query_int(q, 0);
		row.enabled = (int)query_int(q, 1);
		row.n_fired = query_int(q, 2);
	}
	*ret_row = row;
	return 0;
}

int store_rule_put(struct connection *c, const struct rule_row *row)
{
	static const struct query sql = {
		"INSERT INTO rule (name, fired_ms, enabled, n_fired)"
		" VALUES (:name, :fired, :enabled, :more)"
		" ON CONFLICT (name) DO UPDATE SET fired_ms = excluded.fired_ms,"
		" enabled = excluded.enabled, n_fired = rule.n_fired + :more"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":name", row->rule);
	query_bind_int(q, ":fired", row->fired_ms);
	query_bind_int(q, ":enabled", row->enabled);
	query_bind_int(q, ":more", row->fires_now);
	return query_run(q);
}
