/*
 * Counts memories and their vectors without walking them: by the tallies of what the scope
 * names, and the few rows that came after them. Those that have expired are not swept yet, so
 * there are few of them, too, and they have an index.
 */
#include "base/cleanup.h"
#include "store/db/schema_tally.h"
#include "store/memory_inner.h"
#include "store/index/memory_vector.h"

/* Of one kind (store/db/schema_tally.h), and one name. */
struct counted {
	int64_t memories;
	int64_t vectors; /* of the model that is asked for */
};

/* Each memory is in one of these. */
struct classes {
	struct counted personal, group, project, common;
};

static const struct text nobody = {.data = "", .len = 0};
static const struct store_model no_model = {.name = {.data = "", .len = 0}};

static int add_tally(struct connection *c, const char *kind, struct text name, struct text part,
		     const struct store_model *model, struct counted *sum)
{
	QUERY sql = {"SELECT coalesce(sum(CASE WHEN number = 0 THEN n END), 0),"
		     " coalesce(sum(CASE WHEN number > 0 AND model = :model"
		     " AND (:dim = 0 OR number = :dim) THEN n END), 0)"
		     " FROM {tally} WHERE kind = :kind AND name = :name AND part = :part"};
	int64_t found[2];
	int r = query_find_ints(c, &sql, found, 2, NULL, BIND(":kind", text_of(kind)),
				BIND(":name", name), BIND(":part", part), BIND_MODEL(model));

	if (r != 0)
		return r;
	sum->memories += found[0];
	sum->vectors += found[1];
	return 0;
}

/* ---- what a scope sees of each class ---- */

static int add_personal(struct connection *c, const struct store_scope *scope,
			const struct store_model *model, struct counted *sum)
{
	int r = 0;

	if (scope->everything)
		return add_tally(c, "personal", nobody, nobody, model, sum);
	if (!scope->user.data)
		return 0;
	if (scope->learnt == LEARNT_ANYWHERE)
		return add_tally(c, "owner", scope->user, nobody, model, sum);
	if (scope->learnt == LEARNT_OPENLY)
		r = add_tally(c, "open", scope->user, nobody, model, sum);
	else if (scope->chat.data)
		r = add_tally(c, "open_in", scope->user, scope->chat, model, sum);
	if (r == 0 && scope->chat.data)
		r = add_tally(c, "closed_in", scope->user, scope->chat, model, sum);
	return r;
}

static int add_group(struct connection *c, const struct store_scope *scope,
		     const struct store_model *model, struct counted *sum)
{
	if (scope->everything)
		return add_tally(c, "in_chat", nobody, nobody, model, sum);
	return scope->chat.data ? add_tally(c, "chat", scope->chat, nobody, model, sum) : 0;
}

static int add_project(struct connection *c, const struct store_scope *scope,
		       const struct store_model *model, struct counted *sum)
{
	if (scope->everything)
		return add_tally(c, "in_project", nobody, nobody, model, sum);
	return scope->project.data
		       ? add_tally(c, "project_memory", scope->project, nobody, model, sum)
		       : 0;
}

static int add_common(struct connection *c, const struct store_scope *scope,
		      const struct store_model *model, struct counted *sum)
{
	if (!scope->everything && scope->without_common)
		return 0;
	return add_tally(c, "common", nobody, nobody, model, sum);
}

/* ---- what the tallies do not know yet ---- */

static int add_newest(struct connection *c, const struct store_scope *scope, struct classes *sums)
{
	QUERY sql = {"SELECT count(*), count(owner), count(CASE WHEN owner IS NULL THEN chat END),"
		     " count(CASE WHEN owner IS NULL AND chat IS NULL THEN project END)"
		     " FROM memory WHERE seq > " TALLY_MARK("memory") " AND " IN_SCOPE};
	int64_t n[4];
	int r = query_find_ints(c, &sql, n, 4, NULL, BIND_SCOPE(scope));

	if (r != 0)
		return r;
	sums->personal.memories += n[1];
	sums->group.memories += n[2];
	sums->project.memories += n[3];
	sums->common.memories += n[0] - n[1] - n[2] - n[3];
	return 0;
}

