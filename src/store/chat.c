#include "store/chat.h"

#include <errno.h>

#include "base/cleanup.h"
#include "store/db/query.h"
#include "store/db/rows.h"
#include "store/db/schema_tally.h"
#include "store/tally.h"

/* What is counted of a kind, but for what came after the mark. */
#define TALLIED(kind, name)                                                                        \
	"coalesce((SELECT sum(n) FROM {tally} WHERE kind = '" kind "' AND name = " name            \
	" AND part = '' AND model = '' AND number = 0), 0)"

#define TALLIED_OPEN     TALLIED("talk", "''")
#define TALLIED_MESSAGES TALLIED("said", "''")
#define TALLIED_CALLS    TALLIED("call", "''")
#define TALLIED_ENDED    TALLIED("ended", "''")
#define TALLIED_ENDED_AS TALLIED("ended_as", ":id")
#define TALLIED_CHILDREN TALLIED("child", "c.id")

#define CONVERSATION_MARK TALLY_MARK("conversation")
#define CALL_MARK         TALLY_MARK("message_call")

/* Those after the mark; how they ended follows. The + keeps to them: an index by the end would
 * be walked whole. */
#define NEWEST " FROM conversation WHERE seq > " CONVERSATION_MARK " AND +ended_ms"

/* Columns of conversation AS c. After the members come its children that have not been ended,
 * and whether a turn runs. */
#define CONVERSATION_COLUMNS                                                                       \
	"{columns}, " TALLIED_CHILDREN " + (SELECT count(*) FROM conversation AS k WHERE"          \
	" k.seq > " CONVERSATION_MARK " AND k.parent = c.id AND k.parent IS NOT NULL"              \
	" AND k.ended_ms IS NULL), EXISTS (SELECT 1 FROM turn"                                     \
	" WHERE conversation = c.seq AND state = 0)"

/* Texts that may be long only say whether there is one. */
#define CONVERSATION_SHORT                                                                         \
	OF_CONVERSATION, .special = CONVERSATION_LONG, .as = "CASE WHEN % IS NOT NULL THEN '' END"
#define OF_CONVERSATION .of = &conversation_schema, .beside = read_beside

/* ---- conversations ---- */

static int read_beside(struct statement *q, void *row)
{
	struct conversation *c = row;
	int column = query_beside(q);

	c->n_children = query_int(q, column);
	c->running = query_int(q, column + 1) != 0;
	return query_fault(q);
}

int store_conversation_add(struct connection *c, const struct conversation *row, int64_t *ret_seq)
{
	QUERY sql = {"INSERT INTO conversation ({columns}, n_messages, answered)"
		     " VALUES ({values}, 0, 0)",
		     .of = &conversation_schema, .members = {.without = MEMBER_MADE}, .key = "seq"};
	return query_insert(c, &sql, ret_seq, BIND_NOUN(row))
		       ?: tally_added(c, TALLY_CONVERSATION, *ret_seq);
}

int store_conversation_find(struct connection *c, struct text id, struct arena *arena,
			    struct conversation *ret_row, bool *ret_found)
{
	QUERY sql = {"SELECT " CONVERSATION_COLUMNS
		     " FROM conversation AS c WHERE c.id = :id AND c.ended_ms IS NULL",
		     OF_CONVERSATION};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":id", id));
}

int store_conversation_set_summary(struct connection *c, int64_t seq, struct text summary,
				   int64_t tokens, int64_t turn)
{
	QUERY sql = {"UPDATE conversation SET summary = :summary, summary_tokens = :tokens,"
		     " summary_turn = :turn WHERE seq = :seq RETURNING seq"};

	return query_change(c, &sql, BIND(":seq", seq), BIND(":summary", summary),
			    BIND(":tokens", tokens), BIND(":turn", turn));
}

