/*
 * Tools that ask a human: ask_human puts a question into koine's inbox and, where the client can,
 * before its own user; whoever answers first has answered. permission_prompt is what Claude Code
 * calls to be allowed a tool; only the inbox answers it, or a rule.
 *
 * No thread waits. Every ten seconds the client is told that somebody is still being asked.
 */
#include <errno.h>
#include <stdio.h>

#include "base/object_builder.h"
#include "base/uuid.h"
#include "call/client.h"
#include "call/server.h"
#include "dialect/asker.h"
#include "dialect/engine.h"
#include "dialect/mcp/server.h"
#include "engine/approval/approval.h"

enum {
	PROGRESS_MS = 10000,
	CHOICES_MAX = 64,
	QUESTION_MAX = 64 << 10,
	SECONDS_MAX = 7 * 24 * 3600,
};

static const unsigned group = GROUP_HUMAN;
static const unsigned permission_group = GROUP_PERMISSION;

struct ask_in {
	struct text question;
	const struct value *choices;
	double timeout_seconds;
};

struct permission_in {
	struct text tool_name;
	const struct value *input;
	struct text tool_use_id;
};

/* A call that waits for a human; in its arena. */
struct mcp_human_waiting {
	struct call *call;
	struct approval_waiter *waiter; /* NULL: told, or left */
	struct timer *timer;
	struct text id; /* of the approval, which may not be kept yet */
	unsigned n_told;
	void (*answer)(struct call *c, const struct approval *a);
};

/* ---- waiting ---- */

static void mcp_human_on_timer(void *arg)
{
	struct mcp_human_waiting *w = arg;

	mcp_progress(w->call, ++w->n_told, 0, "waiting for a human to answer");
}

static void end_waiting(struct mcp_human_waiting *w)
{
	approval_leave(w->waiter);
	w->waiter = NULL;
	timer_free(w->timer);
	w->timer = NULL;
}

static void mcp_human_on_decided(void *arg, int r, const struct approval *a,
				 const struct error *error)
{
	struct mcp_human_waiting *w = arg;

	w->waiter = NULL;
	end_waiting(w);
	if (r != 0) {
		if (r > 0)
			w->call->error = *error;
		(void)call_fail(w->call, r);
		return;
	}
	w->answer(w->call, a);
}

static void mcp_human_withdraw(struct mcp_human_waiting *w)
{
	end_waiting(w);
	approval_withdraw(call_approvals(w->call), w->id, TEXT("client"), NULL);
}

static struct done fail_left(struct call *c)
{
	return call_fail(c, refuse(&c->error, REFUSE_CANCELLED, "cancelled"));
}

/* The client has given up or disconnected, or we stop: then the question stays for when it is asked
 * again. */
static void mcp_human_on_cancel(struct call *c, void *arg)
{
	struct mcp_human_waiting *w = arg;

	if (c->server->stopping && c->client) {
		end_waiting(w);
		(void)call_fail(c, refuse(&c->error, REFUSE_STOPPING, "koined is stopping"));
		return;
	}
	mcp_human_withdraw(w);
	(void)fail_left(c);
}

static int begin_waiting(struct call *c, const struct approval_new *new,
			 struct mcp_human_waiting *w)
{
	int r;

	w->call = c;
	w->id = new->id;
	c->state = w;
	/* A client with many of them is not read any more, and still must be able to leave. Over
	 * HTTP, a lost connection does not mean that the client has left. */
	c->endless |= client_hears(c->client);
	r = timer_new(c->server->loop, mcp_human_on_timer, w, &w->timer)
		    ?: approval_wait(call_approvals(c), new, NULL, mcp_human_on_decided, w,
				     &w->waiter, &c->error);
	if (r != 0) {
		end_waiting(w);
		return r;
	}
	timer_repeat(w->timer, PROGRESS_MS);
	return 0;
}

/* After a restart no client asks again under the same id. */
static struct approval_new new_approval(struct call *c)
{
	const struct side *side = call_side(c);

	return (struct approval_new) {
		.session = side->session,
		.run = side->run,
		.agent = side_agent(c),
		.origin = side->folder.len > 0 ? side->folder : side->project,
		.tool_use_id = side_tool_use(c),
		.bond = BOND_CONNECTION,
		.from = call_asker(c),
	};
}

/* ---- ask_human ---- */

