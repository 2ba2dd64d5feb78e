/*
 * What a handler asks of its client. A legacy client is sent requests while the call waits; a modern
 * one gets the questions as the answer of its request, and repeats it with theirs. In both, the
 * handler is run again from its start and finds what was answered.
 */
#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "mcp/inner.h"
#include "mcp/session.h"

/* What a client must have declared to be asked this. */
static const struct {
	const char *method;
	const char *capability;
} needs[] = {
	{"elicitation/create", "elicitation"},
	{"sampling/createMessage", "sampling"},
	{"roots/list", "roots"},
};

static const char *capability_for(struct text method)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		if (text_is(method, needs[i].method))
			return needs[i].capability;
	}
	return NULL;
}

static struct mcp_question *mcp_question_find(const struct mcp_call *mc, struct text key)
{
	struct mcp_question *q = mc->questions;

	while (q && !text_equal(q->key, key))
		q = q->next;
	return q;
}

static struct mcp_question *mcp_question_note(struct mcp_call *mc, struct text key)
{
	struct mcp_question *q = mcp_question_find(mc, key);
	struct mcp_question **end = &mc->questions;

	if (q)
		return q;
	q = mc->n_questions < MCP_QUESTIONS_MAX ? arena_zalloc(&mc->call->arena, sizeof(*q)) : NULL;
	if (!q || arena_copy_text(&mc->call->arena, key, &q->key) != 0)
		return NULL;
	q->by = mc;
	list_init(&q->link);
	while (*end)
		end = &(*end)->next;
	*end = q;
	mc->n_questions++;
	return q;
}

/* ---- answers ---- */

int mcp_check_answer(struct mcp_call *mc, struct text method, struct text key,
		     const struct value *answer)
{
	struct text action = value_text(value_find(answer, "action"));
	bool accepts = text_is(action, "accept");
	bool well = answer->kind == VALUE_OBJECT;

	if (well && text_is(method, "elicitation/create"))
		well = accepts || text_is(action, "decline") || text_is(action, "cancel");
	if (well && text_is(method, "sampling/createMessage"))
		well = value_find(answer, "content") != NULL;
	if (well && text_is(method, "roots/list"))
		well = value_find(answer, "roots") != NULL;
	if (well)
		return 0;
	mc->code = -32602;
	return refuse(&mc->call->error, REFUSE_PARAMS,
		      "inputResponses.%.*s is not a valid result of %.*s",
		      (int)text_cut(key, 60).len, key.data, TEXT_ARGS(method));
}

static int take_answers(struct mcp_call *mc, const struct value *answers)
{
	struct mcp_question *q;

	if (!answers)
		return 0;
	value_each (member, answers) {
		if (mc->n_questions >= MCP_QUESTIONS_MAX)
			return refuse_field(&mc->call->error, "inputResponses",
					    "more than %d inputResponses", MCP_QUESTIONS_MAX);
		q = mcp_question_note(mc, (struct text) {member->key, member->key_len});
		if (!q)
			return -ENOMEM;
		if (!q->answer)
			q->answer = member;
	}
	return 0;
}

/* What was answered in earlier rounds is in the state; this round's comes first. */
int mcp_read_answers(struct mcp_call *mc)
{
	struct call *c = mc->call;
	const struct value *given = value_find(c->request.params, "inputResponses");
	const struct value *state = value_find(c->request.params, "requestState");
	const struct value *earlier = NULL;
	int r = 0;

	if (mc->era != MCP_MODERN)
		return 0;
	if (given && given->kind != VALUE_OBJECT)
		return refuse_field(&c->error, "inputResponses",
				    "inputResponses must be an object, not %s",
				    value_kind_name(given));
	if (state && state->kind != VALUE_STRING)
		return refuse_field(&c->error, "requestState",
				    "requestState must be a string, not %s",
				    value_kind_name(state));
	if (state)
		r = mcp_state_read(mc, value_text(state), &earlier);
	if (r == 0)
		r = take_answers(mc, given);
	return r != 0 ? r : take_answers(mc, earlier);
}

/* ---- asking ---- */

