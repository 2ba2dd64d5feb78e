/*
 * Deleting ended conversations for good, on the writer's thread: those that a client names, and
 * those that are older than the settings keep. There may be many, and one may be long, so they go
 * in steps, and other writes get in between.
 */
#include "base/clock.h"
#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

enum {
	STEP_ROWS = 500,          /* messages and turns deleted in one step */
	STEP_CONVERSATIONS = 100, /* and conversations */
	ROW_BYTES = 1 << 20,      /* of one, except its long texts */
};

/* As much of one as *rows allows, which become fewer. *ret_more: it is not gone yet. */
static int purge_one(struct chat *chat, int64_t number, unsigned *rows, bool *ret_more,
		     struct error *error)
{
	struct connection *db = store_writer(chat->opts.store);
	struct conversation row;
	struct arena arena;
	unsigned n = 0;
	int r;

	arena_init(&arena, ROW_BYTES);
	r = conversation_find_ended(db, &arena, number, &row, error)
		    ?: store_conversation_purge(db, number, *rows, &n, ret_more);
	if (r == 0 && !*ret_more)
		r = chat_publish(chat, "chat.purged", row.id);
	arena_done(&arena);
	*rows -= n;
	return r;
}

/* A step of deleting all that were ended before this time. */
static int purge_older(struct chat *chat, int64_t before_ms, int64_t *n_purged, bool *ret_more,
		       struct error *error)
{
	unsigned rows = STEP_ROWS;
	bool more = false;

	for (unsigned i = 0; i < STEP_CONVERSATIONS && rows > 0; i++) {
		int64_t number = 0;
		int r = store_conversation_oldest_ended(store_writer(chat->opts.store), before_ms,
							&number);

		*ret_more = number != 0;
		if (r == 0 && number != 0)
			r = purge_one(chat, number, &rows, &more, error);
		if (r != 0 || number == 0)
			return r;
		*n_purged += !more;
	}
	return 0;
}

int chat_purge(struct chat *chat, struct chat_purge *p, struct error *error)
{
	unsigned rows = STEP_ROWS;
	int r;

	p->n_purged = 0;
	if (p->number == 0)
		return purge_older(chat, p->before_ms, &p->n_purged, &p->more, error);
	r = purge_one(chat, p->number, &rows, &p->more, error);
	p->n_purged = r == 0 && !p->more;
	return r;
}

bool chat_sweeps(const struct chat *chat)
{
	return chat && chat->opts.keep_ms > 0;
}

int chat_sweep(struct chat *chat, bool *ret_more)
{
	int64_t n = 0;
	struct error error = {0};

	return purge_older(chat, clock_utc_ms() - chat->opts.keep_ms, &n, ret_more, &error);
}
