/* The memory methods: they translate parameters to the engine's terms, and its answers to ash's. */
#include "base/error.h"
#include "call/call.h"
#include "call/server.h"
#include "dialect/ash/ash.h"
#include "dialect/memory_search.h"
#include "dialect/memory_wire.h"
#include "base/clock.h"
#include "dialect/engine.h"

/* The scope of a call: from its parameters or, where tokens are required, from its token. Then a
 * call without a valid token is refused. */
static int find_asker(struct call *c, const struct ash_who *who, struct memory_asker *ret_asker)
{
	const struct ash_settings *settings =
		c->dialect == &ash_dialect ? c->endpoint->settings : NULL;
	struct context_claims claims;
	int r;

	if (!settings || settings->secret.n == 0) {
		*ret_asker = (struct memory_asker) {
			.user = who->user_id, .chat = who->chat_id, .chat_type = who->chat_type};
		return 0;
	}
	r = context_token_check(&c->arena, who->context_token, &settings->secret,
				clock_utc_ms() / 1000, &claims, &c->error);
	if (r == 0)
		*ret_asker = (struct memory_asker) {
			.user = claims.user, .chat = claims.chat, .chat_type = claims.chat_type};
	return r;
}

/* A call that will be refused must not cost a request to the model. */
static bool may_ask(struct call *c, const struct search_in *in)
{
	struct memory_asker by;

	return memories_embedding(call_memories(c)) && find_asker(c, &in->who, &by) == 0;
}

void ash_before_search(struct call *c)
{
	const struct search_in *in = c->in;

	search_begin(c, may_ask(c, in) ? in->search.query : (struct text) {0});
}

struct done ash_search(struct call *c)
{
	const struct search_in *in = c->in;
	struct memory_query q = {.text = in->search.query, .limit = in->search.limit};
	struct memory *hits;
	unsigned n;
	int r = find_asker(c, &in->who, &q.by) ?: search_continue(c, &q);

	q.by.this_chat = in->this_chat;
	if (r == 0)
		r = memory_search(call_memories(c), c->lane, &c->arena, &q, &hits, &n, &c->error);
	if (r != 0)
		return call_fail(c, r);
	memory_wire_rows(c, hits, n, memory_wire_hit);
	return call_reply(c);
}

struct done ash_add(struct call *c)
{
	const struct add_in *in = c->in;
	struct memory_new new;
	struct memory memory;
	int r = memory_wire_new(c, &in->add, &new) ?: find_asker(c, &in->who, &new.by) ?:
		memory_add(call_memories(c), &c->arena, &new, &memory, &c->error);

	if (r != 0)
		return call_fail(c, r);
	memory_wire_added(c, &memory, memory_wire_entry);
	return call_reply(c);
}

static int read_filter(struct call *c, struct memory_filter *ret)
{
	const struct list_in *in = c->in;
	int r;

	*ret = (struct memory_filter) {.limit = in->list.limit,
				       .include_expired = in->list.include_expired};
	r = find_asker(c, &in->who, &ret->by);
	ret->by.this_chat = in->this_chat;
	return r;
}

bool ash_list_at_once(struct call *c)
{
	struct memory_filter f;

	return read_filter(c, &f) == 0 && memory_wire_list_at_once(c, call_memories(c), &f);
}

struct done ash_list(struct call *c)
{
	struct memory_filter f;
	struct memory *rows;
	unsigned n;
	int r = read_filter(c, &f)
			?: memory_list(call_memories(c), c->lane, &c->arena, &f, &rows, &n,
				       &c->error);

	if (r != 0)
		return call_fail(c, r);
	memory_wire_rows(c, rows, n, memory_wire_entry);
	return call_reply(c);
}

struct done ash_delete(struct call *c)
{
	const struct delete_in *in = c->in;
	struct memory_asker by;
	struct memory memory;
	bool deleted = false;
	int r = find_asker(c, &in->who, &by)
			?: memory_delete(call_memories(c), &c->arena, &by, in->memory_id, false,
					 &memory, &deleted, &c->error);

	/* Of an ambiguous prefix the original says no more than this. */
	if (r != 0 && r != REFUSE_CONFLICT)
		return call_fail(c, r);
	return call_answer(c, 0, NULL, PAIRS(JSON_BOOL("deleted", deleted)));
}

struct done ash_reload(struct call *c)
{
	const struct server_opts *opts = &c->server->opts;
	const struct reload_in *in = c->in;
	struct memory_asker by;
	struct json *j;
	struct error error = {.text = ""};
	int r = find_asker(c, &in->who, &by);

	if (r != 0)
		return call_fail(c, r);
	r = opts->on_reload_asked
		    ? opts->on_reload_asked(opts->arg, c->endpoint->dialect, NULL, &error)
		    : refuse(&error, REFUSE_UNAVAILABLE,
			     "this server does not accept reload requests");
	j = call_object(c);
	json_member_bool(j, "success", r == 0);
	if (r != 0)
		json_member_str(j, "error", error_words(r, &error));
	return call_reply_object(c);
}
