/* Which host has the turn of a conversation. */
#include "store/chat.h"
#include "store/db/query.h"

/* Its epoch is 0, or that of a life which is over. */
#define FREE                                                                                       \
	"NOT EXISTS (SELECT 1 FROM host WHERE host.epoch = conversation.epoch AND host.state = 0)"

int store_conversation_take(struct connection *c, int64_t seq, int64_t epoch, struct text host,
			    bool *ret_taken)
{
	QUERY sql = {"UPDATE conversation SET epoch = :epoch, host = :host WHERE seq = :seq"
		     " AND ended_ms IS NULL AND (epoch = :epoch OR " FREE ") RETURNING seq"};

	return query_find(c, &sql, ret_taken, BIND(":seq", seq), BIND(":epoch", epoch),
			  BIND(":host", host));
}

int store_conversation_has(struct connection *c, int64_t seq, int64_t epoch, bool *ret_has)
{
	QUERY sql = {"SELECT seq FROM conversation WHERE seq = :seq AND epoch "
		     "= :epoch {lock}",
		     .lock = QUERY_LOCKS_ROWS};

	return query_find(c, &sql, ret_has, BIND(":seq", seq), BIND(":epoch", epoch));
}

int store_conversation_release(struct connection *c, int64_t seq, int64_t epoch, bool *ret_had)
{
	QUERY sql = {"UPDATE conversation SET epoch = 0 WHERE seq = :seq AND epoch = :epoch"
		     " RETURNING seq"};

	return query_find(c, &sql, ret_had, BIND(":seq", seq), BIND(":epoch", epoch));
}

int store_conversation_is_taken(struct connection *c, int64_t seq, int64_t epoch, bool *ret_taken)
{
	QUERY sql = {
		"SELECT seq FROM conversation WHERE seq = :seq AND epoch <> :epoch AND NOT " FREE};

	return query_find(c, &sql, ret_taken, BIND(":seq", seq), BIND(":epoch", epoch));
}
