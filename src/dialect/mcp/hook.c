/*
 * Agents' own hooks over HTTP: POST /hook takes what `koine hook` reads from its standard input, and
 * answers what that prints, so that a tool call costs no process. base/hook knows the agents.
 *
 * Whatever comes, the answer is a 200: an agent takes anything else for a mistake and goes on. What
 * nobody decides is said as that agent wants it, by an empty body or an empty object. No thread
 * waits; when the agent hangs up, the question is withdrawn.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/why.h"
#include "hook/hook.h"
#include "base/log.h"
#include "model/project.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "call/client.h"
#include "call/http.h"
#include "call/server.h"
#include "dialect/asker.h"
#include "dialect/engine.h"
#include "dialect/mcp/server.h"
#include "dialect/memory_search.h"
#include "engine/approval/approval.h"
#include "engine/session/note.h"
#include "engine/session/observed.h"
#include "wire/http/http1.h"

enum { WAIT_SECONDS_MAX = 24 * 3600 };

/* A call's `opened`; in its arena. */
struct hook_call {
	struct call *call;
	struct hook hook;
	struct hook_run run;
	int64_t wait_ms;
	char id[UUID_LEN + 1]; /* of the approval */
	struct approval_waiter *waiter;
	const struct value *said; /* NULL: nothing */
	struct hook_note note;
	struct session_seen seen;
};

/* ---- answers ---- */

static void say(struct hook_call *h, const struct hook_outcome *o)
{
	/* Without memory nothing is said. */
	if (hook_answer(&h->call->arena, &h->hook, o, &h->said) != 0)
		h->said = NULL;
}

/* A question that was refused must be decided by a human; one that we could not ask is nobody's. */
static void say_failed(struct hook_call *h)
{
	const struct why *why = &h->call->why;
	bool gone = why->code == REFUSE_STOPPING || why->code == REFUSE_CANCELLED ||
		    (why->code == REFUSE_UNAVAILABLE && h->hook.by_rules);
	struct hook_outcome o = {.status = TEXT("unavailable"), .refused = !gone};

	if (!gone)
		o.comment = text_of(why->text);
	say(h, &o);
}

static void deliver(struct client *s, struct call *c)
{
	struct hook_call *h = c->opened;
	struct buf body;
	struct json j;

	if (!s)
		return;
	if (c->failed)
		say_failed(h);
	buf_init(&body, c->dialect->message_max);
	j = json_writer(&body);
	if (h->said)
		json_value(&j, h->said);
	http_send(s, 200, NULL, body.err ? "" : body.data, body.err ? 0 : body.len);
	buf_done(&body);
}

/* ---- deciding ---- */

/* Nobody should decide what nobody waits for. The agent does not ask again under the same id. */
static void withdraw(struct hook_call *h)
{
	approval_withdraw(call_approvals(h->call), text_of(h->id), TEXT("client"));
}

static void on_decided(void *arg, int r, const struct approval *a, const struct why *why)
{
	struct hook_call *h = arg;

	h->waiter = NULL;
	if (r == REFUSE_STOPPING)
		withdraw(h);
	if (r != 0) {
		(void)call_fail_for(h->call, r, why);
		return;
	}
	say(h, &(struct hook_outcome) {.status = text_of(approval_status_name(a->status)),
				       .comment = a->comment,
				       .decided_by = a->decided_by,
				       .id = a->id});
	(void)call_reply(h->call);
}

/* The agent has given up. */
static void on_cancel(struct call *c, void *arg)
{
	struct hook_call *h = arg;

	approval_leave(h->waiter);
	h->waiter = NULL;
	withdraw(h);
	(void)call_fail(c, refuse(&c->why, REFUSE_CANCELLED, "cancelled"));
}

static int describe(struct hook_call *h, struct approval_new *ret, struct why *why)
{
	struct hook_place place = hook_place(&h->hook, &h->run);
	struct text kind = h->hook.kind.len > 0 ? h->hook.kind : TEXT("function_call");

	*ret = (struct approval_new) {
		.id = text_of(h->id),
		.session = place.session,
		.run = place.run,
		.agent = h->hook.agent,
		.origin = place.origin,
		.tool = h->hook.tool,
		.tool_use_id = h->hook.tool_use_id,
		.input = h->hook.input,
		.timeout_ms = h->wait_ms,
		.by_rules = h->hook.by_rules,
		.bond = BOND_CONNECTION,
		.from = call_asker(h->call),
	};
	if (!approval_kind_parse(kind, &ret->kind))
		return refuse_field(why, "kind",
				    "kind must be function_call or human_contact, not '%.*s'",
				    TEXT_ARGS(text_cut(kind, 40)));
	return 0;
}

static struct done handle_decide(struct call *c)
{
	struct hook_call *h = c->opened;
	struct approval_new new;
	int r = call_approvals(c)
			? uuid4(h->id) ?: describe(h, &new, &c->why)
			: refuse(&c->why, REFUSE_UNAVAILABLE, "approvals are not available");

