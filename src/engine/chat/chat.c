/* The chat service: how it starts and stops, and what may be asked of it. */
#include "engine/chat/chat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/chat/inner.h"
#include "store/store.h"

struct agent *chat_find_agent(const struct chat *chat, struct text name)
{
	const struct chat_roster *roster = chat_roster(chat);

	for (unsigned i = 0; i < roster->n; i++) {
		if (text_is(name, roster->members[i].agent->name))
			return roster->members[i].agent;
	}
	return NULL;
}

struct agent *chat_agent(const struct chat *chat, struct text name)
{
	if (!chat)
		return NULL;
	return name.data ? chat_find_agent(chat, name) : chat_roster(chat)->agent;
}

struct agent *chat_worker(const struct chat *chat)
{
	struct agent *agent = chat_agent(chat, (struct text) {0});

	return agent && !agent->ops->quotes_only ? agent : NULL;
}

int chat_refuse_work(struct why *why, const char *section)
{
	return refuse(why, REFUSE_UNAVAILABLE,
		      "no agent is configured: install claude, or name one in koine.conf ([%s] "
		      "runner, [chat] agent)",
		      section);
}

struct agent *chat_agent_at(const struct chat *chat, unsigned i)
{
	const struct chat_roster *roster = chat ? chat_roster(chat) : NULL;

	return roster && i < roster->n ? roster->members[i].agent : NULL;
}

/* ---- who answers ---- */

/* In any roster there was. */
static bool is_ours(const struct chat *chat, const struct agent *agent)
{
	for (const struct chat_roster *r = chat->rosters; r; r = r->before) {
		for (unsigned i = 0; i < r->n; i++) {
			if (r->members[i].agent == agent)
				return true;
		}
	}
	return false;
}

static void free_roster(struct chat_roster *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (r->members[i].own)
			agent_free(r->members[i].agent);
	}
	free(r);
}

static void free_new(const struct chat *chat, struct agent *const *agents, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (!is_ours(chat, agents[i]))
			agent_free(agents[i]);
	}
}

static int make_roster(const struct chat *chat, struct agent *const *agents, unsigned n,
		       struct chat_roster **ret_roster)
{
	struct chat_roster *r = calloc(1, sizeof(*r) + n * sizeof(r->members[0]));

	if (!r) {
		free_new(chat, agents, n);
		return -ENOMEM;
	}
	r->n = n;
	for (unsigned i = 0; i < n; i++)
		r->members[i] = (struct chat_member) {agents[i], !is_ours(chat, agents[i])};
	*ret_roster = r;
	return 0;
}

static int choose_default(struct chat_roster *r, const char *name, struct why *why)
{
	for (unsigned i = 0; name && i < r->n; i++) {
		if (strcmp(r->members[i].agent->name, name) == 0)
			r->agent = r->members[i].agent;
	}
	if (name && !r->agent)
		return refuse(why, REFUSE_NOT_FOUND, "there is no agent '%.60s'", name);
	return 0;
}

int chat_set_agents(struct chat *chat, struct agent *const *agents, unsigned n, const char *name,
		    struct why *why)
{
	struct chat_roster *roster;
	int r = make_roster(chat, agents, n, &roster);

	if (r != 0)
		return r;
	r = choose_default(roster, name, why);
	if (r == 0 && chat->n_agents + n > CHAT_AGENTS_MAX)
		r = refuse(why, REFUSE_LIMIT,
			   "the agents were changed too often; a restart takes the new ones");
	if (r != 0) {
		free_roster(roster);
		return r;
	}
	for (unsigned i = 0; i < n; i++)
		chat->n_agents += roster->members[i].own;
	roster->before = chat->rosters;
	chat->rosters = roster;
	atomic_store_explicit(&chat->roster, roster, memory_order_release);
	return 0;
}

/* ---- asking ---- */

int chat_check_id(struct text id, const char *field, struct why *why)
{
	static const char marks[] = "._-:@";
	bool dots = true;

	if (id.len == 0 || id.len > CHAT_ID_MAX)
		return refuse_field(why, field, "%s must have 1 to %d characters", field,
				    CHAT_ID_MAX);
	for (size_t i = 0; i < id.len; i++) {
		char c = id.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !(c >= '0' && c <= '9') && (c == '\0' || !strchr(marks, c)))
			return refuse_field(why, field,
					    "%s may have letters, digits and . _ - : @ only",
					    field);
		dots = dots && c == '.';
	}
	if (dots)
		return refuse_field(why, field, "%s must not be dots only", field);
	return 0;
}

static struct chat_turn *find_turn(const struct conversation *c, struct text request_id)
{
	if (c->running && !c->running->compacts && text_equal(c->running->request_id, request_id))
		return c->running;
	list_for_each (at, following, &c->waiting) {
		struct chat_turn *t = list_entry(at, struct chat_turn, link);

		if (!t->compacts && text_equal(t->request_id, request_id))
			return t;
	}
	return NULL;
}