const struct value *mcp_ask(struct call *c, const char *key, const char *method, struct text params)
{
	struct mcp_call *mc = opened(c);
	const char *capability = capability_for(text_of(method));
	struct mcp_question *q = mcp_question_note(mc, text_of(key));

	if (!q) {
		mc->starved = true;
		return NULL;
	}
	if (q->answer &&
	    (q->id != 0 || mcp_check_answer(mc, text_of(method), q->key, q->answer) == 0))
		return q->answer;
	q->asked = true;
	q->method = text_of(method);
	if (arena_copy_text(&c->arena, params, &q->params) != 0)
		mc->starved = true;
	if (capability && !mcp_can(c, capability))
		mc->lacking = capability;
	return NULL;
}

void mcp_keep(struct call *c, struct text state)
{
	struct mcp_call *mc = opened(c);

	if (arena_copy_text(&c->arena, state, &mc->state) != 0)
		mc->starved = true;
}

const struct value *mcp_kept(const struct call *c)
{
	return opened(c)->kept;
}

bool mcp_stays_open(const struct call *c)
{
	return opened(c)->era == MCP_LEGACY;
}

/* ---- a modern client: the questions are the answer ---- */

static void write_requests(const struct mcp_call *mc, struct json *j)
{
	json_member_object(j, "inputRequests");
	for (const struct mcp_question *q = mc->questions; q; q = q->next) {
		if (!q->asked || q->answer)
			continue;
		json_key_text(j, q->key);
		json_begin_object(j);
		json_member_text(j, "method", q->method);
		json_member_raw(j, "params", q->params);
		json_end_object(j);
	}
	json_end_object(j);
}

void mcp_write_questions(struct mcp_call *mc, struct json *j)
{
	write_requests(mc, j);
	/* A task remembers by itself. */
	if (mc->task)
		return;
	json_key(j, "requestState");
	buf_add_char(j->out, '"');
	if (mcp_state_add(mc, j->out) != 0)
		mc->starved = true;
	buf_add_char(j->out, '"');
	j->comma = true;
}

static struct done lacks(struct mcp_call *mc)
{
	struct call *c = mc->call;
	char data[96];
	int n;

	if (mc->era == MCP_LEGACY)
		return mcp_refuse(c, "This requires %s, which the client does not support.",
				  mc->lacking);
	n = snprintf(data, sizeof(data), "{\"requiredCapabilities\":{\"%s\":{}}}", mc->lacking);
	mc->status = 400;
	return call_fail_with(c, -32021, TEXT("The request lacks a required client capability"),
			      (struct text) {.data = data, .len = (size_t)n});
}

/* ---- a legacy client is asked while the call waits ---- */

static int mcp_question_put(struct mcp_question *q)
{
	struct mcp_session *s = q->by->session;
	CLEANUP(buf_donep) struct buf out = {0};
	char id[32];
	struct json j;

	q->id = ++s->last_question;
	snprintf(id, sizeof(id), "\"ask-%llu\"", (unsigned long long)q->id);
	buf_init(&out, q->params.len + 1024);
	j = json_writer(&out);
	jsonrpc_write_request(&j, q->method, q->params, text_of(id));
	list_append(&s->questions, &q->link);
	return out.err != 0 ? out.err : mcp_tell(q->by, buf_bytes(&out));
}

int mcp_put_question(struct mcp_call *mc, const char *key, const char *method,
		     void (*told)(void *arg, const struct value *answer), void *arg,
		     struct mcp_question **ret_question)
{
	struct mcp_question *q = mcp_question_note(mc, text_of(key));
	int r;

	if (!q)
		return -ENOMEM;
	q->method = text_of(method);
	q->params = TEXT("{}");
	q->told = told;
	q->told_arg = arg;
	r = mcp_question_put(q);
	if (r != 0) {
		list_remove(&q->link);
		return r;
	}
	*ret_question = q;
	return 0;
}

static int send_all(struct mcp_call *mc)
{
	for (struct mcp_question *q = mc->questions; q; q = q->next) {
		int r = q->asked && !q->answer && q->id == 0 ? mcp_question_put(q) : 0;

		/* What a broken stream has missed is told when its client comes again. */
		if (r != 0 && !(mc->track && r == -ENOTCONN))
			return r;
	}
	return 0;
}

static bool all_answered(const struct mcp_call *mc)
{
	for (const struct mcp_question *q = mc->questions; q; q = q->next) {
		if (q->asked && !q->answer)
			return false;
	}
	return true;
}