static struct done write_answer(struct call *c, bool answered, struct text answer,
				const char *status)
{
	return call_answer(c, 0, NULL,
			   PAIRS(JSON_BOOL("answered", answered),
				 JSON_TEXT("answer", answer.data ? answer : TEXT("")),
				 JSON_STR("status", status)));
}

static void answer_asked(struct call *c, const struct approval *a)
{
	bool answered = a->status == APPROVAL_RESPONDED || a->status == APPROVAL_APPROVED;

	(void)write_answer(c, answered, a->comment, approval_status_name(a->status));
}

/* The question as the inbox shows it: {"msg": …, "choices": […]}. */
static const struct value *question_of(struct call *c)
{
	const struct ask_in *in = c->in;
	struct object_builder b;

	object_begin(&b, &c->arena);
	object_text(&b, "msg", in->question);
	if (in->choices)
		object_value(&b, "choices", in->choices);
	return b.err == 0 ? b.root : NULL;
}

/* What the client's own user is asked: one field, free or with choices. */
static int write_elicitation(struct call *c, struct text *ret_params)
{
	const struct ask_in *in = c->in;
	struct buf out;
	struct json j;
	int r;

	buf_init(&out, 6 * QUESTION_MAX + 65536);
	j = json_writer(&out);
	json_begin_object(&j);
	json_member_text(&j, "message", in->question);
	json_member_object(&j, "requestedSchema");
	json_member_str(&j, "type", "object");
	json_member_object(&j, "properties");
	json_member_object(&j, "answer");
	json_member_str(&j, "type", "string");
	if (in->choices) {
		json_key(&j, "enum");
		json_value(&j, in->choices);
	}
	json_end_object(&j);
	json_end_object(&j);
	json_key(&j, "required");
	json_raw(&j, "[\"answer\"]", 10);
	json_end_object(&j);
	json_end_object(&j);
	r = out.err ? out.err
		    : arena_copy_text(&c->arena, (struct text) {out.data, out.len}, ret_params);
	buf_done(&out);
	return r;
}

static int check_asked(struct call *c)
{
	const struct ask_in *in = c->in;

	if (in->question.len == 0 || in->question.len > QUESTION_MAX)
		return refuse_field(&c->error, "question",
				    "question must have 1 to %d bytes, not %zu", QUESTION_MAX,
				    in->question.len);
	if (!(in->timeout_seconds >= 0 && in->timeout_seconds <= SECONDS_MAX))
		return refuse_field(&c->error, "timeout_seconds",
				    "timeout_seconds must be between 0 and %d, not %g", SECONDS_MAX,
				    in->timeout_seconds);
	if (in->choices && (in->choices->len == 0 || in->choices->len > CHOICES_MAX))
		return refuse_field(&c->error, "choices",
				    "choices must have 1 to %d strings, not %u", CHOICES_MAX,
				    (unsigned)in->choices->len);
	if (!in->choices)
		return 0;
	value_each (choice, in->choices) {
		if (choice->kind != VALUE_STRING)
			return refuse_field(&c->error, "choices",
					    "choices must contain only strings, not %s",
					    value_kind_name(choice));
	}
	return 0;
}

static void on_recorded(void *arg, int r, const struct approval *a, const struct error *error)
{
	struct call *c = arg;

	/* Somebody was quicker in the inbox: their answer counts. */
	if (r == REFUSE_CONFLICT && a) {
		answer_asked(c, a);
		return;
	}
	if (r > 0)
		c->error = *error;
	if (r != 0)
		(void)call_fail(c, r);
	else
		answer_asked(c, a);
}

/* The answer was given at the client, and is recorded so. */
static struct done record(struct call *c, struct text id, struct text answer)
{
	char by[160] = "";
	struct text client = mcp_client_name(c);
	struct approval_decision d = {
		.id = id, .status = APPROVAL_RESPONDED, .comment = answer, .by = text_of(by)};

	snprintf(by, sizeof(by), "client:%.*s", (int)text_cut(client, 100).len,
		 client.data ? client.data : "mcp");
	d.by = text_of(by);
	return call_await(c, approval_decide(call_approvals(c), &d, on_recorded, c, &c->error));
}

static bool is_offered(const struct value *choices, struct text answer)
{
	if (!choices)
		return true;
	value_each (choice, choices) {
		if (text_equal(value_text(choice), answer))
			return true;
	}
	return false;
}

