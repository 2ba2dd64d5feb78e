/* Conversations that were ended: read as they were, and deleted for good. */
#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

enum { STEP_MESSAGES = 500 }; /* deleted at a time */

int chat_list_ended(struct chat *chat, int lane, struct arena *a, struct text id, int64_t offset,
		    int64_t limit, struct conversation **ret_rows, unsigned *ret_n,
		    int64_t *ret_total)
{
	int r = store_conversation_list_ended(store_lane(chat->store, lane), id,
					      chat_page_start(offset), chat_page_limit(limit), a,
					      ret_rows, ret_n, ret_total);

	if (r == 0)
		chat_name_agents(chat, *ret_rows, *ret_n);
	return r;
}

static int find(struct connection *db, struct arena *a, int64_t number,
		struct conversation *ret_row, struct why *why)
{
	bool found = false;
	int r = store_conversation_find_ended(db, number, a, ret_row, &found);

	if (r == 0 && !found)
		return refuse(why, REFUSE_NOT_FOUND,
			      "no conversation that was ended has number %lld", (long long)number);
	return r;
}

int chat_messages_ended(struct chat *chat, int lane, struct arena *a, int64_t number,
			int64_t offset, int64_t limit, struct text *ret_id,
			struct message **ret_rows, unsigned *ret_n, int64_t *ret_total,
			struct why *why)
{
	struct connection *db = store_lane(chat->store, lane);
	struct conversation row;
	int r = find(db, a, number, &row, why);

	if (r == 0)
		r = chat_page(db, a, row.seq, offset, limit, ret_rows, ret_n, ret_total);
	if (r == 0)
		*ret_id = row.id;
	return r;
}

/* The one of which something is deleted now; 0: there is none left. */
static int choose(struct connection *db, struct arena *a, const struct chat_purge *p,
		  struct conversation *row, struct why *why)
{
	int64_t number = p->number;
	int r = 0;

	*row = (struct conversation) {0};
	if (number == 0)
		r = store_conversation_oldest_ended(db, p->before_ms, &number);
	if (r == 0 && number != 0)
		r = find(db, a, number, row, why);
	return r;
}

int chat_purge(struct chat *chat, struct arena *a, struct chat_purge *p, struct why *why)
{
	struct connection *db = store_writer(chat->store);
	struct conversation row;
	bool more = false;
	int r = choose(db, a, p, &row, why);

	if (r != 0)
		return r;
	p->more = false;
	if (row.seq == 0)
		return 0;
	r = store_conversation_purge(db, row.seq, STEP_MESSAGES, &more);
	if (r == 0 && !more)
		r = chat_publish(chat, "chat.purged", row.id);
	if (r != 0)
		return r;
	p->n_purged += !more;
	p->more = more || p->number == 0;
	return 0;
}