/* What the handler said in its last run it will say again. */
static void begin_again(struct mcp_call *mc)
{
	mcp_drop_items(mc);
	mc->lacking = NULL;
	mc->call->endless = false;
	if (mc->task)
		mcp_task_waits(mc->task, false);
	for (struct mcp_question *q = mc->questions; q; q = q->next)
		q->asked = false;
	if (mc->state.data) {
		struct value *kept = NULL;
		struct error error;

		if (json_read(&mc->call->arena, mc->state.data, mc->state.len, &json_default_limits,
			      &kept, &error) == 0)
			mc->kept = kept;
	}
	call_again(mc->call);
}

static void fail_waiting(struct mcp_call *mc, const struct value *error)
{
	struct text message = value_text(value_find(error, "message"));

	if (mc->beside)
		return;
	message = text_cut(message, 300);
	(void)mcp_refuse(mc->call, "The client could not answer: %.*s", TEXT_ARGS(message));
}

void mcp_answered(struct mcp_question *q, const struct value *answer, bool failed)
{
	struct mcp_call *mc = q->by;
	struct arena *a = &mc->call->arena;
	const char *text = arena_copy(a, answer->raw, answer->raw_len);
	struct value *copy = NULL;
	struct error error;

	list_remove(&q->link);
	if (!failed && (!text || json_read(a, text, answer->raw_len, &json_default_limits, &copy,
					   &error) != 0))
		failed = true;
	if (q->told) {
		q->answer = copy;
		q->told(q->told_arg, failed ? NULL : copy);
		return;
	}
	if (failed) {
		fail_waiting(mc, answer);
		return;
	}
	if (mcp_check_answer(mc, q->method, q->key, copy) != 0) {
		mc->code = 0;
		fail_waiting(mc, NULL);
		return;
	}
	q->answer = copy;
	if (all_answered(mc))
		begin_again(mc);
}

static void mcp_question_withdraw(struct mcp_question *q)
{
	struct mcp_session *s = q->by->session;
	char message[160];
	int n = snprintf(message, sizeof(message),
			 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
			 "\"params\":{\"requestId\":\"ask-%llu\"}}",
			 (unsigned long long)q->id);

	list_remove(&q->link);
	if (s->client)
		(void)client_notify(s->client, message, (size_t)n);
}

void mcp_withdraw_question(struct mcp_question *q)
{
	if (!list_empty(&q->link))
		mcp_question_withdraw(q);
}

void mcp_forget_questions(struct mcp_call *mc)
{
	for (struct mcp_question *q = mc->questions; q; q = q->next) {
		if (!list_empty(&q->link) && q->id != 0)
			mcp_question_withdraw(q);
	}
}

static void wait_cancelled(struct call *c, void *arg)
{
	struct mcp_call *mc = opened(c);

	if (mc->on_cancel)
		mc->on_cancel(c, mc->cancel_arg);
	else
		(void)call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

struct done mcp_wait(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg)
{
	struct mcp_call *mc = opened(c);
	int r;

	if (mc->starved)
		return call_fail(c, -ENOMEM);
	if (mc->lacking)
		return lacks(mc);
	/* An answer of a kind that was not asked for. */
	if (mc->code != 0)
		return call_fail(c, c->error.code);
	if (mc->era == MCP_MODERN && !mc->task) {
		mc->kind = MCP_INPUT;
		return call_reply(c);
	}
	/* Who has a task asks for its questions. */
	r = mc->task ? 0 : send_all(mc);
	if (mc->task)
		mcp_task_waits(mc->task, true);
	if (r != 0)
		mcp_forget_questions(mc);
	if (r != 0 && !mc->beside) {
		return mcp_refuse(
			c, "Cannot ask the client: %s.",
			r == -ENOTSUP ? "the request does not accept an event stream"
				      : "the client has disconnected or does not read responses");
	}
	/* Who sends nothing more will not answer, either. */
	c->watched |= !mc->http && !mc->task;
	c->endless = !mc->http && !mc->task;
	mc->on_cancel = on_cancel;
	mc->cancel_arg = arg;
	return call_later(c, wait_cancelled, NULL);
}

struct done mcp_wait_beside(struct call *c, void (*on_cancel)(struct call *c, void *arg), void *arg)
{
	opened(c)->beside = true;
	return mcp_wait(c, on_cancel, arg);
}