/* Free text is an answer; what was not among the choices is none. */
static struct text answer_in(const struct call *c, const struct value *elicited)
{
	const struct ask_in *in = c->in;
	struct text answer = value_text(value_find(value_find(elicited, "content"), "answer"));
	bool accepted = text_is(value_text(value_find(elicited, "action")), "accept");

	return accepted && is_offered(in->choices, answer) ? answer : (struct text) {0};
}

static bool is_declined(const struct value *elicited)
{
	return text_is(value_text(value_find(elicited, "action")), "decline");
}

static int describe(struct call *c, struct text id, struct approval_new *ret)
{
	const struct ask_in *in = c->in;

	*ret = new_approval(c);
	ret->id = id;
	ret->kind = APPROVAL_CONTACT;
	ret->tool = TEXT("ask_human");
	ret->input = question_of(c);
	ret->timeout_ms = (int64_t)(in->timeout_seconds * 1000);
	return ret->input ? 0 : -ENOMEM;
}

/* The inbox goes on where the client's user has not decided anything. */
static int ask_inbox(struct call *c, struct text id)
{
	struct mcp_human_waiting *w = c->state;
	struct approval_new new;
	int r;

	if (w)
		return 0;
	w = arena_zalloc(&c->arena, sizeof(*w));
	r = w ? describe(c, id, &new) : -ENOMEM;
	if (r != 0)
		return r;
	w->answer = answer_asked;
	return begin_waiting(c, &new, w);
}

static struct done wait_for_inbox(struct call *c, struct text id)
{
	int r = ask_inbox(c, id);

	return r != 0 ? call_fail(c, r) : call_later(c, mcp_human_on_cancel, c->state);
}

static struct done decline(struct call *c, struct text id)
{
	approval_withdraw(call_approvals(c), id, TEXT("client"), NULL);
	return write_answer(c, false, (struct text) {0}, "declined");
}

/* The client's user has been asked. */
static struct done take_elicited(struct call *c, struct text id, const struct value *elicited)
{
	struct text answer = answer_in(c, elicited);

	if (answer.len == 0 && !is_declined(elicited))
		return wait_for_inbox(c, id);
	if (c->state)
		end_waiting(c->state);
	return answer.len > 0 ? record(c, id, answer) : decline(c, id);
}

/* A modern client asks its user between two calls: the first one leaves the question in the inbox,
 * the second one brings the answer. */
static void on_left(void *arg, int r, const struct approval *a, const struct error *error)
{
	struct call *c = arg;

	if (r > 0)
		c->error = *error;
	if (r != 0)
		(void)call_fail(c, r);
	else if (a->status != APPROVAL_PENDING)
		answer_asked(c, a);
	else
		(void)mcp_wait(c, NULL, NULL);
}

static struct done leave_in_inbox(struct call *c, struct text id)
{
	struct approval_new new;
	char kept[UUID_LEN + 16];
	int n = snprintf(kept, sizeof(kept), "\"%.*s\"", TEXT_ARGS(id));
	int r = describe(c, id, &new);

	if (r != 0)
		return call_fail(c, r);
	/* Between its two calls the client has no connection. */
	new.bond = BOND_PROCESS;
	mcp_keep(c, (struct text) {kept, (size_t)n});
	return call_await(c, approval_request(call_approvals(c), &new, on_left, c, &c->error));
}

/* Also for the client's second call, which carries the id. */
static int find_id(struct call *c, struct text *ret_id)
{
	const struct mcp_human_waiting *w = c->state;
	const struct value *kept = mcp_kept(c);

	if (w) {
		*ret_id = w->id;
		return 0;
	}
	if (kept && kept->kind == VALUE_STRING) {
		*ret_id = value_text(kept);
		return 0;
	}
	return approval_make_id(&c->arena, ret_id);
}

static struct done handle_ask(struct call *c)
{
	const struct value *elicited = NULL;
	struct text params;
	struct text id;
	int r = check_asked(c) ?: find_id(c, &id) ?: write_elicitation(c, &params);

	if (r != 0)
		return call_fail(c, r);
	if (!mcp_can(c, "elicitation"))
		return wait_for_inbox(c, id);
	elicited = mcp_ask(c, "answer", "elicitation/create", params);
	if (elicited)
		return take_elicited(c, id, elicited);
	if (!mcp_stays_open(c))
		return leave_in_inbox(c, id);
	r = ask_inbox(c, id);
	/* Both are asked at once; a client that cannot be asked leaves it to the inbox. */
	return r != 0 ? call_fail(c, r) : mcp_wait_beside(c, mcp_human_on_cancel, c->state);
}