	if (r == 0)
		r = approval_wait(call_approvals(c), &new, NULL, on_decided, h, &h->waiter);
	return r != 0 ? call_fail(c, r) : call_later(c, on_cancel, h);
}

/* ---- telling ---- */

static int look_work(struct call *c)
{
	struct hook_call *call = c->opened;
	const struct hook *h = &call->hook;

	call->note = (struct hook_note) {
		.what = text_of(h->told->what),
		.agent = h->agent,
		.session = h->session,
		.folder = h->folder,
		.tool = h->tool,
		.tool_use_id = h->tool_use_id,
		.text = text_cut(h->said, HOOK_TEXT_MAX),
	};
	return session_look(call_sessions(c), c->lane, &c->arena, &call->note, &c->peer,
			    &call->seen);
}

static int note_work(struct call *c)
{
	struct hook_call *h = c->opened;

	return agent_note_add(call_events(c), &h->note, &c->why)
		       ?: session_observe(call_sessions(c), &c->arena, &h->note, &h->seen);
}

/* With a question, what answers it best; without, what came last. */
static int find_memories(struct call *c, struct memory **ret_rows, unsigned *ret_n)
{
	const struct hook *h = &((struct hook_call *)c->opened)->hook;
	struct memory_query q = {.text = h->said, .limit = HOOK_RECALLED};
	struct memory_filter f = {.limit = HOOK_RECALLED};
	char name[PROJECT_NAME_MAX + 1];
	int r = project_of_reported(h->folder, name)
			? arena_copy_text(&c->arena, text_of(name), &q.by.project)
			: 0;

	q.by.common = q.by.project.len == 0;
	f.by = q.by;
	if (r == 0 && h->said.len == 0)
		return memory_list(call_memories(c), c->lane, &c->arena, &f, ret_rows, ret_n,
				   &c->why);
	if (r == 0)
		r = search_continue(c, &q);
	if (r == 0)
		r = memory_search(call_memories(c), c->lane, &c->arena, &q, ret_rows, ret_n,
				  &c->why);
	return r;
}

static void add_memory(struct buf *context, const struct memory *m)
{
	char created[ISO_LEN + 1];
	struct hook_memory memory = {.id = m->id, .content = m->content};

	clock_format_iso(m->created_ms, created);
	memory.created = text_of(created);
	hook_context_add(context, &memory);
}

static int recall_work(struct call *c)
{
	struct hook_call *h = c->opened;
	struct memory *rows;
	struct buf context;
	unsigned n;
	int r = find_memories(c, &rows, &n);

	if (r != 0)
		return r;
	hook_context_begin(&context);
	for (unsigned i = 0; i < n; i++)
		add_memory(&context, &rows[i]);
	r = hook_context_answer(&c->arena, h->hook.told, &context, &h->said);
	buf_done(&context);
	return r;
}

static struct done recall_then(struct call *c, int r)
{
	return r != 0 ? call_fail(c, r) : call_reply(c);
}

static void recall(struct call *c)
{
	(void)call_work(c, READER, recall_work, recall_then);
}

/* An agent is told what is remembered even if its note was refused. */
static struct done note_then(struct call *c, int r)
{
	const struct hook_call *h = c->opened;

	if (r != 0)
		log_caused(LOG_LEVEL_INFO, "could not record hook", "event=%s reason=\"%s\"",
			   h->hook.told->event, r > 0 ? c->why.text : fault_words(r));
	else
		session_observed(call_sessions(c), &h->seen);
	approval_call_was_made(call_approvals(c), h->hook.session, h->hook.tool, h->hook.input);
	if (!h->hook.told->recalls)
		return r != 0 ? call_fail(c, r) : call_reply(c);
	search_begin_with(c, h->hook.said.len > 0 ? h->hook.said : (struct text) {0}, recall);
	return call_settled(c);
}

static struct done look_then(struct call *c, int r)
{
	return r != 0 ? note_then(c, r) : call_work(c, WRITER, note_work, note_then);
}

static struct done handle_tell(struct call *c)
{
	return call_work(c, READER, look_work, look_then);
}

/* ---- nothing to decide ---- */

static struct done handle_silence(struct call *c)
{
	say_failed(c->opened);
	return call_reply(c);
}

/* The names are those that an agent which is kept from writing may use. */
static const struct method decide_row = {
	.name = "approval.request", .handle = handle_decide, .flags = METHOD_LATER};
static const struct method tell_row = {
	.name = "agent.note", .handle = handle_tell, .flags = METHOD_LATER};
static const struct method silent_row = {
	.name = "hook", .handle = handle_silence, .flags = METHOD_LATER};

/* ---- reading ---- */