int store_conversation_want_end(struct connection *c, struct text id, bool *ret_found)
{
	QUERY sql = {"UPDATE conversation SET wants_end = 1 WHERE id = :id AND ended_ms IS NULL"
		     " RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":id", id));
}

int store_conversation_end(struct connection *c, struct text id, int64_t now_ms, bool *ret_found)
{
	QUERY sql = {"UPDATE conversation SET ended_ms = :now WHERE id = :id AND ended_ms IS NULL"
		     " RETURNING seq"};

	return query_find(c, &sql, ret_found, BIND(":id", id), BIND(":now", now_ms));
}

static int count_conversations(struct connection *c, int64_t *ret_n)
{
	QUERY sql = {"SELECT " TALLIED_OPEN " + (SELECT count(*)" NEWEST " IS NULL)"};

	return query_find_int(c, &sql, ret_n);
}

static int list_conversations(struct connection *c, unsigned offset, unsigned limit,
			      struct arena *arena, struct conversation **ret_rows, unsigned *ret_n)
{
	QUERY sql = {"SELECT " CONVERSATION_COLUMNS " FROM conversation AS c"
		     " WHERE c.ended_ms IS NULL"
		     " ORDER BY c.updated_ms DESC, c.seq DESC LIMIT :limit OFFSET :offset",
		     CONVERSATION_SHORT};

	return rows_all(c, &sql, arena, ret_rows, ret_n, BIND(":limit", limit),
			BIND(":offset", offset));
}

int store_conversation_list(struct connection *c, unsigned offset, unsigned limit,
			    struct arena *arena, struct conversation **ret_rows, unsigned *ret_n,
			    int64_t *ret_total)
{
	CLEANUP(query_end_reads) struct reads reads;

	return query_begin_reads(c, &reads) ?: count_conversations(c, ret_total)
		?: list_conversations(c, offset, limit, arena, ret_rows, ret_n);
}

int store_conversation_highest(struct connection *c, struct text prefix, int64_t *ret_n)
{
	/* The highest of each length, along the index by length and id. A number with more digits
	 * than we ever assign is somebody's own name. ':' comes after '9'. */
	QUERY sql = {
		"WITH RECURSIVE digits (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM digits"
		" WHERE n < 15) SELECT coalesce(max(CAST(substr((SELECT id FROM conversation"
		" WHERE length(id) = length(:prefix) + digits.n"
		" AND id >= :prefix || '0' AND id < :prefix || ':'"
		" AND ltrim(substr(id, length(:prefix) + 1), '0123456789') = ''"
		" ORDER BY id DESC LIMIT 1), length(:prefix) + 1) AS BIGINT)), 0) FROM digits"};

	return query_find_int(c, &sql, ret_n, BIND(":prefix", prefix));
}

int store_chat_totals(struct connection *c, struct store_chat_totals *ret)
{
	QUERY sql = {"SELECT " TALLIED_OPEN " + count(*),"
		     " " TALLIED_MESSAGES " + coalesce(sum(n_messages), 0),"
		     " " TALLIED_CALLS
		     " + (SELECT count(*) FROM message_call WHERE seq > " CALL_MARK ")" NEWEST
		     " IS NULL"};
	_Static_assert(sizeof(*ret) == 3 * sizeof(int64_t), "numbers side by side");
	return query_find_ints(c, &sql, &ret->n_conversations, 3, NULL);
}

/* ---- turns ---- */

static int touch_conversation(struct connection *c, int64_t seq, int64_t now_ms)
{
	QUERY sql = {"UPDATE conversation SET updated_ms = :now WHERE seq = :seq"};

	return query_do(c, &sql, BIND(":seq", seq), BIND(":now", now_ms));
}

int store_turn_add(struct connection *c, const struct turn *row, int64_t *ret_seq)
{
	QUERY sql = {"INSERT INTO turn ({columns}) VALUES ({values})", .of = &turn_schema,
		     .members = {.without = MEMBER_MADE}, .key = "seq"};
	int64_t seq;
	int r = query_insert(c, &sql, &seq, BIND_NOUN(row))
			?: touch_conversation(c, row->conversation, row->started_ms);

	if (r == 0)
		*ret_seq = seq;
	return r;
}

int store_turn_end(struct connection *c, const struct turn *row)
{
	QUERY sql = {"UPDATE turn SET {changes} WHERE seq = :seq RETURNING seq", .of = &turn_schema,
		     .members = {.with = MEMBER_CHANGES}};
	return query_change(c, &sql, BIND_NOUN(row), BIND(":seq", row->seq));
}

int store_turn_interrupt(struct connection *c, int64_t conversation, int64_t now_ms, int64_t *ret_n)
{
	/* The running state is spelled out; otherwise the index of running turns cannot be used. */
	QUERY sql = {"UPDATE turn SET state = :interrupted, ended_ms = :now"
		     " WHERE state = 0 AND (conversation = :conversation OR (:conversation = 0"
		     " AND NOT EXISTS (SELECT 1 FROM conversation AS c, host WHERE c.seq ="
		     " turn.conversation AND host.epoch = c.epoch AND host.state = 0)))"
		     " RETURNING seq"};
	unsigned n;
	int r = query_count(c, &sql, &n, BIND(":interrupted", TURN_INTERRUPTED),
			    BIND(":conversation", conversation), BIND(":now", now_ms));

	if (r == 0)
		*ret_n = n;
	return r;
}

/* ---- ended conversations ---- */

static int count_ended(struct connection *c, struct text id, int64_t *ret_n)
{
	QUERY all = {"SELECT " TALLIED_ENDED " + (SELECT count(*)" NEWEST " IS NOT NULL)"};
	QUERY of_id = {"SELECT " TALLIED_ENDED_AS " + (SELECT count(*)" NEWEST
		       " IS NOT NULL AND id = :id)"};
	return query_find_int(c, id.data ? &of_id : &all, ret_n, BIND_IF(":id", id));
}

#define LIST_ENDED(where)                                                                          \
	"SELECT " CONVERSATION_COLUMNS " FROM conversation AS c"                                   \
	" WHERE c.ended_ms IS NOT NULL" where                                                      \
	" ORDER BY c.ended_ms DESC, c.seq DESC LIMIT :limit OFFSET :offset"

static int list_ended(struct connection *c, struct text id, unsigned offset, unsigned limit,
		      struct arena *arena, struct conversation **ret_rows, unsigned *ret_n)
{
	QUERY all = {LIST_ENDED(""), CONVERSATION_SHORT};
	QUERY of_id = {LIST_ENDED(" AND c.id = :id"), CONVERSATION_SHORT};

	return rows_all(c, id.data ? &of_id : &all, arena, ret_rows, ret_n, BIND_IF(":id", id),
			BIND(":limit", limit), BIND(":offset", offset));
}

int store_conversation_list_ended(struct connection *c, struct text id, unsigned offset,
				  unsigned limit, struct arena *arena,
				  struct conversation **ret_rows, unsigned *ret_n,
				  int64_t *ret_total)
{
	CLEANUP(query_end_reads) struct reads reads;

	return query_begin_reads(c, &reads) ?: count_ended(c, id, ret_total)
		?: list_ended(c, id, offset, limit, arena, ret_rows, ret_n);
}

int store_conversation_find_ended(struct connection *c, int64_t seq, struct arena *arena,
				  struct conversation *ret_row, bool *ret_found)
{
	QUERY sql = {"SELECT " CONVERSATION_COLUMNS " FROM conversation AS c"
		     " WHERE c.seq = :seq AND c.ended_ms IS NOT NULL",
		     CONVERSATION_SHORT};

	return rows_find(c, &sql, arena, ret_row, ret_found, BIND(":seq", seq));
}

int store_conversation_oldest_ended(struct connection *c, int64_t before_ms, int64_t *ret_seq)
{
	QUERY sql = {
		"SELECT seq FROM conversation WHERE ended_ms IS NOT NULL AND ended_ms < :before"
		" ORDER BY ended_ms LIMIT 1"};

	return query_find_int(c, &sql, ret_seq, BIND(":before", before_ms));
}

/* One may have many messages, so they are deleted in steps, and other writes need not wait for all of them. */

/* The messages of the first turns, and the calls in them. */
#define SOME_MESSAGES                                                                              \
	"(SELECT seq FROM message WHERE conversation = :seq ORDER BY turn, seq LIMIT :limit)"

static int delete_messages(struct connection *c, int64_t seq, unsigned limit, unsigned *ret_n)
{
	QUERY calls = {"DELETE FROM message_call WHERE message IN " SOME_MESSAGES " RETURNING seq"};
	QUERY messages = {"DELETE FROM message WHERE seq IN " SOME_MESSAGES " RETURNING seq"};
	unsigned n_calls;

	return query_count(c, &calls, &n_calls, BIND(":seq", seq), BIND(":limit", limit))
		       ?: query_count(c, &messages, ret_n, BIND(":seq", seq),
				      BIND(":limit", limit));
}

static int delete_turns(struct connection *c, int64_t seq, unsigned limit, unsigned *ret_n)
{
	QUERY turns = {
		"DELETE FROM turn WHERE seq IN (SELECT seq FROM turn WHERE conversation = :seq"
		" ORDER BY seq LIMIT :limit) RETURNING seq"};

	return query_count(c, &turns, ret_n, BIND(":seq", seq), BIND(":limit", limit));
}

static int delete_itself(struct connection *c, int64_t seq)
{
	QUERY itself = {"DELETE FROM conversation WHERE seq = :seq AND ended_ms IS NOT NULL"};

	return query_do(c, &itself, BIND(":seq", seq));
}

int store_conversation_purge(struct connection *c, int64_t seq, unsigned limit, unsigned *ret_n,
			     bool *ret_more)
{
	unsigned n = 0, n_turns = 0;
	int r = delete_messages(c, seq, limit, &n);

	if (r == 0 && n < limit)
		r = delete_turns(c, seq, limit - n, &n_turns);
	n += n_turns;
	if (r == 0 && n < limit)
		r = delete_itself(c, seq);
	if (r != 0)
		return r;
	*ret_n = n;
	*ret_more = n == limit;
	return 0;
}