/* ---- permission_prompt ---- */

static void write_allowed(struct json *j, const struct value *input)
{
	json_member_str(j, "behavior", "allow");
	json_key(j, "updatedInput");
	if (input) {
		json_value(j, input);
		return;
	}
	json_begin_object(j);
	json_end_object(j);
}

static void write_denied(struct json *j, const struct approval *a)
{
	struct text said = a->comment;

	json_member_str(j, "behavior", "deny");
	if (a->status == APPROVAL_EXPIRED)
		said = TEXT("no decision before the deadline");
	else if (a->status == APPROVAL_SUPERSEDED)
		said = TEXT("the request was withdrawn");
	else if (said.len == 0)
		said = TEXT("denied");
	json_member_text(j, "message", said);
}

/* Claude Code reads the text, and takes anything else than these two forms for an error. */
static void answer_permission(struct call *c, const struct approval *a)
{
	const struct permission_in *in = c->in;
	struct buf out;
	struct json j;

	buf_init(&out, c->dialect->message_max);
	j = json_writer(&out);
	json_begin_object(&j);
	if (a->status == APPROVAL_APPROVED)
		write_allowed(&j, in->input);
	else
		write_denied(&j, a);
	json_end_object(&j);
	if (out.err) {
		(void)call_fail(c, out.err);
	} else {
		mcp_text(c, (struct text) {out.data, out.len});
		(void)call_reply(c);
	}
	buf_done(&out);
}

static struct done handle_permission(struct call *c)
{
	const struct permission_in *in = c->in;
	struct mcp_human_waiting *w = arena_zalloc(&c->arena, sizeof(*w));
	struct approval_new new = new_approval(c);
	int r = w ? approval_make_id(&c->arena, &new.id) : -ENOMEM;

	if (r != 0)
		return call_fail(c, r);
	new.kind = APPROVAL_FUNCTION;
	new.tool = in->tool_name;
	new.input = in->input;
	if (in->tool_use_id.len > 0)
		new.tool_use_id = in->tool_use_id;
	w->answer = answer_permission;
	r = begin_waiting(c, &new, w);
	return r != 0 ? call_fail(c, r) : call_later(c, mcp_human_on_cancel, w);
}

/* ---- the tools ---- */

static const struct field ask_fields[] = {
	FIELD(STRING, ask_in, question,
	      "The question, with the context a person needs to answer it", .required = true),
	FIELD(ARRAY, ask_in, choices, "Possible answers; default: free text",
	      .items = FIELD_STRING),
	FIELD(NUMBER, ask_in, timeout_seconds,
	      "Seconds to wait for an answer; default: the timeout in koine's settings"),
};

static const struct field permission_fields[] = {
	FIELD(STRING, permission_in, tool_name, "Name of the tool", .required = true),
	FIELD(OBJECT, permission_in, input, "Input of the tool"),
	FIELD(STRING, permission_in, tool_use_id, "Tool call id assigned by the agent"),
};

static const struct mcp_tool tools[] = {
	{.row = {"ask_human",
		 "Ask a human a question and wait for the answer. Use this tool before an "
		 "irreversible action, or when only a human can know the answer.",
		 FIELDS(ask_fields, ask_in), .handle = handle_ask, .flags = METHOD_LATER,
		 .arg = &group},
	 .title = "Ask a human",
	 .output_schema = "{\"type\":\"object\",\"properties\":{"
			  "\"answered\":{\"type\":\"boolean\"},"
			  "\"answer\":{\"type\":\"string\"},"
			  "\"status\":{\"type\":\"string\"}},"
			  "\"required\":[\"answered\",\"answer\",\"status\"]}",
	 .hints = MCP_HARMLESS},
	{.row = {"permission_prompt",
		 "Ask a human for permission to call a tool. This tool is only for Claude "
		 "Code's --permission-prompt-tool, not for models.",
		 FIELDS(permission_fields, permission_in), .handle = handle_permission,
		 .flags = METHOD_LATER, .arg = &permission_group},
	 .title = "Ask for tool permission",
	 .hints = MCP_HARMLESS},
};

const struct mcp_tools mcp_human_tools = {tools, sizeof(tools) / sizeof(tools[0])};