static const struct value *parse(void *arg, struct text json)
{
	struct call *c = arg;
	struct value *v = NULL;
	struct why why;

	return json_read(&c->arena, json.data, json.len, &json_default_limits, &v, &why) == 0
		       ? v
		       : NULL;
}

/* Half a surrogate pair is read as U+FFFD: malformed input is no way around the rules. */
static const struct value *mend(struct call *c)
{
	const struct limits *l = &c->server->opts.limits;
	const struct json_limits limits = {.depth = l->json_depth, .values = l->json_values};
	char *copy =
		c->source.len > 0 ? arena_copy(&c->arena, c->source.data, c->source.len) : NULL;
	struct value *tree = NULL;

	if (!copy)
		return NULL;
	mend_surrogates(copy, c->source.len);
	return json_read(&c->arena, copy, c->source.len, &limits, &tree, &c->why) == 0 ? tree
										       : NULL;
}

/* What a variable of the environment did not have is empty, and counts as nothing. */
static int copy_header(struct call *c, const struct http_request *http, const char *name,
		       struct text *ret)
{
	struct text t = http_header_find(http, name);

	return t.len > 0 ? arena_copy_text(&c->arena, t, ret) : 0;
}

/* Seconds, as digits. What cannot be read counts as if it had not been said. */
static int64_t read_wait(struct text seconds)
{
	int64_t n = 0;

	for (size_t i = 0; i < seconds.len; i++) {
		if (seconds.data[i] < '0' || seconds.data[i] > '9' || n > WAIT_SECONDS_MAX)
			return HOOK_WAIT_MS;
		n = n * 10 + (seconds.data[i] - '0');
	}
	return n > 0 && n <= WAIT_SECONDS_MAX ? n * 1000 : HOOK_WAIT_MS;
}

static int read_headers(struct hook_call *h, const struct http_request *http,
			struct hook_source *from)
{
	struct call *c = h->call;

	h->wait_ms = read_wait(http_header_find(http, "Koine-Timeout"));
	return copy_header(c, http, "Koine-Session", &h->run.session) ?:
	       copy_header(c, http, "Koine-Run", &h->run.id) ?:
	       copy_header(c, http, "Koine-Agent", &from->agent);
}

static void choose(struct hook_call *h, int r)
{
	struct call *c = h->call;

	c->method = &silent_row;
	if (r == 0)
		c->method = &decide_row;
	else if (h->hook.told)
		c->method = &tell_row;
	else
		log_caused(LOG_LEVEL_INFO, "invalid hook input",
			   "connection=%llu agent=%.*s bytes=%zu reason=\"%s\"",
			   (unsigned long long)c->client->number, TEXT_ARGS(h->hook.agent),
			   c->source.len, c->why.text);
}

int hook_open(struct call *c, const struct http_request *http)
{
	struct hook_call *h = arena_zalloc(&c->arena, sizeof(*h));
	struct hook_source from = {.text = c->source, .format = "auto", .parse = parse, .arg = c};
	int r = h ? 0 : -ENOMEM;

	if (r != 0)
		return r;
	h->call = c;
	c->opened = h;
	c->deliver = deliver;
	r = read_headers(h, http, &from);
	if (r != 0)
		return r;
	from.tree = c->tree ? c->tree : mend(c);
	if (!c->tree && c->source.len == 0)
		refuse(&c->why, REFUSE_PARSE, "the body is empty");
	r = hook_read(&c->arena, &from, &h->hook, &c->why);
	if (r < 0)
		return r;
	choose(h, r);
	return 0;
}

/* Never run: `open` chooses another. */
static const struct http_route routes[] = {
	{.method = "POST",
	 .path = "/hook",
	 .flags = ROUTE_RPC | ROUTE_WATCH,
	 .row = {.name = "hook", .handle = handle_silence, .flags = METHOD_LATER}},
};

const struct http_route_table mcp_hook_routes = {.rows = routes,
						 .n = sizeof(routes) / sizeof(routes[0])};

/* It is not read, so nobody knows what the agent wants to do. */
bool hook_too_large(struct buf *body, const struct http_refusal *no)
{
	const struct hook_outcome o = {
		.status = TEXT("unavailable"), .comment = no->message, .refused = true};
	size_t n = strcspn(no->target.data ? no->target.data : "", "?");
	const struct value *said = NULL;
	struct arena arena;
	struct json j = json_writer(body);
	struct hook h;

	if (!text_is((struct text) {.data = no->target.data, .len = n}, routes[0].path))
		return false;
	arena_init(&arena, HOOK_CONTEXT_MAX);
	hook_read_unreceived((struct text) {0}, &h);
	if (hook_answer(&arena, &h, &o, &said) == 0 && said)
		json_value(&j, said);
	arena_done(&arena);
	return body->err == 0 && said;
}

bool hook_is_route(const struct call *c)
{
	return c->route == &routes[0];
}
