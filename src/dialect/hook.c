#include "dialect/hook.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/error.h"
#include "call/access.h"
#include "call/server.h"
#include "dialect/asker.h"
#include "dialect/engine.h"
#include "dialect/memory_search.h"
#include "engine/memory/memory.h"
#include "model/project.h"

enum { ANSWER_MAX = 1 << 20 }; /* bytes; a comment is much shorter */

static int take_said(struct hook_call *h, struct buf *out)
{
	struct text said = {0};
	int r = out->err;

	if (r == 0 && out->len > 0)
		r = arena_copy_text(&h->call->arena, (struct text) {out->data, out->len}, &said);
	h->said = r == 0 ? said : (struct text) {0};
	buf_done(out);
	return r;
}

int hook_say(struct hook_call *h, const struct hook_outcome *o)
{
	struct buf out;

	buf_init(&out, ANSWER_MAX);
	hook_answer(&h->hook, o, &out);
	return take_said(h, &out);
}

/* ---- deciding ---- */

/* A client that cannot ask again under the same id leaves nothing to decide. */
static void dialect_hook_withdraw(struct hook_call *h)
{
	if (h->bond == BOND_CONNECTION)
		approval_withdraw(call_approvals(h->call), h->id, TEXT("client"), NULL);
}

static void dialect_hook_on_decided(void *arg, int r, const struct approval *a,
				    const struct error *error)
{
	struct hook_call *h = arg;

	h->waiter = NULL;
	if (r == REFUSE_STOPPING)
		dialect_hook_withdraw(h);
	if (r == 0) {
		h->status = text_of(approval_status_name(a->status));
		r = hook_say(h, &(struct hook_outcome) {.status = h->status,
							.comment = a->comment,
							.decided_by = a->decided_by,
							.id = a->id});
	}
	(void)(r != 0 ? call_fail_for(h->call, r, error) : h->end(h));
}

/* The client cancelled or disconnected, or the daemon is stopping. */
static void dialect_hook_on_cancel(struct call *c, void *arg)
{
	struct hook_call *h = arg;

	if (c->client)
		approval_leave(h->waiter);
	else
		approval_abandon(h->waiter);
	h->waiter = NULL;
	dialect_hook_withdraw(h);
	(void)call_fail(c, c->server->stopping
				   ? refuse(&c->error, REFUSE_STOPPING,
					    "koined is stopping: retry with the same id")
				   : refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

static int describe(struct hook_call *h, struct approval_new *ret, struct error *error)
{
	struct hook_place place = hook_place(&h->hook, &h->run);
	struct text kind = h->hook.kind.len > 0 ? h->hook.kind : TEXT("function_call");

	*ret = (struct approval_new) {
		.id = h->id,
		.session = place.session,
		.run = place.run,
		.agent = h->hook.agent,
		.origin = place.origin,
		.tool = h->hook.tool,
		.tool_use_id = h->hook.tool_use_id,
		.input = h->hook.input,
		.timeout_ms = h->wait_ms,
		.by_rules = h->hook.by_rules,
		.bond = h->bond,
		.from = call_asker(h->call),
	};
	if (!approval_kind_parse(kind, &ret->kind))
		return refuse_field(error, "kind",
				    "kind must be function_call or human_contact, not '%.*s'",
				    TEXT_ARGS(text_cut(kind, 40)));
	return 0;
}

struct done hook_decide(struct call *c, struct hook_call *h)
{
	struct approval_new new;
	int r;

	h->call = c;
	r = describe(h, &new, &c->error)
		    ?: approval_wait(call_approvals(c), &new, NULL, dialect_hook_on_decided, h,
				     &h->waiter, &c->error);
	return r != 0 ? call_fail(c, r) : call_later(c, dialect_hook_on_cancel, h);
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

	return agent_note_add(call_events(c), &h->note, &c->error)
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
				   &c->error);
	if (r == 0)
		r = search_continue(c, &q);
	if (r == 0)
		r = memory_search(call_memories(c), c->lane, &c->arena, &q, ret_rows, ret_n,
				  &c->error);
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
	struct buf out;
	unsigned n;
	int r = find_memories(c, &rows, &n);

	if (r != 0)
		return r;
	hook_context_begin(&context);
	for (unsigned i = 0; i < n; i++)
		add_memory(&context, &rows[i]);
	buf_init(&out, ANSWER_MAX);
	hook_context_answer(h->hook.told, &context, &out);
	r = take_said(h, &out) ?: context.err;
	buf_done(&context);
	return r;
}

static struct done recall_then(struct call *c, int r)
{
	struct hook_call *h = c->opened;

	return r != 0 ? call_fail(c, r) : h->end(h);
}

static void recall(struct call *c)
{
	(void)call_work(c, READER, recall_work, recall_then);
}

/* An agent is told what is remembered even if its note was refused. */
static struct done note_then(struct call *c, int r)
{
	struct hook_call *h = c->opened;

	if (r != 0)
		log_caused(LOG_LEVEL_INFO, "could not record hook event", "event=%s reason=\"%s\"",
			   h->hook.told->event, error_words(r, &c->error));
	else
		session_observed(call_sessions(c), &h->seen);
	approval_call_was_made(call_approvals(c), h->hook.session, h->hook.tool, h->hook.input);
	if (!h->hook.told->recalls)
		return r != 0 ? call_fail(c, r) : h->end(h);
	search_begin_with(c, h->hook.said.len > 0 ? h->hook.said : (struct text) {0}, recall);
	return call_settled(c);
}

static struct done look_then(struct call *c, int r)
{
	return r != 0 ? note_then(c, r) : call_work(c, WRITER, note_work, note_then);
}

struct done hook_tell(struct call *c, struct hook_call *h)
{
	h->call = c;
	if (c->client && !confined_may(c->client, "agent.note"))
		return note_then(c, refuse(&c->error, REFUSE_FORBIDDEN,
					   "a read-only agent may not call agent.note"));
	return call_work(c, READER, look_work, look_then);
}
