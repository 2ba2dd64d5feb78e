/*
 * Conversations of several hosts. Turns of one conversation come one after another, wherever they were
 * asked for: a turn takes its conversation in the transaction that stores the question, and gives it back
 * with its end. A compaction does the same. Who does not get it looks again soon, in the order in which it was
 * asked on its host.
 *
 * What is loaded is loaded again when another host has done something to it. That is heard of late, so
 * taking it compares how many messages there are, too.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "engine/chat/inner.h"
#include "engine/event/event.h"
#include "engine/node/node.h"
#include "store/chat.h"
#include "store/store.h"

enum { PAUSE_MS = 200, AGAIN_MS = 1000, COMPARED_MAX = 20 };

/* ---- waiting for another host ---- */

static void on_pause_over(void *conversation)
{
	struct live_conversation *c = conversation;

	c->paused = false;
	c->stale = true;
	conversation_resume(c);
}

void conversation_pause(struct live_conversation *c)
{
	if (c->paused)
		return;
	/* Without a timer it is looked at with the next errand. */
	if (!c->pause && timer_new(c->chat->opts.loop, on_pause_over, c, &c->pause) != 0)
		return;
	c->paused = true;
	conversation_hold(c);
	timer_start(c->pause, PAUSE_MS);
}

void errand_put_back(struct errand *e)
{
	struct live_conversation *c = e->conversation;
	struct list *first = list_first(&c->waiting);

	e->stage = ERRAND_WAITS;
	c->running = NULL;
	c->stale = true;
	list_append(first ? first : &c->waiting, &e->link);
	c->n_waiting++;
	/* At first it is only loaded again, which shows whether somebody has it. */
	if (e->n_again++ > 0)
		conversation_pause(c);
	conversation_start_next(c);
}

/* ---- having it alone, on the writer's thread ---- */

struct lease lease_of(const struct live_conversation *c)
{
	return (struct lease) {.conversation = c->seq,
			       .epoch = node_epoch(c->chat->opts.node),
			       .n_messages = c->n_messages};
}

/* What was loaded may lack a turn of another host. */
static int check_loaded(const struct errand *e, const struct lease *l, struct connection *db)
{
	bool answered;
	int64_t n = 0;
	int r = store_message_count(db, l->conversation, &n, &answered);

	return r == 0 && n != l->n_messages && e->n_again < COMPARED_MAX ? -EAGAIN : r;
}

int refuse_lost(struct error *error)
{
	return refuse(
		error, REFUSE_UNAVAILABLE,
		"lost connection to the database; this host starts no work until it reconnects");
}

int lease_take(const struct errand *e, const struct lease *l, struct connection *db,
	       struct error *error)
{
	const struct chat *chat = e->chat;
	bool taken = false;
	int r;

	if (l->epoch == 0)
		return node_shares(chat->opts.node) ? refuse_lost(error) : 0;
	r = store_conversation_take(db, l->conversation, l->epoch, node_name(chat->opts.node),
				    &taken);
	if (r == 0 && !taken)
		return -EAGAIN;
	return r == 0 ? check_loaded(e, l, db) : r;
}

/* The first look is enough for whoever knows that its life is over; who stood still does not. */
int lease_check(const struct errand *e, const struct lease *l, struct connection *db)
{
	bool has = node_epoch(e->chat->opts.node) == l->epoch;
	int r = 0;

	if (has && l->epoch)
		r = store_conversation_has(db, l->conversation, l->epoch, &has);
	return r == 0 && !has ? -ESTALE : r;
}

int lease_release(const struct errand *e, const struct lease *l, struct connection *db)
{
	bool had = node_epoch(e->chat->opts.node) == l->epoch;
	int r = 0;

	if (had && l->epoch)
		r = store_conversation_release(db, l->conversation, l->epoch, &had);
	return r == 0 && !had ? -ESTALE : r;
}

/* ---- one that could not be released ---- */

struct give_back {
	struct list link; /* in chat->give_backs */
	struct work work;
	struct timer *again;
	struct chat *chat;
	int64_t conversation;
	int64_t epoch;
};

static void give_back_free(struct give_back *g)
{
	list_remove(&g->link);
	timer_free(g->again);
	free(g);
}

