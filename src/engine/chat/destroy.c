/* Ending a conversation: its turns are cancelled and their askers told, then the store is
 * updated. */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/chat/inner.h"
#include "store/chat.h"
#include "store/store.h"

struct destroy {
	struct chat_wait wait;
	struct work work;
	struct live_conversation *conversation;
	chat_done_fn fn;
	void *arg;
	bool under_way;
	bool found;
};

static void destroy_done(struct destroy *d, int result, const struct error *error)
{
	d->fn(d->arg, result, error);
	free(d);
}

static int destroy_run(struct work *w, int lane)
{
	struct destroy *d = list_entry(w, struct destroy, work);
	struct chat *chat = d->conversation->chat;
	int r;

	r = store_conversation_end(store_writer(chat->opts.store), d->conversation->name,
				   clock_utc_ms(), &d->found);
	if (r == 0 && d->found)
		r = chat_publish(chat, "chat.ended", d->conversation->name);
	return r;
}

static void destroy_finished(struct work *w, int result)
{
	struct destroy *d = list_entry(w, struct destroy, work);
	struct live_conversation *c = d->conversation;
	struct error error = {0};

	if (result == 0 && !d->found)
		result = refuse(&error, REFUSE_NOT_FOUND, "conversation not found: '%s'", c->id);
	c->destroy = NULL;
	c->stale = true;
	/* Update the conversation first: the callback may ask for it again at once. */
	conversation_start_next(c);
	destroy_done(d, result, &error);
}

void destroy_begin(struct destroy *d)
{
	d->under_way = true;
	d->work = (struct work) {.run = destroy_run, .finished = destroy_finished};
	workers_start(d->conversation->chat->opts.workers, &d->work, true);
}

bool destroy_under_way(const struct destroy *d)
{
	return d->under_way;
}

/* It is loaded. */
static int chat_destroy_take(struct destroy *d, struct error *error)
{
	struct live_conversation *c = d->conversation;

	if (c->seq == 0 || c->destroy)
		return refuse(error, REFUSE_NOT_FOUND, "conversation not found: '%s'", c->id);
	c->destroy = d;
	conversation_cancel(c);
	return 0;
}

static void destroy_go(struct chat_wait *w, int result, const struct error *loading)
{
	struct destroy *d = list_entry(w, struct destroy, wait);
	struct error error = *loading;

	if (result == 0)
		result = chat_destroy_take(d, &error);
	if (result != 0)
		destroy_done(d, result, &error);
}

int chat_destroy(struct chat *chat, struct text conversation, chat_done_fn fn, void *arg,
		 struct error *error)
{
	struct live_conversation *c;
	struct destroy *d;
	int r = chat_check_id(conversation, "agent_id", error);

	if (r != 0)
		return r;
	d = calloc(1, sizeof(*d));
	c = d ? conversation_get(chat, conversation) : NULL;
	if (!c) {
		free(d);
		return -ENOMEM;
	}
	d->wait.go = destroy_go;
	d->conversation = c;
	d->fn = fn;
	d->arg = arg;
	conversation_hold(c);
	r = conversation_wait(c, &d->wait) ?: chat_destroy_take(d, error);
	conversation_resume(c);
	if (r == -EAGAIN)
		return 0;
	if (r != 0)
		free(d);
	return r;
}
