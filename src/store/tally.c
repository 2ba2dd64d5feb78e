#include "store/tally.h"

#include <stdbool.h>

#include "store/db/driver.h"
#include "store/db/query.h"
#include "store/db/schema_tally.h"

/* Rows that are counted at once. A question counts up to as many by itself. */
enum { STEP = 512, SHARED_STEPS = 3 };

/* clang-format off */

/* Rows that count alike are grouped first. */
#define TALLY(table, columns, n, grouped, kinds)                                                   \
	{                                                                                          \
		.count = {TALLY_ADD("WITH picked AS MATERIALIZED (SELECT " columns ", " n " AS n"    \
				    " FROM " table " WHERE seq > " TALLY_MARK(table)               \
				    " AND seq <= :to" grouped ")"                                  \
				    " SELECT kind, name, part, '', number, sum(n) FROM ("          \
				    kinds("picked", "0", "n")                                        \
				    ") AS counted GROUP BY kind, name, part, number")},                       \
		.mark = {"UPDATE tally_mark SET seq = :to WHERE name = '" table "'"},              \
		.last = {"SELECT coalesce(max(seq), 0), " TALLY_MARK(table) " FROM " table},       \
		.step = {"SELECT " table "_tally(:to)"},                                           \
	}

/* clang-format on */

#define GROUPED(table, columns, kinds)                                                             \
	TALLY(table, columns, "count(*)", " GROUP BY " columns, kinds)

static const struct tally {
	struct query count;
	struct query mark;
	struct query last; /* the last row, and the mark */
	struct query step; /* where others write, too: see postgres_schema.c */
} tallies[N_TALLIED] QUERY_LIST = {
	[TALLY_TASK] = GROUPED("task", "project, group_name, state", TASK_KINDS),
	[TALLY_MEMORY] = GROUPED("memory", "owner, chat, chat_type, project", MEMORY_KINDS),
	[TALLY_CONVERSATION] = TALLY("conversation", "id, parent, ended_ms, n_messages", "1", "",
				     CONVERSATION_KINDS),
	[TALLY_CALL] = TALLY("message_call", "0", "1", "", MESSAGE_CALL_KINDS),
	[TALLY_SESSION] = GROUPED("session", "working_dir", SESSION_KINDS),
};

static int move_mark(struct connection *c, const struct tally *t, int64_t to)
{
	if (c->ops->is_shared)
		return query_do(c, &t->step, BIND(":to", to));
	return query_do(c, &t->count, BIND(":to", to)) ?: query_do(c, &t->mark, BIND(":to", to));
}

int tally_added(struct connection *c, enum tallied what, int64_t seq)
{
	/* Others use numbers, too, and those that were drawn ahead may not be used at all. */
	bool due = c->ops->is_shared ? seq - c->stepped[what] >= STEP : seq % STEP == 0;

	if (!due)
		return 0;
	c->stepped[what] = seq;
	return move_mark(c, &tallies[what], seq);
}

/* ---- at the start ---- */

static int find_last(struct connection *c, const struct tally *t, int64_t *ret_last,
		     bool *ret_behind)
{
	int64_t found[2];
	int r = query_find_ints(c, &t->last, found, 2, NULL);

	if (r != 0)
		return r;
	*ret_last = found[0];
	*ret_behind = found[0] - found[1] > 2 * STEP;
	return 0;
}

static int move_alone(struct connection *c, const struct tally *t, int64_t last)
{
	QUERY commit = {"COMMIT"};
	QUERY rollback = {"ROLLBACK"};
	int r = query_do(c, &c->ops->begin);

	if (r != 0)
		return r;
	r = move_mark(c, t, last) ?: query_do(c, &commit);
	if (r != 0 && c->ops->in_transaction(c->db))
		query_do(c, &rollback);
	return r;
}

/* Where it takes several steps and others are in the way, they go on with it. */
static int catch_up(struct connection *c, const struct tally *t)
{
	int64_t last;
	bool behind;
	int r = find_last(c, t, &last, &behind);

	for (unsigned i = 0; r == 0 && behind && i < (c->ops->is_shared ? SHARED_STEPS : 1); i++)
		r = move_alone(c, t, last);
	return r;
}

int tally_catch_up(struct connection *c)
{
	int r = 0;

	for (unsigned i = 0; i < N_TALLIED && r == 0; i++)
		r = catch_up(c, &tallies[i]);
	return r;
}
