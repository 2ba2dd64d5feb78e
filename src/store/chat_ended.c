/*
 * Ended conversations: listed, read, and deleted for good. One may have many messages, so they
 * are deleted in steps, and other writes need not wait for all of them.
 */
#include "base/cleanup.h"
#include "store/chat_inner.h"

static int count_ended(struct connection *c, struct text id, int64_t *ret_n)
{
	static const struct query sql = {
		"SELECT count(*) FROM conversation"
		" WHERE ended_ms IS NOT NULL AND (:id IS NULL OR id = :id)"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	return query_find_int(q, ret_n);
}

static int list_ended(struct connection *c, struct text id, unsigned offset, unsigned limit,
		      struct row_list *list)
{
	static const struct query sql = {
		"SELECT " CONVERSATION_COLUMNS " FROM conversation AS c"
		" WHERE c.ended_ms IS NOT NULL AND (:id IS NULL OR c.id = :id)"
		" ORDER BY c.ended_ms DESC, c.seq DESC LIMIT :limit OFFSET :offset",
		CONVERSATION_SHORT};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_text(q, ":id", id);
	query_bind_int(q, ":limit", limit);
	query_bind_int(q, ":offset", offset);
	return rows_take(q, list);
}

int store_conversation_list_ended(struct connection *c, struct text id, unsigned offset,
				  unsigned limit, struct arena *arena,
				  struct conversation **ret_rows, unsigned *ret_n,
				  int64_t *ret_total)
{
	struct row_list list = {.kind = &store_conversation_kind, .arena = arena};
	int64_t total = 0;
	bool begun;
	int r;

	r = query_begin_reads(c, &begun);
	if (r == 0)
		r = count_ended(c, id, &total);
	if (r == 0)
		r = list_ended(c, id, offset, limit, &list);
	query_end_reads(c, begun);
	if (r != 0)
		return r;
	*ret_rows = list.rows;
	*ret_n = list.n;
	*ret_total = total;
	return 0;
}

int store_conversation_find_ended(struct connection *c, int64_t seq, struct arena *arena,
				  struct conversation *ret_row, bool *ret_found)
{
	static const struct query sql = {"SELECT " CONVERSATION_COLUMNS " FROM conversation AS c"
					 " WHERE c.seq = :seq AND c.ended_ms IS NOT NULL",
					 CONVERSATION_SHORT};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return rows_take_one(&store_conversation_kind, q, arena, ret_row, ret_found);
}

int store_conversation_oldest_ended(struct connection *c, int64_t before_ms, int64_t *ret_seq)
{
	static const struct query sql = {
		"SELECT seq FROM conversation WHERE ended_ms IS NOT NULL AND ended_ms < :before"
		" ORDER BY ended_ms LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":before", before_ms);
	return query_find_int(q, ret_seq);
}

/* ---- deleted ---- */

static int run_for(struct connection *c, const struct query *sql, int64_t seq, unsigned limit)
{
	CLEANUP(query_donep) struct statement *q = query_open(c, sql);

	query_bind_int(q, ":seq", seq);
	if (limit > 0)
		query_bind_int(q, ":limit", limit);
	return query_run(q);
}

/* The messages of the first turns, and the calls in them. */
#define SOME_MESSAGES                                                                              \
	"(SELECT seq FROM message WHERE conversation = :seq ORDER BY turn, seq LIMIT :limit)"

static int delete_messages(struct connection *c, int64_t seq, unsigned limit)
{
	static const struct query calls = {
		"DELETE FROM message_call WHERE message IN " SOME_MESSAGES};
	static const struct query messages = {"DELETE FROM message WHERE seq IN " SOME_MESSAGES};
	int r = run_for(c, &calls, seq, limit);

	return r != 0 ? r : run_for(c, &messages, seq, limit);
}

static int has_messages(struct connection *c, int64_t seq, bool *ret_has)
{
	static const struct query sql = {"SELECT 1 FROM message WHERE conversation = :seq LIMIT 1"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	return query_next(q, ret_has);
}

int store_conversation_purge(struct connection *c, int64_t seq, unsigned limit, bool *ret_more)
{
	static const struct query turns = {"DELETE FROM turn WHERE conversation = :seq"};
	static const struct query itself = {
		"DELETE FROM conversation WHERE seq = :seq AND ended_ms IS NOT NULL"};
	bool more = false;
	int r = delete_messages(c, seq, limit) ?: has_messages(c, seq, &more);

	if (r == 0 && !more)
		r = run_for(c, &turns, seq, 0);
	if (r == 0 && !more)
		r = run_for(c, &itself, seq, 0);
	if (r == 0)
		*ret_more = more;
	return r;
}
