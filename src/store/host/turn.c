/* Which host has the turn of a conversation. */
#include "store/chat_inner.h"

#include "base/cleanup.h"

/* Its epoch is 0, or that of a life which is over. */
#define FREE                                                                                       \
	"NOT EXISTS (SELECT 1 FROM host WHERE host.epoch = conversation.epoch AND host.state = 0)"

int store_conversation_take(struct connection *c, int64_t seq, int64_t epoch, struct text host,
			    bool *ret_taken)
{
	QUERY sql = {"UPDATE conversation SET epoch = :epoch, host = :host WHERE seq = :seq"
		     " AND ended_ms IS NULL AND (epoch = :epoch OR " FREE ") RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	query_bind_int(q, ":epoch", epoch);
	query_bind_text(q, ":host", host);
	return query_run_found(q, ret_taken);
}

int store_conversation_has(struct connection *c, int64_t seq, int64_t epoch, bool *ret_has)
{
	QUERY sql = {"SELECT seq FROM conversation WHERE seq = :seq AND epoch "
		     "= :epoch {lock}",
		     .lock = QUERY_LOCKS_ROWS};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	query_bind_int(q, ":epoch", epoch);
	return query_run_found(q, ret_has);
}

int store_conversation_release(struct connection *c, int64_t seq, int64_t epoch, bool *ret_had)
{
	QUERY sql = {"UPDATE conversation SET epoch = 0 WHERE seq = :seq AND epoch = :epoch"
		     " RETURNING seq"};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	query_bind_int(q, ":epoch", epoch);
	return query_run_found(q, ret_had);
}

int store_conversation_is_taken(struct connection *c, int64_t seq, int64_t epoch, bool *ret_taken)
{
	QUERY sql = {
		"SELECT seq FROM conversation WHERE seq = :seq AND epoch <> :epoch AND NOT " FREE};
	CLEANUP(query_donep) struct statement *q = query_open(c, &sql);

	query_bind_int(q, ":seq", seq);
	query_bind_int(q, ":epoch", epoch);
	return query_run_found(q, ret_taken);
}