static int count_expired(struct connection *c, const struct store_scope *scope,
			 const struct store_model *model, int64_t now_ms, struct counted *ret)
{
	QUERY sql = {"SELECT count(*), count(v.seq) FROM memory AS m LEFT JOIN memory_vector AS v"
		     " ON v.seq = m.seq AND v.model = :model AND (:dim = 0 OR v.dim = :dim)"
		     " WHERE m.expires_ms <= :now AND " IN_SCOPE};
	_Static_assert(sizeof(*ret) == 2 * sizeof(int64_t), "numbers side by side");
	return query_find_ints(c, &sql, &ret->memories, 2, NULL, BIND_SCOPE(scope),
			       BIND_MODEL(model), BIND(":now", now_ms));
}

#define OWNERS(tallied)                                                                            \
	"SELECT coalesce(" tallied ", 0) + (SELECT count(DISTINCT owner) FROM memory"              \
	" WHERE seq > " TALLY_MARK("memory") " AND NOT EXISTS (SELECT 1 FROM {tally}"              \
					     " WHERE kind = 'owner' AND name = owner AND part = "  \
					     "'' AND model = '' AND number = 0))"

static int count_owners(struct connection *c, int64_t *ret_n)
{
	QUERY sql = {OWNERS("(SELECT n FROM tally WHERE kind = 'owners')"),
		     .postgres = OWNERS("koine_owners()")};

	return query_find_int(c, &sql, ret_n);
}

/* ---- all of it ---- */

static int memory_count_count(struct connection *c, const struct store_scope *scope,
			      const struct store_model *model, int64_t now_ms,
			      struct memory_totals *ret_totals, int64_t *ret_vectors,
			      int64_t *ret_bare)
{
	struct classes n = {0};
	struct counted expired;
	int64_t all, vectors, owners;
	int r = add_personal(c, scope, model, &n.personal) ?: add_group(c, scope, model, &n.group)
		?: add_project(c, scope, model, &n.project)
		?: add_common(c, scope, model, &n.common) ?: add_newest(c, scope, &n)
		?: count_expired(c, scope, model, now_ms, &expired);

	owners = n.personal.memories > 0;
	if (r == 0 && scope->everything)
		r = count_owners(c, &owners);
	if (r != 0)
		return r;
	all = n.personal.memories + n.group.memories + n.project.memories + n.common.memories;
	vectors = n.personal.vectors + n.group.vectors + n.project.vectors + n.common.vectors;
	*ret_totals = (struct memory_totals) {
		.all = all,
		.expired = expired.memories,
		.personal = n.personal.memories,
		.group = n.group.memories,
		.project = n.project.memories,
		.common = n.common.memories,
		.owners = owners,
	};
	*ret_vectors = vectors;
	*ret_bare = all - expired.memories - (vectors - expired.vectors);
	return 0;
}

/* From one state of the store. */
static int count_at_once(struct connection *c, const struct store_scope *scope,
			 const struct store_model *model, int64_t now_ms,
			 struct memory_totals *ret_totals, int64_t *ret_vectors, int64_t *ret_bare)
{
	CLEANUP(query_end_reads) struct reads reads;

	return query_begin_reads(c, &reads)
		       ?: memory_count_count(c, scope, model, now_ms, ret_totals, ret_vectors,
					     ret_bare);
}

int store_memory_count(struct connection *c, const struct store_scope *scope, int64_t now_ms,
		       struct memory_totals *ret_totals)
{
	int64_t vectors, bare;

	return count_at_once(c, scope, &no_model, now_ms, ret_totals, &vectors, &bare);
}

int store_memory_count_vectors(struct connection *c, const struct store_scope *scope,
			       const struct store_model *model, int64_t now_ms,
			       int64_t *ret_n_vectors, int64_t *ret_n_bare)
{
	struct memory_totals totals;

	return count_at_once(c, scope, model, now_ms, &totals, ret_n_vectors, ret_n_bare);
}