static int give_back_run(struct work *w, int lane)
{
	const struct give_back *g = list_entry(w, struct give_back, work);
	bool had;

	return store_conversation_release(store_lane(g->chat->opts.store, lane), g->conversation,
					  g->epoch, &had);
}

/* A life that is over has nothing to give back. */
static void give_back_finished(struct work *w, int result)
{
	struct give_back *g = list_entry(w, struct give_back, work);

	if (result == 0 || result == -ECANCELED || node_epoch(g->chat->opts.node) != g->epoch)
		give_back_free(g);
	else
		timer_start(g->again, AGAIN_MS);
}

static void give_back_submit(void *give_back)
{
	struct give_back *g = give_back;

	g->work = (struct work) {.run = give_back_run, .finished = give_back_finished};
	workers_start(g->chat->opts.workers, &g->work, true);
}

/* Whatever begins now would have the same lease, and lose it when that is released. */
bool conversation_is_owed(const struct live_conversation *c)
{
	list_for_each (at, following, &c->chat->give_backs) {
		if (list_entry(at, struct give_back, link)->conversation == c->seq)
			return true;
	}
	return false;
}

void lease_give_back(const struct errand *e, const struct lease *l)
{
	struct chat *chat = e->chat;
	struct give_back *g;

	if (l->epoch == 0 || l->conversation == 0)
		return;
	g = calloc(1, sizeof(*g));
	if (!g)
		return;
	list_append(&chat->give_backs, &g->link);
	g->chat = chat;
	g->conversation = l->conversation;
	g->epoch = l->epoch;
	if (timer_new(chat->opts.loop, give_back_submit, g, &g->again) != 0)
		give_back_free(g);
	else
		timer_start(g->again, 0);
}

/* ---- what others do ---- */

static bool chat_hosts_heard(void *arg, const struct event *e, struct text *ret_project,
			     struct text *ret_id)
{
	struct live_conversation *c = conversation_find(arg, e->session);

	if (!c)
		return false;
	c->stale = true;
	if (!text_is(e->type, "chat.ended") || !c->running)
		return false;
	conversation_hold(c);
	errand_cancel(c->running);
	conversation_resume(c);
	return false;
}

static int chat_hosts_reload(void *arg)
{
	struct chat *chat = arg;

	list_for_each (at, following, &chat->conversations)
		list_entry(at, struct live_conversation, link)->stale = true;
	return 0;
}

static struct live_conversation *find_running(const struct chat *chat)
{
	list_for_each (at, following, &chat->conversations) {
		struct live_conversation *c = list_entry(at, struct live_conversation, link);

		if (c->running && !c->running->cancelled)
			return c;
	}
	return NULL;
}

/* Nobody could store what they say. */
static void on_fenced(void *arg)
{
	struct chat *chat = arg;
	struct live_conversation *c;

	/* Ending one may remove others, so search anew each time. */
	while ((c = find_running(chat))) {
		conversation_hold(c);
		c->stale = true;
		errand_cancel(c->running);
		conversation_resume(c);
	}
}

static int chat_hosts_reap(void *arg, struct record_reaped *ret)
{
	const struct chat *chat = arg;
	int64_t n = 0;

	return store_turn_interrupt(store_writer(chat->opts.store), 0, clock_utc_ms(), &n);
}

int chat_join(struct chat *chat)
{
	static const struct text types[] = {TEXT("chat.*")};
	static const struct record_read_ops reads = {
		.types = types,
		.n_types = 1,
		.heard = chat_hosts_heard,
		.reload = chat_hosts_reload,
	};
	static const struct record_owner_ops owners = {.fenced = on_fenced,
						       .reap = chat_hosts_reap};
	const struct records_opts opts = {
		.events = chat->opts.events,
		.node = chat->opts.node,
		.loop = chat->opts.loop,
		.workers = chat->opts.workers,
		.name = "conversation",
		.arg = chat,
		.reads = &reads,
		.owners = &owners,
	};

	return records_start(&chat->records, &opts);
}

void chat_leave(struct chat *chat)
{
	struct list *first;

	records_done(&chat->records);
	while ((first = list_first(&chat->give_backs)))
		give_back_free(list_entry(first, struct give_back, link));
}
