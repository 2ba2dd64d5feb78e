/*
 * Ended conversations: listed, read, and deleted for good. One may have many messages, so they
 * are deleted in steps, and other writes need not wait for all of them.
 */
#include "base/cleanup.h"
#include "store/chat_inner.h"

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

/* ---- deleted ---- */

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
