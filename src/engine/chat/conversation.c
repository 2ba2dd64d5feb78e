/*
 * Loaded conversations. One is read from the store when somebody first asks for it, and stays
 * loaded with its counts, so that these cost nothing. Of those that nobody uses, the most
 * recently used are kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/chat/inner.h"
#include "engine/node/node.h"
#include "store/chat.h"
#include "store/store.h"

struct agent *conversation_agent(const struct live_conversation *c)
{
	if (!c->agent_name)
		return chat_roster(c->chat)->agent;
	return chat_find_agent(c->chat, text_of(c->agent_name));
}

/* ---- loaded conversations ---- */

static void stop_resting(struct live_conversation *c)
{
	if (list_empty(&c->idle_link))
		return;
	list_remove(&c->idle_link);
	c->chat->n_idle--;
}

void conversation_free(struct live_conversation *c)
{
	list_remove(&c->link);
	table_remove(&c->chat->by_name, &c->by_name);
	stop_resting(c);
	timer_free(c->pause);
	free(c->agent_name);
	free(c->system);
	free(c->cwd);
	free(c->write_paths);
	free(c->disabled_tools);
	free(c->turns);
	free(c);
}

static struct live_conversation *conversation_new(struct chat *chat, struct text id)
{
	struct live_conversation *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->chat = chat;
	memcpy(c->id, id.data, id.len);
	c->name = (struct text) {.data = c->id, .len = id.len};
	list_init(&c->idle_link);
	list_init(&c->waiting);
	list_init(&c->waits);
	list_append(&chat->conversations, &c->link);
	table_add(&chat->by_name, &c->by_name, table_hash(id));
	return c;
}

struct live_conversation *conversation_find(struct chat *chat, struct text id)
{
	for (struct table_link *at = table_find(&chat->by_name, table_hash(id)); at;
	     at = table_next(at)) {
		struct live_conversation *c = list_entry(at, struct live_conversation, by_name);

		if (text_equal(c->name, id))
			return c;
	}
	return NULL;
}

/* A conversation that was not in the store may have been made there since. */
static bool outdated(const struct live_conversation *c)
{
	return c->stale || (c->seq == 0 && c->made != atomic_load(&c->chat->made));
}

struct live_conversation *conversation_get(struct chat *chat, struct text id)
{
	struct live_conversation *c = conversation_find(chat, id);

	if (c && !list_empty(&c->idle_link) && outdated(c)) {
		conversation_free(c);
		c = NULL;
	}
	if (c)
		stop_resting(c);
	return c ? c : conversation_new(chat, id);
}

/* Keep it loaded for the next use, if its state is still valid. */
static void rest(struct live_conversation *c)
{
	struct chat *chat = c->chat;

	if (c->stale || c->stage != CONVERSATION_READY) {
		conversation_free(c);
		return;
	}
	if (!list_empty(&c->idle_link))
		return;
	list_append(&chat->idle, &c->idle_link);
	if (++chat->n_idle > CHAT_IDLE_MAX)
		conversation_free(
			list_entry(list_first(&chat->idle), struct live_conversation, idle_link));
}

/* ---- loading ---- */

struct load {
	struct work work;
	struct live_conversation *conversation;
	struct arena arena;
	struct conversation row;
	struct turn_weight *weights;
	unsigned n_weights;
	int64_t max_tokens;
	int64_t epoch;
	int64_t n_messages;
	bool answered;
	bool shared;
	bool found;
	bool taken;
};

static int set_string(char **at, struct text t)
{
	char *copy = NULL;

	if (t.data) {
		copy = strndup(t.data, t.len);
		if (!copy)
			return -ENOMEM;
	}
	free(*at);
	*at = copy;
	return 0;
}