int chat_check_room(struct chat *chat, struct text id, struct why *why)
{
	const struct conversation *c = conversation_find(chat, id);

	if (chat->stopping)
		return refuse(why, REFUSE_STOPPING, "koined is stopping");
	if (chat->n_turns >= CHAT_TURNS_MAX)
		return refuse(why, REFUSE_LIMIT, "%d turns are under way already", CHAT_TURNS_MAX);
	if (chat->bytes >= CHAT_BYTES_MAX)
		return refuse(why, REFUSE_LIMIT, "the turns under way hold %zu bytes already",
			      chat->bytes);
	if (c && c->destroy)
		return refuse(why, REFUSE_CONFLICT, "'%s' is being ended", c->id);
	if (c && c->n_waiting >= CHAT_WAITING_MAX)
		return refuse(why, REFUSE_LIMIT, "%d turns wait in this conversation already",
			      CHAT_WAITING_MAX);
	return 0;
}

/* A provider takes one result for a call. */
static int check_results(const struct chat_ask *ask, struct why *why)
{
	for (unsigned i = 1; i < ask->n_results; i++) {
		for (unsigned k = 0; k < i; k++) {
			if (text_equal(ask->results[i].call_id, ask->results[k].call_id))
				return refuse_field(why, "tool_results",
						    "two results for one call");
		}
	}
	return 0;
}

/* What no agent of ours has called for: each call is looked for among the results. */
static int check_history(const struct chat_ask *ask, struct why *why)
{
	for (unsigned i = 0; i < ask->n_history; i++) {
		if (ask->history[i].n_calls > AGENT_CALLS_MAX)
			return refuse_field(why, "history", "more than %d calls in one message",
					    AGENT_CALLS_MAX);
	}
	return 0;
}

static int check_ask(struct chat *chat, const struct chat_ask *ask, struct text id, struct why *why)
{
	const struct conversation *c;
	int r = chat_check_id(id, "conversation", why);

	if (r != 0)
		return r;
	if (ask->request_id.len > CHAT_ID_MAX)
		return refuse_field(why, "request_id", "request_id is longer than %d bytes",
				    CHAT_ID_MAX);
	if (!ask->content.data && ask->n_results == 0)
		return refuse_field(why, "content", "content is required");
	if (ask->content.len > CHAT_TEXT_MAX)
		return refuse(why, REFUSE_TOO_LARGE, "content is larger than %d bytes",
			      CHAT_TEXT_MAX);
	if (ask->n_results > AGENT_CALLS_MAX)
		return refuse_field(why, "tool_results", "more than %d results", AGENT_CALLS_MAX);
	r = check_results(ask, why);
	if (r == 0)
		r = check_history(ask, why);
	if (r != 0)
		return r;
	if (ask->n_tools > AGENT_TOOLS_MAX)
		return refuse_field(why, "tools", "more than %d tools", AGENT_TOOLS_MAX);
	if (ask->agent.data && !chat_find_agent(chat, ask->agent))
		return refuse_field(why, "agent", "there is no agent '%.*s'",
				    (int)(ask->agent.len < 60 ? ask->agent.len : 60),
				    ask->agent.data);
	r = chat_check_room(chat, id, why);
	if (r != 0)
		return r;
	c = conversation_find(chat, id);
	if (c && ask->request_id.data && find_turn(c, ask->request_id))
		return refuse_field(why, "request_id", "request_id is in progress already: %.*s",
				    TEXT_ARGS(ask->request_id));
	return 0;
}

int chat_send(struct chat *chat, const struct chat_ask *ask, const struct chat_sink *sink,
	      struct chat_turn **ret_turn, struct why *why)
{
	struct text id = ask->conversation.data ? ask->conversation : TEXT(CHAT_DEFAULT);
	struct conversation *c;
	struct chat_turn *t;
	int r = check_ask(chat, ask, id, why);

	if (r != 0)
		return r;
	r = turn_new_ask(chat, id, ask, sink, &t);
	if (r != 0)
		return r;
	c = conversation_get(chat, id);
	if (!c) {
		turn_free(chat, t);
		return -ENOMEM;
	}
	t->in_send = true;
	conversation_hold(c);
	turn_queue(t, c);
	conversation_let_go(c);
	/* One that has ended already is freed here, where its owner learns of it. */
	if (t->ended) {
		turn_free(chat, t);
		return 0;
	}
	t->in_send = false;
	*ret_turn = t;
	return 0;
}

static bool cancel_in(struct conversation *c, struct text request_id)
{
	struct chat_turn *t = find_turn(c, request_id);

	/* All has come; it is only on its way to the store. */
	if (!t || t->stage == STAGE_ENDS)
		return false;
	chat_turn_cancel(t);
	return true;
}