int conversation_set_row(struct live_conversation *c, const struct conversation *row)
{
	int r = set_string(&c->agent_name, row->agent)
			?: set_string(&c->system, row->system)
			?: set_string(&c->cwd, row->bounds.cwd)
			?: set_string(&c->write_paths, row->bounds.write_paths)
			?: set_string(&c->disabled_tools, row->bounds.disabled_tools);

	if (r != 0)
		return r;
	c->own_system_tokens = row->system.len > 0 ? message_tokens(row->system) : 0;
	c->seq = row->seq;
	c->summary_turn = row->summary_turn;
	c->summary_tokens = row->summary_tokens;
	return 0;
}

/* Only the conversation's name is read, which never changes. */
static int load_run(struct work *w, int lane)
{
	struct load *l = list_entry(w, struct load, work);
	struct connection *db = store_lane(l->conversation->chat->opts.store, lane);
	int r = store_conversation_find(db, l->conversation->name, &l->arena, &l->row, &l->found);

	if (r != 0 || !l->found)
		return r;
	/* Without other hosts nobody declares a host dead, and a store that was moved from a server may say
	 * that one is alive. */
	if (l->shared)
		r = store_conversation_is_taken(db, l->row.seq, l->epoch, &l->taken);
	if (r == 0)
		r = store_message_count(db, l->row.seq, &l->n_messages, &l->answered)
			    ?: store_turn_weights(db, l->row.seq, l->row.summary_turn,
						  l->max_tokens, &l->arena, &l->weights,
						  &l->n_weights);
	return r;
}

static int take_loaded(struct live_conversation *c, const struct load *l)
{
	static const struct conversation none = {0};
	int r = conversation_set_row(c, l->found ? &l->row : &none);

	if (r != 0)
		return r;
	c->taken = l->taken;
	c->n_messages = l->n_messages;
	c->answered = l->answered;
	window_set(c, l->weights, l->n_weights);
	return 0;
}

static void go_all(struct live_conversation *c, int result, const struct error *error)
{
	struct list *first;

	while ((first = list_first(&c->waits))) {
		struct chat_wait *w = list_entry(first, struct chat_wait, link);

		list_remove(first);
		w->go(w, result, error);
	}
}

/* Everybody who waits for it learns why it cannot be loaded. */
static void refuse_all(struct live_conversation *c, int result)
{
	struct error error = {0};
	struct list *first;

	while ((first = list_first(&c->waiting))) {
		list_remove(first);
		c->n_waiting--;
		errand_finish(list_entry(first, struct errand, link), result, NULL);
	}
	/* They may ask again. */
	go_all(c, result, &error);
}

static void loaded(struct live_conversation *c, int result)
{
	struct error error = {0};

	conversation_hold(c);
	if (result != 0) {
		c->stage = CONVERSATION_NEW;
		refuse_all(c, result);
	} else {
		c->stage = CONVERSATION_READY;
		go_all(c, 0, &error);
	}
	conversation_resume(c);
}

static void load_finished(struct work *w, int result)
{
	struct load *l = list_entry(w, struct load, work);
	struct live_conversation *c = l->conversation;

	if (result == 0)
		result = take_loaded(c, l);
	arena_done(&l->arena);
	free(l);
	loaded(c, result);
}

/* The most that any of them takes. */
static int64_t most_tokens(const struct chat_roster *roster)
{
	int64_t most = 0;

	for (unsigned i = 0; i < roster->n; i++) {
		int64_t tokens = available_tokens(roster->members[i].agent);

		most = tokens > most ? tokens : most;
	}
	return most;
}

static int load(struct live_conversation *c)
{
	struct chat *chat = c->chat;
	struct load *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->work = (struct work) {.run = load_run, .finished = load_finished};
	l->conversation = c;
	l->epoch = node_epoch(chat->opts.node);
	l->shared = node_shares(chat->opts.node);
	l->max_tokens = most_tokens(chat_roster(chat));
	arena_init(&l->arena, CHAT_ARENA_MAX);
	c->made = atomic_load(&chat->made);
	r = workers_submit(chat->opts.workers, &l->work, false);
	if (r != 0) {
		free(l);
		return r;
	}
	c->stage = CONVERSATION_LOADING;
	c->stale = false;
	return 0;
}

int conversation_wait(struct live_conversation *c, struct chat_wait *w)
{
	bool busy = c->running || c->destroy;
	int r;

	if (c->stage == CONVERSATION_READY && (busy || !outdated(c)))
		return 0;
	r = c->stage == CONVERSATION_LOADING ? 0 : load(c);
	if (r != 0)
		return r;
	list_append(&c->waits, &w->link);
	return -EAGAIN;
}

/* ---- the queue of errands ---- */

void conversation_hold(struct live_conversation *c)
{
	c->held++;
}

void conversation_resume(struct live_conversation *c)
{
	c->held--;
	conversation_start_next(c);
}

static void start(struct live_conversation *c, struct errand *e)
{
	list_remove(&e->link);
	c->n_waiting--;
	c->running = e;
	e->stage = ERRAND_RUNS;
	e->ops->begin(e);
}

void conversation_start_next(struct live_conversation *c)
{
	struct list *first = list_first(&c->waiting);
	int r = 0;

	if (c->held > 0 || c->stage == CONVERSATION_LOADING || c->running ||
	    (c->destroy && destroy_under_way(c->destroy)))
		return;
	if (first && (c->stage == CONVERSATION_NEW || c->stale))
		r = load(c);
	else if (first && (c->taken || conversation_is_owed(c)))
		conversation_pause(c);
	else if (first)
		start(c, list_entry(first, struct errand, link));
	else if (c->destroy)
		destroy_begin(c->destroy);
	else
		rest(c);
	if (r != 0)
		loaded(c, r);
}

void conversation_cancel(struct live_conversation *c)
{
	struct list *first;

	conversation_hold(c);
	while ((first = list_first(&c->waiting)))
		errand_cancel(list_entry(first, struct errand, link));
	if (c->running)
		errand_cancel(c->running);
	conversation_resume(c);
}

/* ---- counts ---- */

struct count {
	struct chat_wait wait;
	struct live_conversation *conversation;
	bool must_exist;
	chat_counts_fn fn;
	void *arg;
};

static int count_now(const struct live_conversation *c, bool must_exist,
		     struct chat_counts *ret_counts, struct error *error)
{
	if (must_exist && c->seq == 0)
		return refuse(error, REFUSE_NOT_FOUND, "conversation not found: '%s'", c->id);
	window_count(c, ret_counts);
	return 0;
}

static void count_go(struct chat_wait *w, int result, const struct error *loading)
{
	struct count *n = list_entry(w, struct count, wait);
	struct chat_counts counts;
	struct error error = *loading;

	if (result == 0)
		result = count_now(n->conversation, n->must_exist, &counts, &error);
	n->fn(n->arg, result, &counts, &error);
	free(n);
}

int chat_count(struct chat *chat, struct text conversation, bool must_exist,
	       struct chat_counts *ret_counts, chat_counts_fn fn, void *arg, struct error *error)
{
	struct text id = conversation.data ? conversation : TEXT(CHAT_DEFAULT);
	struct live_conversation *c = conversation_find(chat, id);
	struct count *n;
	int r;

	/* It is nearly always loaded: no memory and no other thread are needed. */
	if (c && c->stage == CONVERSATION_READY && !outdated(c))
		return count_now(c, must_exist, ret_counts, error);
	r = chat_check_id(id, "agent_id", error);
	if (r != 0)
		return r;
	n = calloc(1, sizeof(*n));
	c = n ? conversation_get(chat, id) : NULL;
	if (!c) {
		free(n);
		return -ENOMEM;
	}
	*n = (struct count) {.wait.go = count_go,
			     .conversation = c,
			     .must_exist = must_exist,
			     .fn = fn,
			     .arg = arg};
	conversation_hold(c);
	r = conversation_wait(c, &n->wait);
	if (r == 0)
		r = count_now(c, must_exist, ret_counts, error);
	else if (r == -EAGAIN)
		n = NULL;
	free(n);
	conversation_resume(c);
	return r;
}