bool chat_cancel(struct chat *chat, struct text conversation, struct text request_id)
{

	if (conversation.data) {
		struct conversation *c = conversation_find(chat, conversation);

		return c && cancel_in(c, request_id);
	}
	for (unsigned i = 0; i < CHAT_BUCKETS; i++) {
		list_for_each (at, following, &chat->buckets[i]) {
			if (cancel_in(list_entry(at, struct conversation, link), request_id))
				return true;
		}
	}
	return false;
}

/* ---- the service ---- */

static int mark_interrupted(struct chat *chat)
{
	int64_t n = 0;
	int r = store_begin(chat->store);

	if (r != 0)
		return r;
	r = store_turn_interrupt(store_writer(chat->store), 0, clock_utc_ms(), &n);
	if (r != 0) {
		store_rollback(chat->store);
		return r;
	}
	r = store_commit(chat->store);
	if (r == 0 && n > 0)
		log_info("turns were interrupted", "n=%lld", (long long)n);
	return r;
}

int chat_highest(struct chat *chat, const char *prefix, int64_t *ret_n)
{
	return store_conversation_highest(store_writer(chat->store), text_of(prefix), ret_n);
}

struct text chat_system(const struct chat *chat)
{
	return text_of(chat ? chat->system : "");
}

void chat_new_name(struct chat *chat, char out[CHAT_ID_MAX + 1])
{

	snprintf(out, CHAT_ID_MAX + 1, "%.100s%lld", chat->numbered,
		 (long long)++chat->last_number);
}

static int set_up(struct chat *chat, const struct chat_opts *opts)
{
	struct text system = text_of(opts->system ? opts->system : "");

	chat->system = strndup(system.data, system.len);
	if (!chat->system)
		return -ENOMEM;
	chat->system_tokens = system.len > 0 ? message_tokens(system) : 0;
	return 0;
}

int chat_start(const struct chat_opts *opts, struct chat **ret_chat, struct why *why)
{
	struct chat *chat = calloc(1, sizeof(*chat));
	int r;

	if (!chat) {
		for (unsigned i = 0; i < opts->n_agents; i++)
			agent_free(opts->agents[i]);
		return -ENOMEM;
	}
	chat->store = opts->store;
	chat->events = opts->events;
	chat->services = opts->services;
	chat->loop = opts->loop;
	chat->background = opts->background;
	chat->started_ms = clock_utc_ms();
	chat->numbered = opts->numbered ? opts->numbered : "chat-";
	for (unsigned i = 0; i < CHAT_BUCKETS; i++)
		list_init(&chat->buckets[i]);
	list_init(&chat->idle);
	list_init(&chat->telling);
	r = chat_set_agents(chat, opts->agents, opts->n_agents, opts->agent, why);
	if (r == 0)
		r = set_up(chat, opts);
	if (r == 0)
		r = timer_new(chat->loop, turn_tell_all, chat, &chat->teller);
	if (r == 0)
		r = mark_interrupted(chat);
	if (r == 0)
		r = chat_highest(chat, chat->numbered, &chat->last_number);
	if (r != 0) {
		chat_free(chat);
		return r;
	}
	*ret_chat = chat;
	return 0;
}

bool chat_idle(const struct chat *chat)
{
	return !chat || chat->n_turns == 0;
}

/* In a bucket; NULL: none. */
static struct conversation *find_busy(struct list *bucket)
{
	list_for_each (at, following, bucket) {
		struct conversation *c = list_entry(at, struct conversation, link);

		if (c->n_waiting > 0 || (c->running && !c->running->cancelled))
			return c;
	}
	return NULL;
}

void chat_stop(struct chat *chat)
{
	struct conversation *c;

	if (!chat)
		return;
	chat->stopping = true;
	/* One that has ended may take others with it, so each is looked for anew. */
	for (unsigned i = 0; i < CHAT_BUCKETS; i++) {
		while ((c = find_busy(&chat->buckets[i])))
			conversation_cancel(c);
	}
}

static void drop_conversation(struct conversation *c)
{
	struct list *first;

	if (c->running)
		turn_free(c->chat, c->running);
	while ((first = list_first(&c->waiting))) {
		list_remove(first);
		turn_free(c->chat, list_entry(first, struct chat_turn, link));
	}
	free(c->destroy);
	conversation_free(c);
}

/* What follows, conversations that end, asks for no agent any more. */
static void free_rosters(struct chat *chat)
{
	struct chat_roster *r;

	while ((r = chat->rosters)) {
		chat->rosters = r->before;
		free_roster(r);
	}
}

void chat_free(struct chat *chat)
{
	struct list *first;

	if (!chat)
		return;
	free_rosters(chat);
	for (unsigned i = 0; i < CHAT_BUCKETS; i++) {
		while ((first = list_first(&chat->buckets[i])))
			drop_conversation(list_entry(first, struct conversation, link));
	}
	timer_free(chat->teller);
	free(chat->system);
	free(chat);
}
